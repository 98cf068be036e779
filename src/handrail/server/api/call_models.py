"""JSON models of calls, operations, the state snapshot, the event stream, sign-in and credentials.

The page's TypeScript types are generated from these models. Times are milliseconds since 1970.
"""

from typing import Annotated, Literal

from pydantic import Field

from handrail.server.api.approval_models import ApprovalView, Usual
from handrail.server.api.client_models import ClientView
from handrail.server.api.daemon_models import Restart
from handrail.server.api.editor_models import EditorView
from handrail.server.api.models import Wire
from handrail.server.api.terminal_models import TerminalView
from handrail.store.calls import Status
from handrail.store.events import Entry
from handrail.store.values import (
    ActivityEnding,
    ActivityKind,
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
    """Journal position at which it was opened. Pass it as `before` to get the next page of a list."""
    tool: str
    title: str
    status: Status
    caller: Caller
    assurance: Assurance
    thread: str | None
    started_at: int
    """When it was opened, by the daemon's clock."""
    elapsed_ms: int
    """From opening until the outcome, or until now. Monotonic."""
    asked_at: int | None
    """When a person was asked whether it may run; None if nobody was."""
    reviewed_at: int | None
    """When a person was asked to review its result; None if nobody was. `answered_at` is then of the review."""
    answered_at: int | None
    answered_by: str | None
    """Who answered the approval: a person on the page, the CLI, or a rule."""
    edited: bool
    """A person edited its input or content before it was allowed."""
    ran_at: int | None
    """When it was allowed and began to run; None if it never did."""
    ended_at: int | None
    """When its outcome was fixed."""
    waited_ms: int
    """How long it waited for a person, or has waited until now: to be allowed, and for the review of its result."""
    ran_ms: int
    """How long it ran, or has run until now, without the review of its result."""
    exit_code: int | None
    """Of the command that it ran."""
    signal: str | None
    """The signal that ended its command."""
    handed_back: bool
    client_gone: bool
    stopped: bool
    """The work has ended, not only the call."""
    allowed_by: str | None
    by: str | None
    message: str
    terminal_id: str | None
    approval_id: str | None
    usual: Usual | None = None
    """Typical duration of similar calls. Only for open calls."""


class CallTableView(Wire):
    """Some rows of the table of calls."""

    calls: list[CallView]
    upto: int
    """The newest call of the table. Pass it on with a later `offset`: then rows keep their places."""


class CallCounts(Wire):
    """How many calls match a search."""

    total: int
    statuses: dict[Status, int]
    """Of each status, whatever the search says about the status."""


class Completion(Wire):
    """Preview of completing a call now."""

    does: Literal["return_output", "accept_diff", "cancel"]
    tells: str
    """The exact text that the agent would get."""
    runs_on: bool


class CallDetail(CallView):
    """Everything about one call."""

    input: Json
    """The input as it runs, including a person's edits."""
    asked: Json | None
    """The agent's original input, if a person edited it."""
    claims: tuple[Claim, ...]
    preview: Preview | None
    files: tuple[FileChange, ...]
    """The files it changed, before and after. An undo can restore them."""
    result: Result | None
    receipt: Receipt | None
    completion: Completion | None
    """None when the call is settled."""
    terminal_running: bool


class OperationView(Wire):
    """A running operation: the work for one prompt."""

    id: str
    caller: Caller
    calls: tuple[str, ...]


class ActivityView(Wire):
    """One activity of an operation, such as a model request or a tool call."""

    id: str
    """Unique within the operation."""
    parent: str | None
    """The parent activity; None for the root."""
    sort: ActivityKind
    title: str
    tool_call: str
    """The agent's id of the tool call; empty for other activities."""
    call: str | None
    """The id of the matching call, if known."""
    started_at: int
    ended_at: int | None
    """None while it runs."""
    how: ActivityEnding | None
    by: str
    """Who cancelled it or its parent; empty if it was not cancelled."""
    detail: str


class OperationDetail(Wire):
    """Everything about one operation. Activities are in the order they started."""

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
    """Descriptions of the activities that ran when it was cancelled."""
    activities: list[ActivityView]
    """Empty if the agent does not report activities."""


class PolicyChangeView(Wire):
    """One difference between the accepted policy and the current one."""

    part: Literal["rules", "config", "journal"]
    """rules: rules made by people, and trusted folders. journal: the record itself."""
    change: Literal["added", "removed", "changed"]
    what: str


class PolicyView(Wire):
    """Whether rules, trusted folders and settings are in force."""

    suspended: str
    """Why everything asks, as a sentence; empty in normal operation."""
    known: bool
    """False if there was nothing to compare with: after a boot, or if the keeper had ended."""
    changes: list[PolicyChangeView]
    """Differences that no person has accepted."""
    digest: str
    """Identifies these differences. An acceptance of others is refused."""
    taken: list[PolicyChangeView]
    """Settings that the last start took up, because a person asked for it with `handrail restart`."""
    head_seq: int
    head_chain: str
    """The last event that this daemon wrote, and its hash: the journal on disk must have it."""
    kept_seq: int | None
    """The last event that the keeper knows. A change of it, or of one before it, is found also after a restart."""


class AcceptBody(Wire):
    """Accept the differences with this digest."""

    digest: Annotated[str, Field(min_length=64, max_length=64)]


class ExpectBody(Wire):
    """The digest of the settings that the next start may take up."""

    config: Annotated[str, Field(min_length=64, max_length=64)]


class PauseView(Wire):
    """Whether agents are paused."""

    since: int | None
    """Milliseconds since 1970; None if they are not paused."""
    by: str
    won: bool = True
    """False if a request found it so already."""


class State(Wire):
    """A snapshot. Apply the events after `seq` to bring it up to date."""

    seq: int
    now: int
    version: str
    started: Restart
    auto_approve: bool
    human_in_the_loop: bool
    policy: PolicyView
    pause: PauseView
    command_line: str
    """The command that an MCP client launches to connect."""
    calls: list[CallView]
    """Open calls, oldest first."""
    recent: list[CallView]
    """Settled calls, newest first."""
    approvals: list[ApprovalView]
    terminals: list[TerminalView]
    """Running terminals, newest first."""


class LiveEntries(Wire):
    """Message of the live socket: journal entries in order, and the daemon's clock."""

    now: int
    entries: list[Entry]
    clients: list[ClientView] | None = None
    """All clients that run now; None if they have not changed."""
    editors: list[EditorView] | None = None
    """All editors that run now; None if they have not changed."""


class Forced(Wire):
    """The result of a cancel or a complete."""

    won: bool
    """False if the call had already ended; `call` has its outcome."""
    message: str
    call: CallView


class CompleteBody(Wire):
    """Options for completing a call."""

    stop: bool = False
    """Stop the work too, instead of letting it continue."""
    text: Annotated[str | None, Field(max_length=1_000_000)] = None
    """Return this text to the agent instead of the output so far."""
    digest: str | None = None
    """To accept a pending write: digest of the diff that the person saw, or of the preview of `content`."""
    content: Annotated[str | None, Field(max_length=16_000_000)] = None
    """Accept a pending write with this content instead."""
    comments: Annotated[tuple[Comment, ...], Field(max_length=1000)] = ()


class CredentialBody(Wire):
    """A client to issue a call credential for."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    workspace: Annotated[str, Field(min_length=1, max_length=4096)]


class CredentialView(Wire):
    """A call credential, without its bearer."""

    id: str
    name: str
    workspace: str
    issued_at: int


class Credential(CredentialView):
    """A new call credential. Its bearer is shown only here."""

    bearer: str
    url: str


class Problem(Wire):
    """An error: what happened, why, and what to do."""

    detail: str
