"""One call as its agent tells of it: `tool_call` and `tool_call_update`, laid over each other, in our words.

Owns the data of call parts. Pure: what comes in any order, twice or in pieces gives a whole. It knows neither messages
nor what our own calls do; pictures it hands to whoever keeps them.
"""

import base64
import binascii
import re
from collections.abc import Callable
from typing import NamedTuple, cast, get_args

from pydantic import JsonValue

from handrail.agents.loose import bounded, cut, name, number, record, records, text
from handrail.store.part import CallData, CallSort, CallStatus, Content, Location
from handrail.store.value import Ending, Json, Stop

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
