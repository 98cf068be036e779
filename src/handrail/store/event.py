"""The facts of Handrail: every event, in the past tense.

Owns the vocabulary that is written to disk and sent to followers; the values it is made of are value.py's. It does
not know how events are stored (codec.py, writer.py), in which order (journal.py), or who decides that they happen (gate/).
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from handrail.store.value import (
    AnswerKind,
    Assurance,
    Caller,
    Claim,
    Comment,
    Ending,
    FileChange,
    Json,
    Owner,
    Preview,
    Receipt,
    Result,
    Risk,
    Rule,
    Sure,
    TerminalKind,
    Verdict,
)


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
    verdicts: tuple[Verdict, ...] = ()
    """What was decided about each claim, and by which rule; none in the records of old."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalAnswered:
    """A person decided, or a rule that was added since; the first answer is the only one."""

    kind: Literal["ApprovalAnswered"] = "ApprovalAnswered"
    approval: str
    call: str
    answer: AnswerKind
    reason: str
    by: str
    digest: str = ""
    """Of what is allowed; differs from the question's when the person edited it."""
    input: Json | None = None
    """As the person edited it; None when it runs as it was asked."""
    content: str | None = None
    """Of the file, as the person reviewed it; None when it is written as it was proposed."""
    comments: tuple[Comment, ...] = ()
    rules: tuple[str, ...] = ()
    """Made with this answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalExpired:
    """Nobody answered in the time that was set."""

    kind: Literal["ApprovalExpired"] = "ApprovalExpired"
    approval: str
    call: str
    after_ms: int


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
    rules: tuple[str, ...] = ()
    """Every rule that had a part in allowing it."""
    files: tuple[FileChange, ...] = ()
    """What it is about to put in place of what; the old content is kept by then."""


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
class RuleAdded:
    """A standing answer holds from now on."""

    kind: Literal["RuleAdded"] = "RuleAdded"
    rule: Rule
    by: str
    approval: str | None = None
    """The question it was made from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRemoved:
    """A standing answer holds no longer."""

    kind: Literal["RuleRemoved"] = "RuleRemoved"
    rule: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderTrusted:
    """Rules that are not about this very folder hold in it too, and its own file may allow things."""

    kind: Literal["FolderTrusted"] = "FolderTrusted"
    folder: str
    config: str | None
    """SHA-256 of its `.handrail/config.toml` as the person saw it; another content is not trusted."""
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderDistrusted:
    """Whatever acts in this folder asks again."""

    kind: Literal["FolderDistrusted"] = "FolderDistrusted"
    folder: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesRestored:
    """A person undid what calls did to files; written before the files are."""

    kind: Literal["FilesRestored"] = "FilesRestored"
    undo: str
    calls: tuple[str, ...]
    files: tuple[FileChange, ...]
    by: str


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
    | ApprovalExpired
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
    | RuleAdded
    | RuleRemoved
    | FolderTrusted
    | FolderDistrusted
    | FilesRestored
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
