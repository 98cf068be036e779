"""Markdown of an exported thread, for reading and sharing.

Pure. Messages are copied verbatim; a call becomes one line, with its output in a fenced block.
"""

import difflib
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import cast

from handrail.store.export import Export, ExportedMessage, ExportedPart
from handrail.store.values import Json

_DIFF_MAX = 200_000
"""Characters above which no diff is computed: bounds the time it takes."""


def as_markdown(export: Export) -> str:
    about = export.thread
    facts = [about.agent, about.workspace or "", _time(about.created_at)]
    head = [f"# {_line(about.title) or 'Untitled'}", f"*{' · '.join(_line(fact) for fact in facts if fact)}*"]
    return "\n\n".join([*head, *(block for message in export.messages for block in _message(message))]) + "\n"


def _message(message: ExportedMessage) -> Iterator[str]:
    who = "You" if message.role == "user" else message.agent or message.role
    yield f"## {_line(who)} · {_time(message.opened_at)}"
    for part in message.parts:
        yield from filter(None, (block.strip("\n") for block in _part(part)))
    if message.stop not in {"end_turn", None}:
        yield f"*{_STOPS.get(str(message.stop), str(message.stop))}*"


def _part(part: ExportedPart) -> Iterator[str]:
    match part.kind:
        case "text":
            yield part.text
        case "thought":
            yield f"<details><summary>Thought</summary>\n\n{part.text}\n\n</details>"
        case "call":
            yield from _call(part)
        case "plan":
            entries = cast("list[Json]", part.data.get("entries") or [])
            yield "\n".join(_entry(entry) for entry in entries)
        case "image":
            yield f"*A picture ({part.data.get('mime')}, {str(part.data.get('image'))[:12]}…), not part of this file*"
        case "file":
            yield f"*File: {_line(str(part.data.get('uri')))}*"
        case "note":
            yield f"> {_line(part.text)}"
        case "error":
            yield f"**Error:** {_line(part.text)}"
            yield _fenced("\n".join(cast("list[str]", part.data.get("said") or [])))
        case "raw":
            return


def _call(part: ExportedPart) -> Iterator[str]:
    data = part.data
    yield f"- **{_line(str(data.get('title') or data.get('tool') or 'A call'))}** · {data.get('status', '')}"
    for content in cast("list[Json]", data.get("content") or []):
        if content.get("kind") == "diff":
            yield _diff(
                str(content.get("path")), str(content.get("old") or ""), str(content.get("new") or "")
            )
        elif content.get("kind") == "text":
            yield _fenced(str(content.get("text")))
    if isinstance(output := data.get("output"), str):
        yield _fenced(output)


def _entry(entry: Json) -> str:
    return f"- [{'x' if entry.get('status') == 'completed' else ' '}] {_line(str(entry.get('content')))}"


def _diff(path: str, old: str, new: str) -> str:
    if len(old) + len(new) > _DIFF_MAX:
        return f"*{_line(path)}: a change too long to show*"
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), path, path, lineterm="")
    return _fenced("\n".join(lines), "diff")


def _fenced(text: str, language: str = "") -> str:
    """Fence the text with more backticks than any run inside it."""
    if not text.strip():
        return ""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def _line(text: str) -> str:
    return " ".join(text.split())


def _time(at: int) -> str:
    """Format a time; empty when it is out of the calendar's range."""
    try:
        return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (ValueError, OverflowError, OSError):
        return ""


_STOPS = {
    "max_tokens": "Stopped: the answer reached its greatest length.",
    "max_turn_requests": "Stopped: the greatest number of requests was reached.",
    "refusal": "The agent refused to go on.",
    "cancelled": "Cancelled.",
    "failed": "Failed.",
    "interrupted": "Interrupted: Handrail ended meanwhile.",
}
