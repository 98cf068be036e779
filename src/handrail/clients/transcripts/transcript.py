"""A client's conversation in plain terms, and the builder that each format's reader fills.

Everything is bounded: a transcript is another program's file, and may have any size and content. No I/O here.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, cast

from pydantic import JsonValue

Json = dict[str, JsonValue]
ClientName = Literal["claude", "codex", "gemini", "opencode"]

MOST_MESSAGES = 2000
"""Messages of one transcript; bounds the response and the page."""
MOST_TEXT = 4_000_000
"""Characters of one transcript; bounds the response."""
LONGEST_TEXT = 60_000
"""Characters of one part; bounds what a single output can take of MOST_TEXT."""
LONGEST_TITLE = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptSummary:
    """A transcript in a list."""

    client: ClientName
    session: str
    """The client's own id of the conversation."""
    title: str
    """The first prompt, or the client's own title."""
    folder: str
    updated_at: int
    size: int | None
    """Bytes of the file; None if one file holds all conversations."""


@dataclass(slots=True, kw_only=True)
class TranscriptCall:
    """A tool call, as the client recorded it."""

    id: str
    tool: str
    input: JsonValue
    output: str = ""
    ended: bool = False
    failed: bool = False


@dataclass(frozen=True, slots=True)
class TranscriptPart:
    """A part of a message. Exactly one of text and call is used."""

    kind: Literal["text", "thought", "note", "call"]
    text: str = ""
    call: TranscriptCall | None = None

    @property
    def length(self) -> int:
        return len(self.text) if self.call is None else len(self.call.output) + len(repr(self.call.input))


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptMessage:
    """A prompt, or everything that the agent did until the next prompt."""

    role: Literal["user", "assistant"]
    at: int
    """Milliseconds since 1970; 0 if the file does not tell."""
    parts: list[TranscriptPart] = field(default_factory=list[TranscriptPart])


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """A whole conversation."""

    messages: list[TranscriptMessage]
    skipped: int
    """Lines that this Handrail does not understand."""
    shortened: bool
    """Older messages were left out, because there are too many."""


class TranscriptBuilder:
    """Collects the parts of a conversation in order. Parts of the agent become one message until the next prompt."""

    def __init__(self) -> None:
        self.skipped = 0
        self.shortened = False
        self._messages: list[TranscriptMessage] = []
        self._calls: dict[str, TranscriptCall] = {}

    def add_prompt(self, text: str, at: int) -> None:
        if text.strip():
            part = TranscriptPart("text", cut_text(text))
            self._messages.append(TranscriptMessage(role="user", at=at, parts=[part]))

    def add(self, kind: Literal["text", "thought", "note"], text: str, at: int) -> None:
        if text.strip():
            self._answer(at).parts.append(TranscriptPart(kind, cut_text(text)))

    def add_call(self, id: str, tool: str, input: JsonValue, at: int) -> None:
        call = TranscriptCall(id=id, tool=tool or "tool", input=cut_json(input))
        self._calls[id] = call
        self._answer(at).parts.append(TranscriptPart("call", call=call))

    def add_result(self, id: str, output: str, *, failed: bool = False) -> None:
        """Set the result of a call; a result of an unknown call belongs to a part that was left out."""
        call = self._calls.get(id)
        if call is not None:
            call.output, call.ended, call.failed = cut_text(output), True, failed

    def build(self) -> Transcript:
        """The newest messages that fit the bounds."""
        kept: list[TranscriptMessage] = []
        room = MOST_TEXT
        for message in reversed(self._messages[-MOST_MESSAGES:]):
            room -= sum(part.length for part in message.parts)
            if room < 0 and kept:
                break
            kept.append(message)
        shortened = self.shortened or len(kept) < len(self._messages)
        return Transcript(messages=kept[::-1], skipped=self.skipped, shortened=shortened)

    def _answer(self, at: int) -> TranscriptMessage:
        if not self._messages or self._messages[-1].role == "user":
            self._messages.append(TranscriptMessage(role="assistant", at=at))
        return self._messages[-1]


def read_json_lines(content: bytes, builder: TranscriptBuilder) -> Iterator[Json]:
    """The JSON objects in a JSON Lines file. Other lines are counted as skipped."""
    for line in content.split(b"\n"):
        if line.strip():
            record = parse_json(line)
            if isinstance(record, dict):
                yield record
            else:
                builder.skipped += 1


def parse_json(raw: bytes | str) -> JsonValue:
    """The parsed JSON; None if it is invalid."""
    try:
        return cast("JsonValue", json.loads(raw))
    except (ValueError, RecursionError):
        return None


def get_object(value: JsonValue, name: str) -> Json:
    """A field that should hold an object; empty if it does not."""
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def get_list(value: JsonValue, name: str) -> list[JsonValue]:
    """A field that should hold an array; empty if it does not."""
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []


def get_text(value: JsonValue, name: str) -> str:
    """A field that should hold a string; empty if it does not."""
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


def join_texts(content: JsonValue) -> str:
    """The text of content that is a string, a block with `text`, or an array of such blocks."""
    match content:
        case str():
            return content
        case list():
            return "\n".join(filter(None, (join_texts(block) for block in content)))
        case dict():
            return get_text(content, "text")
        case _:
            return ""


def parse_time(text: str) -> int:
    """Milliseconds since 1970 of an ISO 8601 time; 0 if it is invalid."""
    try:
        return max(0, int(datetime.fromisoformat(text).timestamp() * 1000))
    except (ValueError, OverflowError, OSError):
        return 0


def cut_text(text: str) -> str:
    """The text within LONGEST_TEXT: its beginning and its end, and how much is missing between them."""
    if len(text) <= LONGEST_TEXT:
        return text
    half = LONGEST_TEXT // 2
    return f"{text[:half]}\n… {len(text) - 2 * half:,} characters are left out …\n{text[-half:]}"


def cut_json(value: JsonValue) -> JsonValue:
    """The value, or the beginning of its JSON if that is longer than LONGEST_TEXT."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "… nested too deeply …"
    return value if len(text) <= LONGEST_TEXT else cut_text(text)


def title_from_prompt(prompt: str) -> str:
    """A title in one line."""
    line = " ".join(prompt[: 4 * LONGEST_TITLE].split())
    return line if len(line) <= LONGEST_TITLE else f"{line[: LONGEST_TITLE - 1]}…"
