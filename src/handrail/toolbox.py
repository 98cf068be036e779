"""The toolbox: every tool there is, handed what it needs.

The daemon's own, a part of its composition root: outside tools/, only the two of them know any tool.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from handrail.gate.gate import Gate
from handrail.gate.tool import Tool, Toolbox
from handrail.store.blobs import Blobs
from handrail.tools.advisory import AgentWork
from handrail.tools.calls import GetCall, ListCalls, WaitForCall
from handrail.tools.commands.commands import ExecuteCommand
from handrail.tools.files.edits import ApplyDiff, EditFile, WriteFile
from handrail.tools.files.files import ReadFile
from handrail.tools.files.raw import ReadTextFile
from handrail.tools.forms import AgentForm
from handrail.tools.reach import Reach
from handrail.tools.search.listing import ListFiles, SearchFiles
from handrail.tools.search.search import SearchContent
from handrail.tools.terminals.buffer_search import SearchTerminalBuffer
from handrail.tools.terminals.buffers import GetTerminalBuffer
from handrail.tools.terminals.closing import CloseTerminal
from handrail.tools.terminals.keyboard import SendToTerminal
from handrail.tools.terminals.opening import CreateTrackedTerminal
from handrail.tools.terminals.terminals import ListTrackedTerminals
from handrail.tools.terminals.waits import WaitForTerminal


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
