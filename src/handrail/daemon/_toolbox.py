"""All tools of the daemon, by name."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from handrail.clients.open_work import OpenWorks
from handrail.gate.gate import Gate
from handrail.gate.tool import Tool, Toolbox
from handrail.server.editor_windows import EditorWindows
from handrail.store.blobs import Blobs
from handrail.tools.agent_form import AgentForm
from handrail.tools.agent_work import AgentWork
from handrail.tools.calls import GetCall, ListCalls, WaitForCall
from handrail.tools.client_work import ClientWork
from handrail.tools.commands.execute_command import ExecuteCommand
from handrail.tools.editor.code_questions import FindReferences, GetDiagnostics, GetSymbols
from handrail.tools.editor.rename_symbol import RenameSymbol
from handrail.tools.files.edit_tools import ApplyDiff, EditFile, WriteFile
from handrail.tools.files.read_file import ReadFile, ReadTextFile
from handrail.tools.search.list_files import ListFiles, SearchFiles
from handrail.tools.search.search_content import SearchContent
from handrail.tools.terminals.close_terminal import CloseTerminal
from handrail.tools.terminals.create_tracked_terminal import CreateTrackedTerminal
from handrail.tools.terminals.get_terminal_buffer import GetTerminalBuffer
from handrail.tools.terminals.list_tracked_terminals import ListTrackedTerminals
from handrail.tools.terminals.search_terminal_buffer import SearchTerminalBuffer
from handrail.tools.terminals.send_to_terminal import SendToTerminal
from handrail.tools.terminals.wait_for_terminal import WaitForTerminal
from handrail.tools.tool_context import ToolContext


def build_toolbox(
    gate: Gate,
    context: ToolContext,
    blobs: Blobs,
    own: Sequence[Path],
    works: OpenWorks,
    windows: EditorWindows,
) -> Toolbox:
    """Build all tools. `own` are Handrail's own folders, which are protected."""
    tools: list[Tool[Any, Any]] = [
        ReadFile(own),
        ListFiles(own),
        SearchFiles(own),
        SearchContent(own),
        WriteFile(own, blobs),
        EditFile(own, blobs),
        ApplyDiff(own, blobs),
        ExecuteCommand(context),
        CreateTrackedTerminal(context),
        ListTrackedTerminals(context),
        GetTerminalBuffer(context),
        SendToTerminal(context),
        WaitForTerminal(context),
        SearchTerminalBuffer(context),
        CloseTerminal(context),
        ListCalls(context.records),
        GetCall(context.records),
        WaitForCall(context, gate.open, gate.journal),
        GetDiagnostics(own, windows),
        GetSymbols(own, windows),
        FindReferences(own, windows),
        RenameSymbol(own, blobs, windows),
        ReadTextFile(own),
        AgentWork(own, context.settings.environment),
        AgentForm(),
        ClientWork(works, own, context.settings.environment, blobs),
    ]
    return {tool.name: tool for tool in tools}
