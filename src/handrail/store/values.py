"""Value types inside events: callers, claims, rules, previews, file changes, receipts, results.

They are written to disk and sent to followers as part of events. The events are in the module of each noun.
"""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, JsonValue

from handrail.lazy_dataclass import dataclass

Json = dict[str, JsonValue]

SERVED = ConfigDict(extra="forbid")
"""Config of records that the API returns unchanged: their JSON schema forbids extra fields."""
Position = Annotated[int, Field(ge=0, le=(1 << 63) - 1)]
"""A position in the journal or in an output: a signed 64-bit integer in SQLite and the file system."""

Action = Literal["read", "write", "delete", "run", "connect", "type", "stop", "recall", "plan"]
"""plan: an agent's own notes, such as a to-do list. It touches nothing outside of the agent."""
Effect = Literal["allow", "ask", "deny"]
Scope = Literal["session", "project", "user"]
Risk = Literal["low", "medium", "high"]
Ending = Literal["done", "failed", "denied", "cancelled", "completed", "interrupted"]
Assurance = Literal["bound", "forwarded", "advisory"]
AnswerKind = Literal["allow", "deny"]
TerminalKind = Literal["command", "tracked", "shell"]
"""command: runs for one call. tracked: outlives the call, opened by an agent or on the page. shell: a person's
`handrail shell`."""
Certainty = Literal["certain", "likely"]
Role = Literal["user", "assistant", "system"]
PartKind = Literal["text", "thought", "call", "plan", "image", "file", "note", "error", "raw"]
"""Kinds of message parts. note: from Handrail, for person and agent. raw: an agent's update of unknown kind."""
Stop = Literal[
    "end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled", "failed", "interrupted", "steered"
]
"""Why an agent stopped. failed: it reported an error. interrupted: the daemon ended. steered: it did not stop; it was
given a message while it worked, and its answer goes on after that message."""
ActivityKind = Literal["operation", "step", "model", "thinking", "call", "agent", "compaction"]
"""Kinds of activities in an operation. Only agents that report them have any: our own agent does."""
ActivityEnding = Literal["done", "failed", "cancelled", "interrupted"]
Handover = Literal["new", "known", "resumed", "loaded", "forked", "transcript"]
"""How an agent got the earlier messages. new: there are none. known: its session is still open. resumed: it resumed its
stored session. loaded: it replayed its stored session to us. forked: it copied the session of the thread that was forked.
transcript: we sent it a summary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The client that made a call, and its context."""

    door: Literal["stdio", "http", "acp", "page", "cli", "hook"]
    client: str
    """The name the client reported; shown, never trusted."""
    key: str
    """Identifies the client across reconnects: a repeated request with the same key gets the same call."""
    workspace: str | None
    """The folder its paths are relative to. Without one (None), every call needs approval."""
    thread: str | None = None
    operation: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One action on one resource that a call would perform."""

    action: Action
    resource: str
    inside: bool
    """The resource is within the caller's workspace."""
    protected: bool = False
    """The resource is in a protected place: only a person may allow it."""
    words: tuple[str, ...] = ()
    """The argv of this part of a command, the program's name first; empty when unknown."""
    opaque: str = ""
    """Why the claim could not be analysed fully; if set, no rule allows it."""
    calm: bool = False
    """It is not analysed fully, but all its commands only print, test or wait."""
    reads: bool = False
    """It is a part of a command line that provably only reads files in the workspace and prints."""
    server: str = ""
    """The MCP server that would do it; empty for what Handrail or the agent does."""
    arguments: tuple[tuple[str, str | None], ...] = ()
    """What that server is given, as rules match it: flat names and their text; None for what cannot be compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The decision about one claim."""

    claim: int
    """The index among the call's claims."""
    effect: Effect
    rule: str
    """The rule's id, or the name of a built-in rule."""
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A standing answer: the claims and clients it matches, its scope, expiry and origin."""

    id: str
    effect: Effect
    tool: str | None = None
    command: str | None = None
    """The leading words of a command's part: `git status`, `npm run test:*`, `make $` (`$`: no further words)."""
    path: str | None = None
    """A glob, relative to the workspace or absolute: `src/**`, `*.md`."""
    host: str | None = None
    server: str | None = None
    arguments: tuple[tuple[str, str], ...] = ()
    """Arguments of a forwarded call and their globs; all of them must match."""
    agent: str | None = None
    """A client's reported name; may contain `*`."""
    scope: Scope = "user"
    workspace: str | None = None
    """The folder it applies in; None: every trusted folder."""
    session: str | None = None
    """The caller's key it applies to; for scope session."""
    expires_at: int | None = None
    """Milliseconds since 1970."""
    source: str = ""
    """A file and line, or the approval answer that created it."""
    note: str = ""
    match: tuple[str, ...] = ()
    not_match: tuple[str, ...] = ()
    """Examples that were checked when the rule was created."""
    disabled: bool = False
    """A person switched it off; it stays in the list."""
    rank: int = 0
    """Its place among rules of the same effect and scope, from 1; 0: after those, in the order they were made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """The old and new content of one file, as SHA-256 hashes; None: the file does not exist."""

    path: str
    before: str | None
    after: str | None
    mode: int | None = None
    """The mode of the old file."""
    made: tuple[str, ...] = ()
    """Folders created for it, outermost first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """A person's comment on one line of a proposed file."""

    line: int
    """Line number in the proposed file, from 1."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandPreview:
    """A command as it will run."""

    kind: Literal["command"] = "command"
    command: str
    cwd: str
    program: str
    environment: tuple[str, ...] = ()
    """The variables the call adds: `NAME=value` if that changes only the display, else the name alone."""


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
    """Changes that a diff cannot show: line endings, mode, encoding, a followed symlink."""


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
    """The terminal's display name."""
    text: str
    """All characters that are sent, including those of the keys."""
    keys: tuple[str, ...] = ()
    """The named keys, sent after the text."""
    cwd: str
    foreground: str
    """The foreground program, which will read the input."""
    owner: str
    """The terminal's owner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormPreview:
    """A form from an agent to a person, who answers by editing `values` in the input."""

    kind: Literal["form"] = "form"
    message: str
    schema: Json
    """JSON Schema of an object with plain fields, as the agent sent it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultPreview:
    """What another server returned for a call that has run, before the client gets it."""

    kind: Literal["result"] = "result"
    server: str
    text: str
    structured: str = ""
    """Its structured content, as JSON; empty without any."""
    is_error: bool = False
    notes: tuple[str, ...] = ()
    """Parts that are not shown here, and are passed on with the rest."""


Preview = Annotated[
    CommandPreview | DiffPreview | PathPreview | InputPreview | FormPreview | ResultPreview,
    Field(discriminator="kind"),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The owner of a terminal: a person or a client."""

    person: bool
    name: str
    """The client's name, or how the person opened the terminal."""
    workspace: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalSent:
    """A signal sent to a call's processes."""

    signal: str
    after_ms: int
    """Milliseconds since the stop began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSeen:
    """A process of the call at the time of its stop."""

    pid: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What ending a call did: observed facts only."""

    ended_by: str
    stopped: bool
    signals: tuple[SignalSent, ...] = ()
    processes_stopped: tuple[ProcessSeen, ...] = ()
    processes_left: tuple[ProcessSeen, ...] = ()
    bytes_kept: int = 0
    files_changed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A tool's result: text for the model, and the same content as data."""

    text: str
    data: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class PushSubscription:
    """Where a browser gets push messages, and the keys for which they are encrypted (URL-safe base64)."""

    endpoint: str
    p256dh: str
    auth: str
