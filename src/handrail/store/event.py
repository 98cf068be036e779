"""The facts of Handrail: every event, in the past tense, and the values events are made of.

Owns the vocabulary that is written to disk and sent to followers. It does not know how events are stored
(codec.py, writer.py), in which order (journal.py), or who decides that they happen (gate/).
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, JsonValue, TypeAdapter

Json = dict[str, JsonValue]

Action = Literal["read", "write", "run", "type", "stop", "recall"]
Risk = Literal["low", "medium", "high"]
Ending = Literal["done", "failed", "denied", "cancelled", "completed", "interrupted"]
Assurance = Literal["bound", "forwarded", "advisory"]
AnswerKind = Literal["allow", "deny"]
TerminalKind = Literal["command", "tracked", "shell"]
"""Of one call; opened to stay, by an agent or on the page; or a person's own, by `handrail shell`."""
Sure = Literal["certain", "likely"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who made a call, and from where."""

    door: Literal["stdio", "http", "page", "cli"]
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


Preview = Annotated[CommandPreview | DiffPreview | PathPreview | InputPreview, Field(discriminator="kind")]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonStarted:
    """The daemon is ready; says what it found of the time before."""

    kind: Literal["DaemonStarted"] = "DaemonStarted"
    version: str
    pid: int
    crashed: bool
    """The one before did not say goodbye."""
    interrupted: int
    approvals_kept: int
    terminals_adopted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonStopped:
    """The daemon ended on purpose."""

    kind: Literal["DaemonStopped"] = "DaemonStopped"
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOpened:
    """Somebody used a tool."""

    kind: Literal["CallOpened"] = "CallOpened"
    call: str
    tool: str
    title: str
    input: Json
    caller: Caller
    assurance: Assurance = "bound"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalOpened:
    """A person is asked about one call."""

    kind: Literal["ApprovalOpened"] = "ApprovalOpened"
    approval: str
    call: str
    digest: str
    claims: tuple[Claim, ...]
    risk: Risk
    reasons: tuple[str, ...]
    why: str
    """Why a person is asked at all."""
    preview: Preview | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalAnswered:
    """A person decided; the first answer is the only one."""

    kind: Literal["ApprovalAnswered"] = "ApprovalAnswered"
    approval: str
    call: str
    answer: AnswerKind
    reason: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalWithdrawn:
    """The question is moot: its call ended another way."""

    kind: Literal["ApprovalWithdrawn"] = "ApprovalWithdrawn"
    approval: str
    call: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStarted:
    """The call may act, and now does."""

    kind: Literal["CallStarted"] = "CallStarted"
    call: str
    claims: tuple[Claim, ...]
    allowed_by: str
    """A rule's name, or `approval ID`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallHandedBack:
    """The client was told to ask later; the call goes on."""

    kind: Literal["CallHandedBack"] = "CallHandedBack"
    call: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallClientGone:
    """Nobody waits for this call any more; its outcome goes to the mailbox."""

    kind: Literal["CallClientGone"] = "CallClientGone"
    call: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSettled:
    """The outcome is fixed; the work may still be ending (`receipt.stopped`)."""

    kind: Literal["CallSettled"] = "CallSettled"
    call: str
    ending: Ending
    by: str
    message: str
    result: Result | None
    receipt: Receipt


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStopped:
    """The work of a call that was settled early has really ended."""

    kind: Literal["CallStopped"] = "CallStopped"
    call: str
    receipt: Receipt


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalOpened:
    """A watched process started."""

    kind: Literal["TerminalOpened"] = "TerminalOpened"
    terminal: str
    call: str | None
    name: str
    cwd: str
    pid: int
    of: TerminalKind = "command"
    owner: Owner | None = None
    """None in the records of old, when every terminal was a call's."""
    argv: tuple[str, ...] = ()
    cols: int = 80
    rows: int = 24
    nonce: str = ""
    """What its shell's own marks carry; empty when it makes none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalTyped:
    """Somebody typed a line, or keys."""

    kind: Literal["TerminalTyped"] = "TerminalTyped"
    terminal: str
    by: str
    person: bool
    text: str | None
    """None when the terminal did not show it: what is hidden there is recorded nowhere."""
    offset: int
    """How far its output had come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalTaken:
    """A person took a terminal over: agents cannot type into it."""

    kind: Literal["TerminalTaken"] = "TerminalTaken"
    terminal: str
    by: str
    holds: bool
    """Until it is released; otherwise only while the person types."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalReleased:
    """Agents may type again."""

    kind: Literal["TerminalReleased"] = "TerminalReleased"
    terminal: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalAsked:
    """What runs in a terminal waits for input."""

    kind: Literal["TerminalAsked"] = "TerminalAsked"
    terminal: str
    prompt: str
    sure: Sure
    secret: bool
    """It hides what is typed: only a person may answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalWentOn:
    """It waits for input no longer."""

    kind: Literal["TerminalWentOn"] = "TerminalWentOn"
    terminal: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalForgotten:
    """An ended terminal's output was deleted, to keep within what is kept."""

    kind: Literal["TerminalForgotten"] = "TerminalForgotten"
    terminal: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalEnded:
    """A watched process is gone."""

    kind: Literal["TerminalEnded"] = "TerminalEnded"
    terminal: str
    exit_code: int | None
    signal: str | None
    bytes: int
    lost: bool = False
    """It ended with the keeper or its warden, so its exit is unknown."""
    cwd: str | None = None
    """Where it was last, if it was ever looked at: who may read it later hangs on that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalClosed:
    """Somebody ended a watched process; how it went is told by `TerminalEnded`."""

    kind: Literal["TerminalClosed"] = "TerminalClosed"
    terminal: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationOpened:
    """Work for one prompt began."""

    kind: Literal["OperationOpened"] = "OperationOpened"
    operation: str
    caller: Caller


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationEnded:
    """Work for one prompt ended, and with it every call it held."""

    kind: Literal["OperationEnded"] = "OperationEnded"
    operation: str
    cancelled_by: str | None
    cancelled_calls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonSignedIn:
    """A page exchanged a one-time code for its bearer."""

    kind: Literal["PersonSignedIn"] = "PersonSignedIn"
    sign_in: str
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInRevoked:
    """A sign-in is void from now on."""

    kind: Literal["SignInRevoked"] = "SignInRevoked"
    sign_in: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialIssued:
    """A client may call over HTTP, in one workspace."""

    kind: Literal["CredentialIssued"] = "CredentialIssued"
    credential: str
    name: str
    workspace: str
    sha256: str
    """Of the bearer; the bearer itself is shown once and kept nowhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialRevoked:
    """A client may call no longer."""

    kind: Literal["CredentialRevoked"] = "CredentialRevoked"
    credential: str
    by: str


Event = Annotated[
    DaemonStarted
    | DaemonStopped
    | CallOpened
    | ApprovalOpened
    | ApprovalAnswered
    | ApprovalWithdrawn
    | CallStarted
    | CallHandedBack
    | CallClientGone
    | CallSettled
    | CallStopped
    | TerminalOpened
    | TerminalEnded
    | TerminalClosed
    | TerminalTyped
    | TerminalTaken
    | TerminalReleased
    | TerminalAsked
    | TerminalWentOn
    | TerminalForgotten
    | OperationOpened
    | OperationEnded
    | PersonSignedIn
    | SignInRevoked
    | CredentialIssued
    | CredentialRevoked,
    Field(discriminator="kind"),
]

events: TypeAdapter[Event] = TypeAdapter(Event)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An event with its place in the journal."""

    seq: int
    at: int
    """Milliseconds since 1970."""
    event: Event
