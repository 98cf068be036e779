"""Tool calls in a message: the agent's `tool_call` updates, merged with our own calls for the same work.

Decides which part shows which call, and which of our calls an agent's updates are about. Nothing here awaits.
The other parts of a message are in `recorder.py`.
"""

import base64
import binascii
import re
from collections.abc import Callable
from typing import NamedTuple, cast, get_args

from pydantic import JsonValue

from handrail.agents.lenient_json import bounded, cut, name, number, record, records, text
from handrail.store.threads.message import Part
from handrail.store.threads.parts import CallData, CallKind, CallStatus, Content, Location
from handrail.store.values import Ending, Json, Stop

StoreImage = Callable[[bytes], str | None]
"""Stores an image; returns its SHA-256, or None if there is no room for it."""

ADVISORY = ("agent_work", "agent_form")
"""Tools whose calls only ask the person; the agent then does the work itself."""
KEPT_FIELDS = ("title", "kind", "status", "content", "locations", "rawInput")
"""Fields of the agent's updates that are kept for a later permission request."""
BRIEF_FIELDS = ("toolCallId", "title", "kind", "status")
"""Fields that are kept even above MOST_HEARD."""
MOST_PIECES = 200
"""Entries of one call's content or locations; bounds a runaway list."""


class OwnCall(NamedTuple):
    """A call through the gate, as a conversation shows it."""

    id: str
    tool: str
    title: str
    input: Json


def empty_call(id: str) -> CallData:
    """The data of a call of which only the agent's id is known."""
    return {
        "id": id,
        "title": "",
        "sort": "other",
        "status": "pending",
        "call": None,
        "tool": "",
        "locations": [],
        "content": [],
        "input": None,
        "output": None,
    }


def apply_update(data: CallData, update: Json, store_image: StoreImage) -> CallData:
    """Apply an update: given fields replace the old ones, missing fields stay."""
    after = data.copy()
    after["title"] = cut(text(update.get("title")), 2000) or data["title"]
    after["sort"] = _sort(update.get("kind")) or data["sort"]
    after["status"] = _status(_own_status(update) or update.get("status"), data["status"])
    after["tool"] = data["tool"] or _tool(update)
    if update.get("content") is not None:
        after["content"] = [
            c for each in _limit_entries(update["content"]) for c in _content(each, store_image)
        ]
    if update.get("locations") is not None:
        after["locations"] = [_location(each) for each in _limit_entries(update["locations"])]
    if update.get("rawInput") is not None:
        after["input"] = bounded(update["rawInput"])
    if update.get("rawOutput") is not None:
        after["output"] = bounded(update["rawOutput"])
    return after


def append_output(data: CallData, update: Json) -> CallData:
    """Append the output of a terminal of the agent's own, which Codex sends in `_meta`. Handrail has no such terminal."""
    meta = record(update.get("_meta"))
    chunks = [record(meta.get(name)) for name in ("terminal_output", "terminal_output_delta")]
    output = "".join(text(chunk.get("data")) for chunk in chunks)
    if not output:
        return data
    own = {text(chunk.get("terminal_id")) for chunk in chunks}
    kept = [each for each in data["content"] if not (each["kind"] == "terminal" and each["terminal"] in own)]
    last = kept[-1] if kept else None
    before = last["text"] if last is not None and last["kind"] == "text" else ""
    shown: Content = {"kind": "text", "text": cut(before + output)}
    return {**data, "content": [*(kept[:-1] if before else kept), shown]}


def size(value: JsonValue) -> int:
    """Approximate number of characters."""
    match value:
        case str():
            return len(value)
        case list():
            return len(value) + sum(map(size, value))
        case dict():
            return sum(len(key) + size(inner) for key, inner in value.items())
        case _:
            return 1


def link_call(data: CallData, own_call: OwnCall) -> CallData:
    """Link the data to a call of ours."""
    return {**data, "call": own_call.id, "tool": own_call.tool, "title": data["title"] or own_call.title}


def call_from_own(own_call: OwnCall) -> CallData:
    """The data of a call of ours that the agent has not mentioned."""
    return {**link_call(empty_call(""), own_call), "status": "in_progress", "input": bounded(own_call.input)}


def stop_call(data: CallData, stop: Stop) -> CallData:
    """Close a call that is open when the agent stops: completed after a normal stop, else cancelled or
    failed."""
    if data["status"] not in ("pending", "in_progress"):
        return data
    ended: CallStatus = (
        "cancelled" if stop == "cancelled" else "failed" if stop in ("failed", "interrupted") else "completed"
    )
    return {**data, "status": ended}


def settle_call(data: CallData, ending: Ending) -> CallData:
    """Close an open call with the outcome of ours."""
    return data if data["status"] not in ("pending", "in_progress") else {**data, "status": ENDED[ending]}


def is_about(data: CallData, own_call: OwnCall) -> bool:
    """Whether the agent's call is this call of ours, which the agent made without naming its id."""
    if names_tool(data, own_call.tool):
        return _mcp_arguments(data["input"]) in (None, {}, own_call.input)
    if data["sort"] not in _SORTS.get(own_call.tool, ()):
        return False
    return _runs_line(data, own_call) or any(thing in call_subjects(data) for thing in own_subjects(own_call))


def _mcp_arguments(input: object) -> object:
    """The arguments of an MCP call; Codex sends them beside the names of server and tool."""
    entry = record(input)
    return entry["arguments"] if entry.keys() == {"server", "tool", "arguments"} else input


def _runs_line(data: CallData, own_call: OwnCall) -> bool:
    """Whether our command contains the line of the agent's call: Kimi Code puts it into a line for a shell."""
    lines = [text(record(data["input"]).get(name)) for name in ("command", "cmd")]
    own_line = text(own_call.input.get("command")) if own_call.tool == "execute_command" else ""
    return any(line and line in own_line for line in lines)


ENDED: dict[Ending, CallStatus] = {
    "done": "completed",
    "completed": "completed",
    "failed": "failed",
    "denied": "failed",
    "interrupted": "failed",
    "cancelled": "cancelled",
}
_SORTS: dict[str, tuple[CallKind, ...]] = {
    "execute_command": ("execute",),
    "write_file": ("edit",),
    "read_text_file": ("read",),
}
"""The kinds that agents give to work that they do through our tools."""


def names_tool(data: CallData, tool: str) -> bool:
    """Whether title or tool name ends with our tool's name: `mcp__handrail__read_file`, `handrail_read_file`,
    `handrail/read_file`."""
    name = re.escape(tool).replace("_", "[_ ]")  # goose writes blanks
    pattern = rf"(?:^|[^A-Za-z0-9]){name}(?:\W.*)?$"
    return any(re.search(pattern, label) for label in (data["title"], data["tool"]) if label)


def call_subjects(data: CallData) -> list[str]:
    """The commands and paths in an agent's description of a call, and its title."""
    arguments = record(data["input"])
    things = [
        text(arguments.get(key)) for key in ("command", "cmd", "path", "file_path", "filePath", "abs_path")
    ]
    things += [each["path"] for each in data["locations"]]
    things += [each["path"] for each in data["content"] if each["kind"] == "diff"]
    return [*filter(None, things), data["title"].strip("`")]


def own_subjects(own_call: OwnCall) -> list[str]:
    """The command and path in the input of a call of ours."""
    things = [text(own_call.input.get(key)) for key in ("command", "path")]
    return [each for each in things if each]


def _limit_entries(value: JsonValue) -> list[Json]:
    return records(value)[:MOST_PIECES]


def _sort(value: object) -> CallKind | None:
    return cast("CallKind", value) if value in get_args(CallKind) else None


def _status(value: object, before: CallStatus) -> CallStatus:
    """The new status; an ended call is not reopened, because updates may be repeated or late."""
    if value not in get_args(CallStatus):
        return before
    status = cast("CallStatus", value)
    over = before not in ("pending", "in_progress")
    if (over and status in ("pending", "in_progress")) or (before == "in_progress" and status == "pending"):
        return before
    return status


def _own_status(update: Json) -> CallStatus | None:
    """Our own agent sends `cancelled`, which ACP does not have."""
    status = record(record(update.get("_meta")).get("handrail")).get("status")
    return "cancelled" if status == "cancelled" else None


def _tool(update: Json) -> str:
    """The agent's tool name, which some send in `_meta`."""
    meta = record(update.get("_meta"))
    near = [meta, *(record(each) for each in meta.values())]
    return next((text(each.get("toolName")) for each in near if text(each.get("toolName"))), "")


def _location(location: Json) -> Location:
    line = number(location.get("line"))
    path = text(location.get("path"))
    return {"path": path} if line is None else {"path": path, "line": line}


def _content(entry: Json, store_image: StoreImage) -> list[Content]:
    match entry.get("type"):
        case "diff":
            old = entry.get("oldText")
            before = cut(text(old)) if isinstance(old, str) else None
            after = cut(text(entry.get("newText")))
            return [{"kind": "diff", "path": text(entry.get("path")), "old": before, "new": after}]
        case "terminal":
            return [{"kind": "terminal", "terminal": name(entry.get("terminalId"))}]
        case _:
            return _block(record(entry.get("content")) or entry, store_image)


def _block(block: Json, store_image: StoreImage) -> list[Content]:
    if block.get("type") == "image" and (image := store_image_block(block, store_image)) is not None:
        return [{"kind": "image", "image": image[0], "mime": image[1]}]
    words = (
        text(block.get("text")) or text(record(block.get("resource")).get("text")) or text(block.get("uri"))
    )
    return [{"kind": "text", "text": cut(words)}] if words else []


def store_image_block(block: Json, store_image: StoreImage) -> tuple[str, str] | None:
    """Store the image of a content block: its hash and MIME type, or None if it holds no image."""
    try:
        content = base64.b64decode(text(block.get("data")), validate=True)
    except (binascii.Error, ValueError):
        return None
    sha = store_image(content) if content else None
    return None if sha is None else (sha, text(block.get("mimeType")) or "image/png")


MOST_CALLS = 5_000
"""Calls shown in one message; more cannot be read."""
MOST_HEARD = 32 * 1024 * 1024
"""Approximate characters kept for the calls of one message; bounds memory. Beyond it only BRIEF_FIELDS are
kept."""


class ShownCall:
    """One call in a message, and its part."""

    def __init__(self, part: Part | None, data: CallData) -> None:
        self._part = part
        """None for a call before the first prompt, and for calls beyond MOST_CALLS."""
        self.data = data
        self.ours: OwnCall | None = None
        self.fields: Json = {}
        """The kept fields of the agent's updates."""
        self.diffs: list[Json] = []
        """The last diffs among them: many agents replace a diff by the output when the work is done."""
        self.heard = 0
        """The size of its largest update, in characters."""
        self._was_left_open = False
        """Whether the agent stopped while it was open."""
        self._ending: Ending | None = None
        """The outcome of our call for it."""

    @property
    def bound(self) -> bool:
        """Whether a call of ours does the work, rather than only allowing it."""
        return self.ours is not None and self.ours.tool not in ADVISORY

    @property
    def open(self) -> bool:
        return self.data["status"] in ("pending", "in_progress")

    def apply(self, update: Json, store_image: StoreImage) -> None:
        """Apply an update of the agent."""
        self.fields |= {key: update[key] for key in KEPT_FIELDS if update.get(key) is not None}
        diffs = [each for each in _limit_entries(update.get("content")) if each.get("type") == "diff"]
        self.diffs = diffs or self.diffs
        self.put(append_output(apply_update(self.data, update, store_image), update))

    def stop(self, stop: Stop) -> None:
        """Its agent has stopped."""
        self._was_left_open = self._was_left_open or self.open
        self.put(stop_call(self.data, stop))
        self._apply_outcome()

    def end(self, ending: Ending) -> None:
        """Our call for it has settled; the agent may still send its own status."""
        self._ending = ending
        self._apply_outcome()

    def _apply_outcome(self) -> None:
        """Without a final status from the agent, work that was not allowed was not done."""
        if self._was_left_open and self._ending in ("denied", "failed", "cancelled", "interrupted"):
            self.put({**self.data, "status": ENDED[self._ending]})

    def put(self, data: CallData) -> None:
        if data != self.data:
            self.data = data
            if self._part is not None:
                self._part.put(cast("Json", data))


class MessageCalls:
    """The calls of the current message and the one before."""

    def __init__(self, add: Callable[[Json], Part | None], store_image: StoreImage) -> None:
        """`add` appends a part to the message."""
        self._add = add
        self._store_image = store_image
        self._has_stopped = False
        self._kept_chars = 0
        """Approximate characters kept for this message's calls."""
        self._agent_calls: dict[str, ShownCall] = {}
        """This message's calls, by the agent's id."""
        self._previous_calls: dict[str, ShownCall] = {}
        """The previous message's calls: a call may begin there and end here."""
        self._unmentioned: list[ShownCall] = []
        """Calls of ours in this message that the agent has not mentioned."""
        self._own_calls: dict[str, ShownCall] = {}
        """Our unsettled calls of any message, by our id."""

    def begin(self) -> None:
        """Start the next message."""
        self._has_stopped = False
        self._kept_chars = 0
        self._previous_calls, self._agent_calls = self._agent_calls, {}
        self._unmentioned = []

    def end(self, stop: Stop) -> None:
        """The agent has stopped: close its open calls, except calls of ours that go on."""
        self._has_stopped = True
        for shown in self._agent_calls.values():
            if not (shown.bound and shown in self._own_calls.values()):
                shown.stop(stop)

    def update(self, id: str, update: Json, *, begins: bool) -> None:
        """Apply an update to the call with this id. With `begins`, the call belongs to this message."""
        shown = self._agent_calls.get(id)
        if shown is None and not begins:
            shown = self._previous_calls.get(id)
        kept_before = self._kept_chars
        update = self._limit_update(shown, update)
        if shown is None:
            data = apply_update(empty_call(id), update, self._store_image)
            shown = self._match_unmentioned(data) or self._add_call(data)
        shown.heard += self._kept_chars - kept_before
        shown.apply(update, self._store_image)

    def _limit_update(self, shown: ShownCall | None, update: Json) -> Json:
        """The update; reduced to BRIEF_FIELDS if the message has reached MOST_HEARD."""
        more = max(0, size(update) - (0 if shown is None else shown.heard))
        if self._kept_chars + more > MOST_HEARD:
            return {key: value for key, value in update.items() if key in BRIEF_FIELDS and size(value) < 2000}
        self._kept_chars += more
        return update

    def known_fields(self, id: str) -> Json:
        """The kept fields of the agent's updates about one of its calls."""
        shown = self.find(id)
        return {} if shown is None else shown.fields

    def running(self) -> list[ShownCall]:
        """The agent's own calls of this message that have begun and not ended."""
        return [shown for shown in self._agent_calls.values() if shown.open and not shown.bound]

    def find(self, id: str) -> ShownCall | None:
        """The call with this id of the agent, in this message or the one before."""
        return self._agent_calls.get(id) or self._previous_calls.get(id)

    def link(self, id: str, own_call: OwnCall) -> None:
        """Link a call of ours to the agent's call `id`, or to one it did not name."""
        shown = self.find(id) if id else self._find_agent_call(own_call)
        if shown is None or shown.bound:  # if one agent call causes several of ours, the first is linked
            shown = self._add_call(empty_call(id) if id and shown is None else call_from_own(own_call))
        shown.ours = own_call
        shown.put(link_call(shown.data, own_call))
        self._own_calls[own_call.id] = shown

    def settled(self, call: str, ending: Ending) -> None:
        """A call of ours has settled."""
        shown = self._own_calls.pop(call, None)
        if shown is None:
            return
        shown.end(ending)
        under_way = shown.data["id"] in self._agent_calls and not self._has_stopped
        if not shown.data["id"] or (
            shown.bound and not under_way
        ):  # otherwise the agent sends the final status
            shown.put(settle_call(shown.data, ending))

    def _match_unmentioned(self, data: CallData) -> ShownCall | None:
        """Find the call of ours that the agent now mentions, and link it."""
        for shown in self._unmentioned:
            if shown.ours is not None and is_about(data, shown.ours):
                self._unmentioned.remove(shown)
                self._agent_calls[data["id"]] = shown
                shown.put(link_call(data, shown.ours))
                return shown
        return None

    def _find_agent_call(self, own_call: OwnCall) -> ShownCall | None:
        """Find the agent's open call that is this call of ours."""
        for shown in self._agent_calls.values():
            if shown.open and not shown.bound and is_about(shown.data, own_call):
                return shown
        return None

    def _add_call(self, data: CallData) -> ShownCall:
        room = len(self._agent_calls) + len(self._unmentioned) < MOST_CALLS
        shown = ShownCall(self._add(cast("Json", data)) if room else None, data)
        if len(self._agent_calls) + len(self._unmentioned) >= 2 * MOST_CALLS:
            return shown  # too many to track
        if data["id"]:
            self._agent_calls[data["id"]] = shown
        else:
            self._unmentioned.append(shown)
        return shown
