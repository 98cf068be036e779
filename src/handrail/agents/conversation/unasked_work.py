"""Unasked work of a hosted agent: done without a permission request, a file request or a terminal of ours.

Each tool call that ends is compared with what the agent asked in the same operation. In any doubt it counts as asked:
a call that is shown twice would be worse than one that only the conversation shows. Nothing here stores anything.
"""

from pathlib import Path

import anyio

from handrail.agents.conversation.tool_calls import (
    ADVISORY,
    OwnCall,
    ShownCall,
    call_subjects,
    is_about,
    names_tool,
    own_subjects,
)
from handrail.agents.lenient_json import record, text
from handrail.gate.operation import Operation
from handrail.store.events import CallOpened
from handrail.store.journal import Journal
from handrail.store.threads.parts import CallKind
from handrail.store.values import Json

KINDS: tuple[CallKind, ...] = ("edit", "delete", "move", "execute", "fetch")
"""Kinds of tool calls that change something or reach the network."""


class UnaskedWork:
    """The agent's tool calls of the running operation, and what was asked about them."""

    def __init__(self, journal: Journal, thread: str) -> None:
        self._journal, self._thread = journal, thread
        self._lock = anyio.Lock()
        self._cursor = 0
        self._own_calls: list[OwnCall] = []
        """Calls of ours in this operation, read from the journal up to `_cursor`."""
        self._hook_calls: list[Json] = []
        """The inputs of the calls that hooks of hosted agents have reported meanwhile."""
        self.asked: dict[str, ShownCall | None] = {}
        """Tool calls with a permission request, by the agent's id."""
        self.mentioned: set[str] = set()
        """Tool calls of which the agent itself sent an update."""
        self._judged: set[str] = set()

    def begin(self, operation: Operation) -> None:
        """Compare with what is asked in this operation from now on."""
        self._cursor, self._own_calls, self._hook_calls = operation.opened_seq, [], []
        self.asked, self.mentioned, self._judged = {}, set(), set()

    async def is_unasked(self, id: str, shown: ShownCall, cwd: str) -> bool:
        """Whether the agent did this without asking; true at most once for each tool call."""
        if shown.data["sort"] not in KINDS or id in self.asked or id in self._judged:
            return False
        self._judged.add(id)
        async with self._lock:
            await self._read_own_calls()
        return not (
            shown.ours is not None
            or any(each["kind"] == "terminal" for each in shown.data["content"])
            or self._take_request(shown)
            or any(_does(own_call, shown, cwd) for own_call in self._own_calls)
            or self._take_hook_call(id, shown)
        )

    async def _read_own_calls(self) -> None:
        await self._journal.committed(self._journal.head)
        while entries := await self._journal.since(self._cursor):
            self._cursor = entries[-1].seq
            for entry in entries:
                event = entry.event
                if isinstance(event, CallOpened) and event.caller.thread == self._thread:
                    self._own_calls.append(OwnCall(event.call, event.tool, event.title, event.input))
                elif isinstance(event, CallOpened) and _is_hosted_hook(event):
                    self._hook_calls.append(event.input)

    def _take_request(self, shown: ShownCall) -> bool:
        """Whether a permission request with its own id, as some agents send them, was about this work."""
        for tool_call, request in self.asked.items():
            if request is None or tool_call in self.mentioned:
                continue
            if {*call_subjects(request.data)} & {*call_subjects(shown.data)} - {""}:
                del self.asked[tool_call]
                return True
        return False

    def _take_hook_call(self, id: str, shown: ShownCall) -> bool:
        """Whether a hook of the agent has reported this work; each report counts for one tool call."""
        for reported in self._hook_calls:
            subjects = hook_subjects(record(reported.get("input")))
            if reported.get("call") == id or subjects & {*call_subjects(shown.data)} - {""}:
                self._hook_calls.remove(reported)
                return True
        return False


def _is_hosted_hook(event: CallOpened) -> bool:
    return event.caller.door == "hook" and event.input.get("hosted") is True


def hook_subjects(arguments: Json) -> set[str]:
    """The command and the path in a client's own input."""
    return {text(arguments.get(key)) for key in ("command", "cmd", "path", "file_path", "filePath")}


def merge_fields(shown: ShownCall) -> Json:
    """The agent's description of its work, with the last diff that it sent."""
    content = shown.fields.get("content")
    others = [each for each in content if each not in shown.diffs] if isinstance(content, list) else []
    return {**shown.fields, "content": [*shown.diffs, *others]}


def _does(own_call: OwnCall, shown: ShownCall, cwd: str) -> bool:
    """Whether a call of ours may do the work of this tool call."""
    data = shown.data
    if own_call.tool in ADVISORY:
        return False
    if is_about(data, own_call) or names_tool(data, own_call.tool):
        return True
    own, theirs = own_subjects(own_call), call_subjects(data)
    match data["sort"], own_call.tool:
        case "execute", "execute_command":
            return any(one in other or other in one for one in own for other in theirs if other)
        case "edit", "write_file":
            paths = {str(Path(cwd, path)) for path in theirs}
            is_unclear = not data["locations"] and not shown.diffs
            return is_unclear or any(str(Path(cwd, path)) in paths for path in own)
        case _:
            return False
