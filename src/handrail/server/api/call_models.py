"""The wire to people's programs: what the page, the command line and scripts read and send.

Owns the JSON shapes of `/api` (terminals: terminal_wire.py, approvals: approval_wire.py, rules and undo:
rule_wire.py); the page's TypeScript types are generated from them. It does not know routes, credentials, or the
dialects of agents (mcp.py).
"""

from typing import Annotated, Literal

from pydantic import Field

from handrail.server.api.approval_models import ApprovalView, Usual
from handrail.server.api.models import Wire
from handrail.server.api.terminal_models import TerminalView
from handrail.store.calls import Status
from handrail.store.events import Entry
from handrail.store.values import (
    ActivityEnding,
    ActivitySort,
    Assurance,
    Caller,
    Claim,
    Comment,
    FileChange,
    Json,
    Preview,
    Receipt,
    Result,
    Stop,
)


class CallView(Wire):
    """A call in a list."""

    id: str
    seq: int
    """Where it was opened in the journal; `before` in a listing goes on from there."""
    tool: str
    title: str
    status: Status
    caller: Caller
    assurance: Assurance
    thread: str | None
    started_at: int
    """When it was opened, in milliseconds since 1970, by the daemon's clock."""
    elapsed_ms: int
    """Since it was opened, until it was settled or until now; by a clock that never jumps."""
    handed_back: bool
    client_gone: bool
    stopped: bool
    """Its work has really ended."""
    allowed_by: str | None
    by: str | None
    message: str
    terminal_id: str | None
    approval_id: str | None
    usual: Usual | None = None
    """How long such calls took before; told of open ones."""


class Completion(Wire):
    """What Complete would do right now."""

    does: Literal["return_output", "accept_diff", "cancel"]
    tells: str
    """What the agent would be told, word for word."""
    runs_on: bool


class CallDetail(CallView):
    """Everything about one call."""

    input: Json
    """As it runs, with a person's edits."""
    asked: Json | None
    """As the agent asked for it, where a person changed it."""
    claims: tuple[Claim, ...]
    preview: Preview | None
    files: tuple[FileChange, ...]
    """What it put in place of what; an undo can take it back."""
    result: Result | None
    receipt: Receipt | None
    completion: Completion | None
    """None when the call is settled."""
    terminal_running: bool


class OperationView(Wire):
    """Work for one prompt."""

    id: str
    caller: Caller
    calls: tuple[str, ...]


class ActivityView(Wire):
    """Something that an operation is, or was, busy with."""

    id: str
    """Among those of its operation."""
    parent: str | None
    """What it is part of; None of the root."""
    sort: ActivitySort
    title: str
    tool_call: str
    """The call it is, as the agent's message names it; empty where it is none."""
    call: str | None
    """The call of ours that it is, where that is known."""
    started_at: int
    ended_at: int | None
    """None while it is under way."""
    how: ActivityEnding | None
    by: str
    """Who cancelled it, or what it was part of; empty where nobody did."""
    detail: str


class OperationDetail(Wire):
    """Everything about one operation: how it went, and what it was busy with, in the order it began."""

    operation: str
    thread: str | None
    agent: str
    opened_at: int
    ended_at: int | None
    stop: Stop | None
    error: str
    cancelled_by: str | None
    cancelled_calls: tuple[str, ...]
    cancelled_activities: tuple[str, ...]
    """In words, what it was busy with when it was cancelled."""
    activities: list[ActivityView]
    """Nothing where its agent does not tell."""


class Restart(Wire):
    """What the daemon found of the time before it started."""

    seq: int
    at: int
    pid: int
    crashed: bool
    interrupted: int
    approvals_kept: int
    terminals_adopted: int


class State(Wire):
    """A snapshot; events after `seq` bring it up to date."""

    seq: int
    now: int
    version: str
    started: Restart
    auto_approve: bool
    human_in_the_loop: bool
    command_line: str
    """What to paste into an agent that speaks MCP."""
    calls: list[CallView]
    """Open calls, oldest first."""
    recent: list[CallView]
    """Settled calls, newest first."""
    approvals: list[ApprovalView]
    terminals: list[TerminalView]
    """Those that run, newest first."""


class LiveEntries(Wire):
    """What the live socket sends: facts in order, and the daemon's clock."""

    now: int
    entries: list[Entry]


class Forced(Wire):
    """What came of a cancel or a complete."""

    won: bool
    """False when the call had ended before; `call` says how."""
    message: str
    call: CallView


class CompleteBody(Wire):
    """How to complete a call."""

    stop: bool = False
    """End the work too, instead of letting it run on."""
    text: Annotated[str | None, Field(max_length=1_000_000)] = None
    """Return this instead of the output so far."""
    digest: str | None = None
    """Of the diff the person saw, when a waiting write is accepted; of the preview of `content` where they changed it."""
    content: Annotated[str | None, Field(max_length=16_000_000)] = None
    """Accept a waiting write as the person left it."""
    comments: Annotated[tuple[Comment, ...], Field(max_length=1000)] = ()


class SignInBody(Wire):
    """A one-time code."""

    code: Annotated[str, Field(min_length=1, max_length=200)]


class SignedIn(Wire):
    """The page's bearer; it is kept in memory only."""

    bearer: str


class CredentialBody(Wire):
    """A client that shall call over HTTP."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    workspace: Annotated[str, Field(min_length=1, max_length=4096)]


class CredentialView(Wire):
    """A client that may call over HTTP."""

    id: str
    name: str
    workspace: str
    issued_at: int


class Credential(CredentialView):
    """A new credential; its bearer is shown this once."""

    bearer: str
    url: str


class ProcessHealth(Wire):
    """How a process of ours feels."""

    pid: int
    rss_bytes: int
    descriptors: int
    loop_lag_ms: float


class Health(Wire):
    """Whether the daemon is well; a person also learns how it feels."""

    ok: bool
    version: str
    daemon: ProcessHealth | None = None
    keeper: ProcessHealth | None = None


class Problem(Wire):
    """Why a request was refused: what happened, why, and what to do."""

    detail: str
