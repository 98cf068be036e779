"""What the data of each kind of part holds: the shapes that recorder, page, command line and export agree on.

Owns the fields; a part of kind text or thought has none. It does not know how agents say these things.
"""

from typing import Literal, NotRequired

from typing_extensions import TypedDict

CallStatus = Literal["pending", "in_progress", "completed", "failed", "cancelled"]
CallSort = Literal[
    "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"
]


class TextContent(TypedDict):
    """Words an agent's work gave back."""

    kind: Literal["text"]
    text: str


class DiffContent(TypedDict):
    """A change the agent says it makes; shown as its word, never as what is on disk."""

    kind: Literal["diff"]
    path: str
    old: str | None
    new: str


class TerminalContent(TypedDict):
    """A terminal to watch."""

    kind: Literal["terminal"]
    terminal: str


class ImageContent(TypedDict):
    """A picture, kept by its hash."""

    kind: Literal["image"]
    image: str
    mime: str


Content = TextContent | DiffContent | TerminalContent | ImageContent


class Location(TypedDict):
    path: str
    line: NotRequired[int]


class CallData(TypedDict):
    """A part of kind call: what an agent says it does, and our own call where there is one."""

    id: str
    """The agent's; empty when it never spoke of it, and only our call is known."""
    title: str
    sort: CallSort
    status: CallStatus
    call: str | None
    """Ours: its status, output, diff and verbs are shown from the call itself."""
    tool: str
    """Ours, of the call; or the agent's name for its own."""
    locations: list[Location]
    content: list[Content]
    input: object
    output: object


class PlanEntry(TypedDict):
    content: str
    priority: str
    status: str


class PlanData(TypedDict):
    """A part of kind plan."""

    entries: list[PlanEntry]


class ImageData(TypedDict):
    """A part of kind image: never the bytes."""

    image: str
    """Its SHA-256; `GET /api/images/SHA`."""
    mime: str


class FileData(TypedDict):
    """A part of kind file: something a message points to."""

    uri: str
    name: str


class ErrorData(TypedDict):
    """A part of kind error; its text is the sentence."""

    said: list[str]
    """The agent's last lines of standard error."""
    logins: list[dict[str, str]]
    """Ways to log in, where that is what is missing: id, name, description, command."""


class RawData(TypedDict):
    """A part of kind raw: an update of a kind that we do not know, as it came."""

    update: object
