"""Schemas of the data of message parts, by kind; shared by recorder, page, command line and export.

Parts of kind text, thought and note have no data. Does not know agent protocols.
"""

from typing import Literal, NotRequired

from typing_extensions import TypedDict

CallStatus = Literal["pending", "in_progress", "completed", "failed", "cancelled"]
CallKind = Literal[
    "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"
]


class TextContent(TypedDict):
    """Text output of an agent's call."""

    kind: Literal["text"]
    text: str


class DiffContent(TypedDict):
    """A file change as reported by the agent; not verified against the disk."""

    kind: Literal["diff"]
    path: str
    old: str | None
    new: str


class TerminalContent(TypedDict):
    """A terminal that shows the call's output."""

    kind: Literal["terminal"]
    terminal: str


class ImageContent(TypedDict):
    """An image, stored by its hash."""

    kind: Literal["image"]
    image: str
    mime: str


Content = TextContent | DiffContent | TerminalContent | ImageContent


class Location(TypedDict):
    path: str
    line: NotRequired[int]


class CallData(TypedDict):
    """A part of kind call: the agent's report of a tool call, and Handrail's call if linked."""

    id: str
    """The agent's id; empty when the agent did not report it and only Handrail's call is known."""
    title: str
    sort: CallKind
    status: CallStatus
    call: str | None
    """Handrail's call id; if set, status, output and diff are shown from that call."""
    tool: str
    """The tool of Handrail's call, or the agent's name for its own tool."""
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
    """A part of kind image; the bytes are in the blob store."""

    image: str
    """Its SHA-256, for `GET /api/images/SHA`."""
    mime: str


class FileData(TypedDict):
    """A part of kind file: a link to a resource."""

    uri: str
    name: str


class ErrorData(TypedDict):
    """A part of kind error; the part's text is the error message."""

    said: list[str]
    """The last lines of the agent's standard error."""
    logins: list[dict[str, str]]
    """Login methods, if the agent needs a login: id, name, description, command."""


class RawData(TypedDict):
    """A part of kind raw: an agent's update of unknown kind, unchanged."""

    update: object
