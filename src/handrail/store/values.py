"""What events are made of: who calls, what a call would touch, how it is shown, and what came of it.

Owns the small values that are written to disk and sent to followers inside events (event.py). It knows none of the
facts themselves.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, JsonValue

Json = dict[str, JsonValue]

SERVED = ConfigDict(extra="forbid")
"""Config of records that the API returns as they are: like all its schemas, theirs allow no other fields."""
Position = Annotated[int, Field(ge=0, le=(1 << 63) - 1)]
"""A place in the journal or in an output; the database and the file system count no further."""

Action = Literal["read", "write", "delete", "run", "connect", "type", "stop", "recall"]
Effect = Literal["allow", "ask", "deny"]
Scope = Literal["session", "project", "user"]
Risk = Literal["low", "medium", "high"]
Ending = Literal["done", "failed", "denied", "cancelled", "completed", "interrupted"]
Assurance = Literal["bound", "forwarded", "advisory"]
AnswerKind = Literal["allow", "deny"]
TerminalKind = Literal["command", "tracked", "shell"]
"""Of one call; opened to stay, by an agent or on the page; or a person's own, by `handrail shell`."""
Sure = Literal["certain", "likely"]
Role = Literal["user", "assistant", "system"]
PartKind = Literal["text", "thought", "call", "plan", "image", "file", "note", "error", "raw"]
"""What a message is made of. A note is ours, to both; raw is what an agent sent that we do not understand."""
Stop = Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled", "failed", "interrupted"]
"""Why an agent stopped; failed is its error, interrupted the daemon's end."""
ActivitySort = Literal["operation", "step", "model", "thinking", "call", "agent", "compaction"]
"""What an operation may be busy with, where its agent tells: our own does."""
ActivityEnding = Literal["done", "failed", "cancelled", "interrupted"]
Handover = Literal["new", "known", "resumed", "loaded", "transcript"]
"""How an agent knows what was said before: there was nothing, it has the session open, it took its own record up again,
it read that record out to us, or it was sent a summary of ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who made a call, and from where."""

    door: Literal["stdio", "http", "acp", "page", "cli"]
    client: str
    """The name the client gave itself; never trusted, only shown."""
    key: str
    """Which client this is, over reconnects: the same key asking the same thing again gets the same call."""
    workspace: str | None
    """The folder its paths are relative to; None when it has none, and then everything asks."""
    thread: str | None = None
    operation: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One thing a call would touch."""

    action: Action
    resource: str
    inside: bool
    """Lies within the caller's workspace."""
    protected: bool = False
    """Is one of the places that are never allowed without a person."""
    words: tuple[str, ...] = ()
    """A command's part as the words the program gets, its own name first; empty where they are not known."""
    opaque: str = ""
    """Why it is not fully understood, in words; then no rule allows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What was decided about one claim."""

    claim: int
    """Its place among the call's claims."""
    effect: Effect
    rule: str
    """A rule's id, or the name of a built-in one."""
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A standing answer: which claims it is about, of whom, for how long, and where it came from."""

    id: str
    effect: Effect
    tool: str | None = None
    command: str | None = None
    """The words a command's part begins with: `git status`, `npm run test:*`, `make $` (and nothing more)."""
    path: str | None = None
    """A glob, relative to the workspace or absolute: `src/**`, `*.md`."""
    host: str | None = None
    server: str | None = None
    agent: str | None = None
    """A client's name, as it calls itself; may hold `*`."""
    scope: Scope = "user"
    workspace: str | None = None
    """The folder it holds in; None holds in every trusted one."""
    session: str | None = None
    """The caller's key it holds for, of scope session."""
    expires_at: int | None = None
    """Milliseconds since 1970."""
    source: str = ""
    """A file and line, or the answer it was made with."""
    note: str = ""
    match: tuple[str, ...] = ()
    not_match: tuple[str, ...] = ()
    """Examples that were checked when it was made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """One file: what it held, and what is put there. Contents are named by their SHA-256; None is no file."""

    path: str
    before: str | None
    after: str | None
    mode: int | None = None
    """Of the file before."""
    made: tuple[str, ...] = ()
    """Folders that are made for it, outermost first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """What a person says about a line of a proposal."""

    line: int
    """Of the proposed file, counted from 1."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandPreview:
    """A command as it will run."""

    kind: Literal["command"] = "command"
    command: str
    cwd: str
    program: str
    environment: tuple[str, ...] = ()
    """Names of the variables the call adds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffPreview:
    """A file change as it will be written."""

    kind: Literal["diff"] = "diff"
    path: str
    diff: str
    added: int
    removed: int
    creates: bool = False
    deletes: bool = False
    notes: tuple[str, ...] = ()
    """What a diff cannot show: line endings, mode, encoding, a symbolic link followed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathPreview:
    """A path as it will be opened."""

    kind: Literal["path"] = "path"
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InputPreview:
    """Input as it will be typed into a terminal."""

    kind: Literal["input"] = "input"
    terminal: str
    name: str
    """The terminal's, as people see it."""
    text: str
    """Everything that is typed, keys as the characters they send."""
    keys: tuple[str, ...] = ()
    """The named keys among it, after the text."""
    cwd: str
    foreground: str
    """The program that will read it."""
    owner: str
    """Whose terminal it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormPreview:
    """Questions that an agent puts to a person, who answers by an edit of the input's `values`."""

    kind: Literal["form"] = "form"
    message: str
    schema: Json
    """Of an object with plain fields: JSON Schema, as the agent sent it."""


Preview = Annotated[
    CommandPreview | DiffPreview | PathPreview | InputPreview | FormPreview, Field(discriminator="kind")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Whose a terminal is."""

    person: bool
    name: str
    """A client's name, or how the person opened it."""
    workspace: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalSent:
    """A signal that was sent to a call's processes."""

    signal: str
    after_ms: int
    """Since the stop began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSeen:
    """A process that a stop met."""

    pid: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What ending a call really did; facts only."""

    ended_by: str
    stopped: bool
    signals: tuple[SignalSent, ...] = ()
    processes_stopped: tuple[ProcessSeen, ...] = ()
    processes_left: tuple[ProcessSeen, ...] = ()
    bytes_kept: int = 0
    files_changed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a tool gives back: words for a model, and the same as data."""

    text: str
    data: Json
