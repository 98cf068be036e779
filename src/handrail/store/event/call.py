"""What happens to a call, from its opening to the end of its work."""

from dataclasses import dataclass
from typing import Literal

from handrail.store.value import Assurance, Caller, Claim, Ending, FileChange, Json, Receipt, Result


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
