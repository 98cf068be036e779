"""The calls that a message shows: what its agent tells of them, and which of them are ours.

Owns which part each call has, and what joins an agent's words to our call. It never awaits. It does not know what is
said beside them (recorder.py), nor what the data of a call means (telling.py).

One call as its agent tells of it: `tool_call` and `tool_call_update`, laid over each other, in our words.
"""

import base64
import binascii
import re
from collections.abc import Callable
from typing import NamedTuple, cast, get_args

from pydantic import JsonValue

from handrail.agents.lenient_json import bounded, cut, name, number, record, records, text
from handrail.store.threads.message import Part
from handrail.store.threads.parts import CallData, CallSort, CallStatus, Content, Location
from handrail.store.values import Ending, Json, Stop

Keep = Callable[[bytes], str | None]
"""Keeps a picture; returns its SHA-256, or None where there is no room for it."""

ADVISORY = ("agent_work", "agent_form")
"""The tools whose calls only say what the agent may do itself, or know."""
SAID = ("title", "kind", "status", "content", "locations", "rawInput")
"""What is remembered of a call in its agent's own words."""
BRIEF = ("toolCallId", "title", "kind", "status")
"""What is never too much of it: of a title, only the beginning is kept."""
MOST_PIECES = 200
"""Of one call's content or places; a list without end is somebody's mistake."""


class Ours(NamedTuple):
    """A call of ours, as far as a conversation shows it."""

    id: str
    tool: str
    title: str
    input: Json


def untold(id: str) -> CallData:
    """A call of which nothing is known but the agent's id."""
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


def told(data: CallData, update: Json, keep: Keep) -> CallData:
    """What is known once this update is heard: what it gives replaces what was, what it leaves out stays."""
    after = data.copy()
    after["title"] = cut(text(update.get("title")), 2000) or data["title"]
    after["sort"] = _sort(update.get("kind")) or data["sort"]
    after["status"] = _status(_own_status(update) or update.get("status"), data["status"])
    after["tool"] = data["tool"] or _tool(update)
    if update.get("content") is not None:
        after["content"] = [c for each in _most(update["content"]) for c in _content(each, keep)]
    if update.get("locations") is not None:
        after["locations"] = [_location(each) for each in _most(update["locations"])]
    if update.get("rawInput") is not None:
        after["input"] = bounded(update["rawInput"])
    if update.get("rawOutput") is not None:
        after["output"] = bounded(update["rawOutput"])
    return after


def size(value: JsonValue) -> int:
    """Characters, about."""
    match value:
        case str():
            return len(value)
        case list():
            return len(value) + sum(map(size, value))
        case dict():
            return sum(len(key) + size(inner) for key, inner in value.items())
        case _:
            return 1


def linked(data: CallData, ours: Ours) -> CallData:
    """It is this call of ours."""
    return {**data, "call": ours.id, "tool": ours.tool, "title": data["title"] or ours.title}


def own(ours: Ours) -> CallData:
    """A call of ours that no agent spoke of."""
    return {**linked(untold(""), ours), "status": "in_progress", "input": bounded(ours.input)}


def stopped(data: CallData, stop: Stop) -> CallData:
    """The agent has stopped: what it left open ended with it. One that ended in good order had what it wanted."""
    if data["status"] not in ("pending", "in_progress"):
        return data
    ended: CallStatus = (
        "cancelled" if stop == "cancelled" else "failed" if stop in ("failed", "interrupted") else "completed"
    )
    return {**data, "status": ended}


def settled(data: CallData, ending: Ending) -> CallData:
    """Our call has its outcome, and the agent says nothing about it any more."""
    return data if data["status"] not in ("pending", "in_progress") else {**data, "status": ENDED[ending]}


def speaks_of(data: CallData, ours: Ours) -> bool:
    """Whether what an agent told is about this call of ours, which it made without saying so."""
    if _names(data, ours.tool):
        return data["input"] in (None, {}, ours.input)
    wanted = _SORTS.get(ours.tool, ())
    return data["sort"] in wanted and any(thing in _things(data) for thing in _things_of(ours))


ENDED: dict[Ending, CallStatus] = {
    "done": "completed",
    "completed": "completed",
    "failed": "failed",
    "denied": "failed",
    "interrupted": "failed",
    "cancelled": "cancelled",
}
_SORTS: dict[str, tuple[CallSort, ...]] = {
    "execute_command": ("execute",),
    "write_file": ("edit",),
    "read_text_file": ("read",),
}
"""What agents call the work that they do through our hands."""


def _names(data: CallData, tool: str) -> bool:
    """`mcp__handrail__read_file`, `handrail_read_file`, `handrail/read_file`: the name stands at the end."""
    pattern = rf"(?:^|[^A-Za-z0-9]){re.escape(tool)}(?:\W.*)?$"
    return any(re.search(pattern, told) for told in (data["title"], data["tool"]) if told)


def _things(data: CallData) -> list[str]:
    """The lines and paths that an agent's words are about."""
    given = record(data["input"])
    found = [text(given.get(key)) for key in ("command", "cmd", "path", "file_path", "filePath", "abs_path")]
    found += [each["path"] for each in data["locations"]]
    found += [each["path"] for each in data["content"] if each["kind"] == "diff"]
    return [*filter(None, found), data["title"].strip("`")]


def _things_of(ours: Ours) -> list[str]:
    found = [text(ours.input.get(key)) for key in ("command", "path")]
    return [each for each in found if each]


def _most(value: JsonValue) -> list[Json]:
    return records(value)[:MOST_PIECES]


def _sort(value: object) -> CallSort | None:
    return cast("CallSort", value) if value in get_args(CallSort) else None


def _status(value: object, before: CallStatus) -> CallStatus:
    """What has ended does not begin again: an update may come twice, or late."""
    if value not in get_args(CallStatus):
        return before
    given = cast("CallStatus", value)
    over = before not in ("pending", "in_progress")
    if (over and given in ("pending", "in_progress")) or (before == "in_progress" and given == "pending"):
        return before
    return given


def _own_status(update: Json) -> CallStatus | None:
    """Our own agent says `cancelled`, for which the protocol has no word."""
    told = record(record(update.get("_meta")).get("handrail")).get("status")
    return "cancelled" if told == "cancelled" else None


def _tool(update: Json) -> str:
    """The agent's name for its tool, which some give beside the specification."""
    meta = record(update.get("_meta"))
    near = [meta, *(record(each) for each in meta.values())]
    return next((text(each.get("toolName")) for each in near if text(each.get("toolName"))), "")


def _location(given: Json) -> Location:
    line = number(given.get("line"))
    path = text(given.get("path"))
    return {"path": path} if line is None else {"path": path, "line": line}


def _content(given: Json, keep: Keep) -> list[Content]:
    match given.get("type"):
        case "diff":
            old = given.get("oldText")
            before = cut(text(old)) if isinstance(old, str) else None
            after = cut(text(given.get("newText")))
            return [{"kind": "diff", "path": text(given.get("path")), "old": before, "new": after}]
        case "terminal":
            return [{"kind": "terminal", "terminal": name(given.get("terminalId"))}]
        case _:
            return _block(record(given.get("content")) or given, keep)


def _block(block: Json, keep: Keep) -> list[Content]:
    if block.get("type") == "image" and (shown := picture(block, keep)) is not None:
        return [{"kind": "image", "image": shown[0], "mime": shown[1]}]
    words = (
        text(block.get("text")) or text(record(block.get("resource")).get("text")) or text(block.get("uri"))
    )
    return [{"kind": "text", "text": cut(words)}] if words else []


def picture(block: Json, keep: Keep) -> tuple[str, str] | None:
    """The hash and the kind of a picture in a content block; None when it holds none."""
    try:
        content = base64.b64decode(text(block.get("data")), validate=True)
    except (binascii.Error, ValueError):
        return None
    kept = keep(content) if content else None
    return None if kept is None else (kept, text(block.get("mimeType")) or "image/png")


MOST_CALLS = 5_000
"""Calls that one message shows; nobody reads more."""
MOST_HEARD = 32 * 1024 * 1024
"""Characters that are kept of what is told of the calls of one message, about; of what is told beyond, only the rest."""


class Shown:
    """One call, and the part it has."""

    def __init__(self, part: Part | None, data: CallData) -> None:
        self._part = part
        """None of a call that an agent speaks of before anybody prompted it, and of one too many."""
        self.data = data
        self.ours: Ours | None = None
        self.said: Json = {}
        """The agent's own words."""
        self.heard = 0
        """The most characters it was told in at once."""
        self._left = False
        """Its agent stopped without a word on how it ended."""
        self._ending: Ending | None = None
        """How our call for it ended."""

    @property
    def bound(self) -> bool:
        """It is a call of ours that does the work itself; not merely one that allowed it."""
        return self.ours is not None and self.ours.tool not in ADVISORY

    @property
    def open(self) -> bool:
        return self.data["status"] in ("pending", "in_progress")

    def hear(self, update: Json, keep: Keep) -> None:
        """The agent says more of it."""
        self.said |= {key: update[key] for key in SAID if update.get(key) is not None}
        self.put(told(self.data, update, keep))

    def stop(self, stop: Stop) -> None:
        """Its agent has stopped, and says no more of it."""
        self._left = self._left or self.open
        self.put(stopped(self.data, stop))
        self._judge()

    def end(self, ending: Ending) -> None:
        """Our call for it has its outcome; the agent may still tell what it made of that."""
        self._ending = ending
        self._judge()

    def _judge(self) -> None:
        """What was not allowed was not done, where nobody says otherwise."""
        if self._left and self._ending in ("denied", "failed", "cancelled", "interrupted"):
            self.put({**self.data, "status": ENDED[self._ending]})

    def put(self, data: CallData) -> None:
        if data != self.data:
            self.data = data
            if self._part is not None:
                self._part.put(cast("Json", data))


class Calls:
    """The calls of the message that is being said, and of the one before."""

    def __init__(self, add: Callable[[Json], Part | None], keep: Keep) -> None:
        """`add` makes a new part of the message."""
        self._add = add
        self._keep = keep
        self._over = False
        self._heard = 0
        """Characters of what is kept of this message's calls, about."""
        self._told: dict[str, Shown] = {}
        """By the agent's ids, of this message."""
        self._before: dict[str, Shown] = {}
        """The same of the message before: what was begun there may end here."""
        self._untold: list[Shown] = []
        """Calls of ours in this message of which its agent has not spoken."""
        self._ours: dict[str, Shown] = {}
        """By our ids, those without an outcome, of any message."""

    def begin(self) -> None:
        """The next message begins."""
        self._over = False
        self._heard = 0
        self._before, self._told = self._told, {}
        self._untold = []

    def end(self, stop: Stop) -> None:
        """The agent has stopped: what it left open ended with it, but for calls of ours that go on."""
        self._over = True
        for shown in self._told.values():
            if not (shown.bound and shown in self._ours.values()):
                shown.stop(stop)

    def told(self, id: str, update: Json, *, begins: bool) -> None:
        """An agent tells of the call that it knows by this id. One that begins is of this message."""
        shown = self._told.get(id)
        if shown is None and not begins:
            shown = self._before.get(id)
        heard = self._heard
        update = self._bounded(shown, update)
        if shown is None:
            data = told(untold(id), update, self._keep)
            shown = self._adopt(data) or self._show(data)
        shown.heard += self._heard - heard
        shown.hear(update, self._keep)

    def _bounded(self, shown: Shown | None, update: Json) -> Json:
        """All of it; or where too much was told of the calls of one message, what it is and how it went."""
        more = max(0, size(update) - (0 if shown is None else shown.heard))
        if self._heard + more > MOST_HEARD:
            return {key: value for key, value in update.items() if key in BRIEF and size(value) < 2000}
        self._heard += more
        return update

    def said(self, id: str) -> Json:
        """What the agent has said of a call of its own, in its own words."""
        shown = self._told.get(id) or self._before.get(id)
        return {} if shown is None else shown.said

    def link(self, id: str, ours: Ours) -> None:
        """Link a call of ours to the agent's call `id`, or to one it did not name."""
        shown = self._told.get(id) if id else self._spoken(ours)
        if shown is None or shown.bound:  # of several things that one call does, the first stands for it
            shown = self._show(untold(id) if id and shown is None else own(ours))
        shown.ours = ours
        shown.put(linked(shown.data, ours))
        self._ours[ours.id] = shown

    def settled(self, call: str, ending: Ending) -> None:
        """A call of ours has its outcome."""
        shown = self._ours.pop(call, None)
        if shown is None:
            return
        shown.end(ending)
        under_way = shown.data["id"] in self._told and not self._over
        if not shown.data["id"] or (shown.bound and not under_way):  # else its agent says how it ends
            shown.put(settled(shown.data, ending))

    def _adopt(self, data: CallData) -> Shown | None:
        """The call of ours that is shown already and that the agent now speaks of."""
        for shown in self._untold:
            if shown.ours is not None and speaks_of(data, shown.ours):
                self._untold.remove(shown)
                self._told[data["id"]] = shown
                shown.put(linked(data, shown.ours))
                return shown
        return None

    def _spoken(self, ours: Ours) -> Shown | None:
        """The call that an agent spoke of and that is this one of ours; the first one still open."""
        for shown in self._told.values():
            if shown.open and not shown.bound and speaks_of(shown.data, ours):
                return shown
        return None

    def _show(self, data: CallData) -> Shown:
        room = len(self._told) + len(self._untold) < MOST_CALLS
        shown = Shown(self._add(cast("Json", data)) if room else None, data)
        if len(self._told) + len(self._untold) >= 2 * MOST_CALLS:
            return shown  # nobody asks for it again
        if data["id"]:
            self._told[data["id"]] = shown
        else:
            self._untold.append(shown)
        return shown
