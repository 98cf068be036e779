"""The toolbox: every tool there is, handed what it needs.

The daemon's own, a part of its composition root: outside tools/, only the two of them know any tool.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from handrail.gate.gate import Gate
from handrail.gate.tool import Tool, Toolbox
from handrail.store.blobs import Blobs
from handrail.tools.agent_form import AgentForm
from handrail.tools.agent_work import AgentWork
from handrail.tools.calls import GetCall, ListCalls, WaitForCall
from handrail.tools.commands.execute_command import ExecuteCommand
from handrail.tools.context import Reach
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


def toolbox(gate: Gate, reach: Reach, blobs: Blobs, own: Sequence[Path]) -> Toolbox:
    """`own` are Handrail's own files, which are protected."""
    tools: list[Tool[Any, Any]] = [
        ReadFile(own),
        ListFiles(own),
        SearchFiles(own),
        SearchContent(own),
        WriteFile(own, blobs),
        EditFile(own, blobs),
        ApplyDiff(own, blobs),
        ExecuteCommand(reach),
        CreateTrackedTerminal(reach),
        ListTrackedTerminals(reach),
        GetTerminalBuffer(reach),
        SendToTerminal(reach),
        WaitForTerminal(reach),
        SearchTerminalBuffer(reach),
        CloseTerminal(reach),
        ListCalls(reach.records),
        GetCall(reach.records),
        WaitForCall(reach, gate.open, gate.journal),
        ReadTextFile(own),
        AgentWork(own, reach.means.environment),
        AgentForm(),
    ]
    return {tool.name: tool for tool in tools}
