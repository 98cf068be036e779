# Generated from the server's OpenAPI document by scripts/cli_types.py. Do not edit; run `make types`.
"""Types of the daemon's HTTP API: one TypedDict per schema, and one Protocol per HTTP method with its routes.

Only the type checker needs this module. Import it below `if TYPE_CHECKING`, so that it costs no start-up time.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, Protocol, TypeAlias, TypedDict, overload


class AcceptBody(TypedDict):
    digest: str


class AcceptToolBody(TypedDict):
    digest: str


class ActivityEnded(TypedDict):
    activity: str
    by: str
    detail: str
    how: Literal["cancelled", "done", "failed", "interrupted"]
    kind: Literal["ActivityEnded"]
    operation: str
    sort: Literal["agent", "call", "compaction", "model", "operation", "step", "thinking"]
    thread: str


class ActivityStarted(TypedDict):
    activity: str
    kind: Literal["ActivityStarted"]
    operation: str
    parent: str | None
    sort: Literal["agent", "call", "compaction", "model", "operation", "step", "thinking"]
    thread: str
    title: str
    tool_call: str


class ActivityView(TypedDict):
    by: str
    call: str | None
    detail: str
    ended_at: int | None
    how: Literal["cancelled", "done", "failed", "interrupted"] | None
    id: str
    parent: str | None
    sort: Literal["agent", "call", "compaction", "model", "operation", "step", "thinking"]
    started_at: int
    title: str
    tool_call: str


class AdoptBody(TypedDict):
    session: str
    workspace: NotRequired[str | None]


class AgentEnded(TypedDict):
    agent: str
    kind: Literal["AgentEnded"]
    said: list[str]
    terminal: str
    why: str


class AgentEntryBody(TypedDict):
    command: list[str]
    env_pass: NotRequired[list[str]]
    name: str
    title: NotRequired[str]


class AgentSessionView(TypedDict):
    folder: str
    id: str
    thread: str | None
    title: str
    updated_at: int | None


class AgentStarted(TypedDict):
    agent: str
    kind: Literal["AgentStarted"]
    pid: int
    terminal: str
    version: str


class AgentView(TypedDict):
    command: list[str]
    found: bool
    install: str | None
    logins: list[LoginView]
    manager: Literal["npm", "uv"] | None
    name: str
    package: str | None
    running: bool
    source: Literal["built in", "config", "known"]
    title: str
    version: str | None
    why: str


class AgentsPaused(TypedDict):
    by: str
    kind: Literal["AgentsPaused"]


class AgentsResumed(TypedDict):
    by: str
    kind: Literal["AgentsResumed"]


class AllowLowBody(TypedDict):
    approvals: list[Seen]


class AllowedLow(TypedDict):
    id: str
    message: str
    won: bool


class AnswerBody(TypedDict):
    answer: Literal["allow", "deny"]
    comments: NotRequired[list[Comment]]
    content: NotRequired[str | None]
    digest: str
    input: NotRequired[dict[str, JsonValue] | None]
    reason: NotRequired[str]
    request_id: NotRequired[str]
    rule: NotRequired[RuleBody | list[RuleBody] | None]


class ApprovalAnswered(TypedDict):
    answer: Literal["allow", "deny"]
    approval: str
    by: str
    call: str
    comments: list[Comment]
    content: str | None
    digest: str
    input: dict[str, JsonValue] | None
    kind: Literal["ApprovalAnswered"]
    reason: str
    request_id: str
    rules: list[str]


class ApprovalExpired(TypedDict):
    after_ms: int
    approval: str
    call: str
    kind: Literal["ApprovalExpired"]


class ApprovalOpened(TypedDict):
    approval: str
    call: str
    claims: list[Claim]
    digest: str
    kind: Literal["ApprovalOpened"]
    preview: CommandPreview | DiffPreview | PathPreview | InputPreview | FormPreview | ResultPreview | None
    reasons: list[str]
    risk: Literal["high", "low", "medium"]
    verdicts: list[Verdict]
    why: str


class ApprovalView(TypedDict):
    asked_at: int
    by: str | None
    call_id: str
    caller: Caller
    can_edit: bool
    claims: list[Claim]
    client_gone: bool
    description: str
    digest: str
    edited: bool
    elapsed_ms: int
    id: str
    input: dict[str, JsonValue]
    preview: CommandPreview | DiffPreview | PathPreview | InputPreview | FormPreview | ResultPreview | None
    reason: str
    reasons: list[str]
    reviewable: bool
    risk: Literal["high", "low", "medium"]
    risks: list[PartRisk]
    status: Literal["allowed", "denied", "expired", "open", "withdrawn"]
    suggestions: list[Suggestion]
    title: str
    tool: str
    trusted: bool
    usual: Usual | None
    verdicts: list[Verdict]
    why: str
    why_not_edit: str


class ApprovalWithdrawn(TypedDict):
    approval: str
    call: str
    kind: Literal["ApprovalWithdrawn"]
    why: str


class Asking(TypedDict):
    asks: Literal["commands", "everything", "nobody"]
    mode: str
    switch: ModeSwitch | None


class AsksView(TypedDict):
    prompt: str
    secret: bool
    since: int
    sure: Literal["certain", "likely"]


class AttachRefused(TypedDict):
    refused: str
    what: Literal["input", "message", "size"]


class AttachSize(TypedDict):
    size: tuple[int, int]


class AttachState(TypedDict):
    alternate: bool | None
    begin: int | None
    sizes: bool
    state: TerminalView


class CallClientBack(TypedDict):
    call: str
    kind: Literal["CallClientBack"]


class CallClientGone(TypedDict):
    call: str
    kind: Literal["CallClientGone"]


class CallCounts(TypedDict):
    statuses: dict[str, int]
    total: int


class CallData(TypedDict):
    call: str | None
    content: list[TextContent | DiffContent | TerminalContent | ImageContent]
    id: str
    input: Any
    locations: list[Location]
    output: Any
    sort: Literal[
        "delete", "edit", "execute", "fetch", "move", "other", "read", "search", "switch_mode", "think"
    ]
    status: Literal["cancelled", "completed", "failed", "in_progress", "pending"]
    title: str
    tool: str


class CallDetail(TypedDict):
    allowed_by: str | None
    answered_at: int | None
    answered_by: str | None
    approval_id: str | None
    asked: dict[str, JsonValue] | None
    asked_at: int | None
    assurance: Literal["advisory", "bound", "forwarded"]
    by: str | None
    caller: Caller
    claims: list[Claim]
    client_gone: bool
    completion: Completion | None
    edited: bool
    elapsed_ms: int
    ended_at: int | None
    exit_code: int | None
    files: list[FileChange]
    handed_back: bool
    id: str
    input: dict[str, JsonValue]
    message: str
    preview: CommandPreview | DiffPreview | PathPreview | InputPreview | FormPreview | ResultPreview | None
    ran_at: int | None
    ran_ms: int
    receipt: Receipt | None
    result: Result | None
    reviewed_at: int | None
    seq: int
    signal: str | None
    started_at: int
    status: (
        Literal["running", "waiting"]
        | Literal["cancelled", "completed", "denied", "done", "failed", "interrupted"]
    )
    stopped: bool
    terminal_id: str | None
    terminal_running: bool
    thread: str | None
    title: str
    tool: str
    usual: Usual | None
    waited_ms: int


class CallHandedBack(TypedDict):
    call: str
    kind: Literal["CallHandedBack"]


class CallOpened(TypedDict):
    assurance: Literal["advisory", "bound", "forwarded"]
    call: str
    caller: Caller
    input: dict[str, JsonValue]
    kind: Literal["CallOpened"]
    title: str
    tool: str


class CallSettled(TypedDict):
    by: str
    call: str
    ending: Literal["cancelled", "completed", "denied", "done", "failed", "interrupted"]
    kind: Literal["CallSettled"]
    message: str
    receipt: Receipt
    result: Result | None


class CallStarted(TypedDict):
    allowed_by: str
    call: str
    claims: list[Claim]
    files: list[FileChange]
    kind: Literal["CallStarted"]
    rules: list[str]
    title: str


class CallStopped(TypedDict):
    call: str
    kind: Literal["CallStopped"]
    receipt: Receipt


class CallTableView(TypedDict):
    calls: list[CallView]
    upto: int


class CallView(TypedDict):
    allowed_by: str | None
    answered_at: int | None
    answered_by: str | None
    approval_id: str | None
    asked_at: int | None
    assurance: Literal["advisory", "bound", "forwarded"]
    by: str | None
    caller: Caller
    client_gone: bool
    edited: bool
    elapsed_ms: int
    ended_at: int | None
    exit_code: int | None
    handed_back: bool
    id: str
    message: str
    ran_at: int | None
    ran_ms: int
    reviewed_at: int | None
    seq: int
    signal: str | None
    started_at: int
    status: (
        Literal["running", "waiting"]
        | Literal["cancelled", "completed", "denied", "done", "failed", "interrupted"]
    )
    stopped: bool
    terminal_id: str | None
    thread: str | None
    title: str
    tool: str
    usual: Usual | None
    waited_ms: int


class Caller(TypedDict):
    client: str
    door: Literal["acp", "cli", "hook", "http", "page", "stdio"]
    key: str
    operation: str | None
    thread: str | None
    workspace: str | None


class Challenge(TypedDict):
    nonce: str


class ChallengeBody(TypedDict):
    sign_in: str


class Choice(TypedDict):
    description: str
    group: str
    name: str
    value: str


class Claim(TypedDict):
    action: Literal["connect", "delete", "plan", "read", "recall", "run", "stop", "type", "write"]
    arguments: list[tuple[str, str | None]]
    calm: bool
    inside: bool
    opaque: str
    protected: bool
    reads: bool
    resource: str
    server: str
    words: list[str]


class ClientView(TypedDict):
    approvals: list[str]
    client: str
    folder: str
    key: str
    message: str
    pid: int | None
    session: str
    since: int
    started_at: int
    state: Literal["idle", "needs_you", "working"]
    terminal_id: str | None
    title: str
    tool: str
    tty: str


class CloseBody(TypedDict):
    which: Literal["agent_gone"]


class Closed(TypedDict):
    agent_gone: bool
    argv: list[str]
    asks: AsksView | None
    attached: bool
    busy: bool
    bytes: int
    call_id: str | None
    cwd: str
    ended_at: int | None
    exit_code: int | None
    first: int
    foreground: str | None
    forgotten: bool
    id: str
    last_output_at: int | None
    left: list[ProcessSeen]
    lines_dropped: int
    lost: bool
    message: str
    more: int
    name: str
    of: Literal["command", "shell", "tracked"]
    owner: Owner | None
    pid: int
    running: bool
    seq: int
    shell: str
    signal: str | None
    size: tuple[int, int]
    started_at: int
    stopped: list[ProcessSeen]
    taken: TakenView | None


class CodeBody(TypedDict):
    local: NotRequired[bool]


class Command(TypedDict):
    description: str
    hint: str
    name: str


class CommandPreview(TypedDict):
    command: str
    cwd: str
    environment: list[str]
    kind: Literal["command"]
    program: str


class CommandView(TypedDict):
    begin: int
    cwd: str | None
    duration_ms: int | None
    end: int | None
    exit_code: int | None
    line: str | None
    output: int
    started_at: int | None


class Commands(TypedDict):
    commands: list[Command]


class Comment(TypedDict):
    line: int
    text: str


class CompleteBody(TypedDict):
    comments: NotRequired[list[Comment]]
    content: NotRequired[str | None]
    digest: NotRequired[str | None]
    stop: NotRequired[bool]
    text: NotRequired[str | None]


class Completion(TypedDict):
    does: Literal["accept_diff", "cancel", "return_output"]
    runs_on: bool
    tells: str


class Cost(TypedDict):
    amount: float
    currency: str


class Credential(TypedDict):
    bearer: str
    id: str
    issued_at: int
    name: str
    url: str
    workspace: str


class CredentialBody(TypedDict):
    name: str
    workspace: str


class CredentialIssued(TypedDict):
    credential: str
    kind: Literal["CredentialIssued"]
    name: str
    sha256: str
    workspace: str


class CredentialRevoked(TypedDict):
    by: str
    credential: str
    kind: Literal["CredentialRevoked"]


class CredentialView(TypedDict):
    id: str
    issued_at: int
    name: str
    workspace: str


class DaemonStarted(TypedDict):
    approvals_kept: int
    crashed: bool
    interrupted: int
    kind: Literal["DaemonStarted"]
    pid: int
    terminals_adopted: int
    version: str


class DaemonStopped(TypedDict):
    kind: Literal["DaemonStopped"]
    why: str


class DefaultBody(TypedDict):
    agent: NotRequired[str | None]
    workspace: NotRequired[str | None]


class DemoView(TypedDict):
    terminal: str


class DevicesView(TypedDict):
    address: str
    behind_proxy: bool
    ca_file: str
    ca_fingerprint: str
    limited: bool
    port: int
    url: str | None


class DiffContent(TypedDict):
    kind: Literal["diff"]
    new: str
    old: str | None
    path: str


class DiffPreview(TypedDict):
    added: int
    creates: bool
    deletes: bool
    diff: str
    kind: Literal["diff"]
    notes: list[str]
    path: str
    removed: int


class EditBody(TypedDict):
    content: NotRequired[str | None]
    input: NotRequired[dict[str, JsonValue] | None]


class EditView(TypedDict):
    claims: list[Claim]
    digest: str
    effect: Literal["allow", "ask", "deny"]
    preview: CommandPreview | DiffPreview | PathPreview | InputPreview | FormPreview | ResultPreview | None
    reasons: list[str]
    risk: Literal["high", "low", "medium"]
    risks: list[PartRisk]
    tells: str
    verdicts: list[Verdict]
    why: str


class EditorPaired(TypedDict):
    by: str
    editor: str
    kind: Literal["EditorPaired"]
    pid: int
    program: str
    workspace: str


class EditorRefused(TypedDict):
    by: str
    editor: str
    kind: Literal["EditorRefused"]
    pid: int
    program: str
    workspace: str


class EditorRevoked(TypedDict):
    by: str
    editor: str
    kind: Literal["EditorRevoked"]


class EditorView(TypedDict):
    command: str
    id: str
    number: int
    pid: int
    program: str
    since: int
    started_at: int
    state: Literal["paired", "refused", "waiting"]
    windows: int
    workspace: str


class Entry(TypedDict):
    at: int
    event: (
        DaemonStarted
        | DaemonStopped
        | CallOpened
        | CallStarted
        | CallHandedBack
        | CallClientGone
        | CallClientBack
        | CallSettled
        | CallStopped
        | ApprovalOpened
        | ApprovalAnswered
        | ApprovalExpired
        | ApprovalWithdrawn
        | TerminalOpened
        | TerminalTyped
        | TerminalTaken
        | TerminalReleased
        | TerminalAsked
        | TerminalWentOn
        | TerminalForgotten
        | TerminalEnded
        | TerminalClosed
        | OperationOpened
        | OperationEnded
        | ActivityStarted
        | ActivityEnded
        | RuleAdded
        | RuleDisabled
        | RuleEnabled
        | RulesOrdered
        | RuleRemoved
        | FolderTrusted
        | FolderDistrusted
        | PolicyAccepted
        | AgentsPaused
        | AgentsResumed
        | FilesRestored
        | ThreadOpened
        | ThreadRenamed
        | ThreadDeleted
        | MessageOpened
        | MessageEnded
        | PromptSent
        | PromptDropped
        | SessionBound
        | AgentStarted
        | AgentEnded
        | PersonSignedIn
        | SignInRevoked
        | CredentialIssued
        | CredentialRevoked
        | EditorPaired
        | EditorRefused
        | EditorRevoked
        | ServerToolsPinned
        | ServerStarted
        | ServerEnded
        | JournalCompacted
    )
    seq: int


class ErrorData(TypedDict):
    logins: list[dict[str, str]]
    said: list[str]


class ExpectBody(TypedDict):
    config: str


class FileChange(TypedDict):
    after: str | None
    before: str | None
    made: list[str]
    mode: int | None
    path: str


class FileData(TypedDict):
    name: str
    uri: str


class FilesRestored(TypedDict):
    by: str
    calls: list[str]
    files: list[FileChange]
    kind: Literal["FilesRestored"]
    undo: str


class FolderBody(TypedDict):
    config: NotRequired[str | None]
    folder: str


class FolderDistrusted(TypedDict):
    by: str
    folder: str
    kind: Literal["FolderDistrusted"]


class FolderTrusted(TypedDict):
    by: str
    config: str | None
    folder: str
    kind: Literal["FolderTrusted"]


class FolderView(TypedDict):
    by: str | None
    config: str | None
    exists: bool
    folder: str
    problem: str
    trusted: bool
    trusted_at: int | None


class Forced(TypedDict):
    call: CallView
    message: str
    won: bool


class ForkBody(TypedDict):
    before: NotRequired[bool]
    message: NotRequired[str | None]
    title: NotRequired[str]


class FormPreview(TypedDict):
    kind: Literal["form"]
    message: str
    schema: dict[str, JsonValue]


class FoundView(TypedDict):
    matches: list[MatchView]
    more: bool


class Gap(TypedDict):
    chain: str
    events: int
    first: int
    last: int


class Growth(TypedDict):
    at: int
    data: dict[str, JsonValue] | None
    kind: Literal["call", "error", "file", "image", "note", "plan", "raw", "text", "thought"]
    message: str
    n: int
    text: str


class Health(TypedDict):
    daemon: ProcessHealth | None
    hung_keeper: int | None
    keeper: ProcessHealth | None
    ok: bool
    restarted_at: int | None
    restarts: int
    version: str


class ImageBody(TypedDict):
    data: str
    mime: str


class ImageContent(TypedDict):
    image: str
    kind: Literal["image"]
    mime: str


class ImageData(TypedDict):
    image: str
    mime: str


class InputBody(TypedDict):
    keys: NotRequired[list[str]]
    newline: NotRequired[bool]
    text: NotRequired[str | None]


class InputPreview(TypedDict):
    cwd: str
    foreground: str
    keys: list[str]
    kind: Literal["input"]
    name: str
    owner: str
    terminal: str
    text: str


class JournalCompacted(TypedDict):
    before: int
    events: int
    gaps: list[Gap]
    kind: Literal["JournalCompacted"]


JsonValue: TypeAlias = "Any"


class KeyBody(TypedDict):
    key: str


class KeySignInBody(TypedDict):
    nonce: str
    sign_in: str
    signature: str


class KeyView(TypedDict):
    name: str
    provider: Literal["anthropic", "google", "openai"]
    stored: bool


class KeysView(TypedDict):
    keys: list[KeyView]
    other: bool


class KnownClientView(TypedDict):
    found: bool
    name: str
    set_up: bool
    title: str


class ListenBody(TypedDict):
    address: NotRequired[str | None]
    behind_proxy: NotRequired[bool | None]
    name: NotRequired[str | None]
    port: NotRequired[int | None]


class LiveEntries(TypedDict):
    clients: list[ClientView] | None
    editors: list[EditorView] | None
    entries: list[Entry]
    now: int


class Location(TypedDict):
    line: int
    path: str


class LoginBody(TypedDict):
    method: str


class LoginView(TypedDict):
    command: str | None
    description: str
    id: str
    name: str


class MatchView(TypedDict):
    after: list[str]
    before: list[str]
    line_number: int
    offset: int
    text: str


class McpServerSection(TypedDict):
    command: NotRequired[list[str]]
    cwd: NotRequired[str]
    enabled: NotRequired[bool]
    env: NotRequired[dict[str, Any]]
    env_pass: NotRequired[list[str]]
    headers: NotRequired[dict[str, Any]]
    name: str
    oauth: NotRequired[OAuthSection]
    review_results: NotRequired[bool]
    sampling: NotRequired[bool]
    secrets: NotRequired[list[str]]
    start_seconds: NotRequired[float]
    url: NotRequired[str]


class MessageEnded(TypedDict):
    kind: Literal["MessageEnded"]
    message: str
    said_at: int | None
    stop: Literal[
        "cancelled",
        "end_turn",
        "failed",
        "interrupted",
        "max_tokens",
        "max_turn_requests",
        "refusal",
        "steered",
    ]
    thread: str


class MessageOpened(TypedDict):
    agent: str
    kind: Literal["MessageOpened"]
    message: str
    n: int
    operation: str | None
    queued: bool
    role: Literal["assistant", "system", "user"]
    said_at: int | None
    thread: str


class MessagePart(TypedDict):
    data: dict[str, JsonValue]
    kind: Literal["call", "error", "file", "image", "note", "plan", "raw", "text", "thought"]
    n: int
    text: str


class MessageView(TypedDict):
    agent: str
    ended_at: int | None
    id: str
    n: int
    opened_at: int
    operation: str | None
    parts: list[MessagePart]
    queued: bool
    role: Literal["assistant", "system", "user"]
    stop: (
        Literal[
            "cancelled",
            "end_turn",
            "failed",
            "interrupted",
            "max_tokens",
            "max_turn_requests",
            "refusal",
            "steered",
        ]
        | None
    )


class Mode(TypedDict):
    description: str
    id: str
    name: str


class ModeSwitch(TypedDict):
    id: str
    name: str
    setting: Literal["mode", "option"]
    value: str


class Modes(TypedDict):
    current: str
    modes: list[Mode]


class NameBody(TypedDict):
    name: str


class OAuthSection(TypedDict):
    client_id: NotRequired[str]
    client_secret: NotRequired[str]
    redirect_port: NotRequired[int]
    scope: NotRequired[str]


class OpenBody(TypedDict):
    args: NotRequired[list[str]]
    cols: NotRequired[int]
    command: NotRequired[list[str]]
    cwd: NotRequired[str | None]
    env: NotRequired[dict[str, str]]
    keep: NotRequired[bool]
    name: NotRequired[str]
    of: NotRequired[Literal["shell", "tracked"]]
    rows: NotRequired[int]
    shell: NotRequired[str | None]


class OperationDetail(TypedDict):
    activities: list[ActivityView]
    agent: str
    cancelled_activities: list[str]
    cancelled_by: str | None
    cancelled_calls: list[str]
    ended_at: int | None
    error: str
    opened_at: int
    operation: str
    stop: (
        Literal[
            "cancelled",
            "end_turn",
            "failed",
            "interrupted",
            "max_tokens",
            "max_turn_requests",
            "refusal",
            "steered",
        ]
        | None
    )
    thread: str | None


class OperationEnded(TypedDict):
    cancelled_activities: list[str]
    cancelled_by: str | None
    cancelled_calls: list[str]
    error: str
    kind: Literal["OperationEnded"]
    operation: str
    stop: (
        Literal[
            "cancelled",
            "end_turn",
            "failed",
            "interrupted",
            "max_tokens",
            "max_turn_requests",
            "refusal",
            "steered",
        ]
        | None
    )


class OperationOpened(TypedDict):
    caller: Caller
    kind: Literal["OperationOpened"]
    operation: str


class OperationView(TypedDict):
    caller: Caller
    calls: list[str]
    id: str


class Option(TypedDict):
    category: str
    choices: list[Choice]
    description: str
    id: str
    name: str
    type: str
    value: str | bool


class Options(TypedDict):
    options: list[Option]


class Origin(TypedDict):
    agent: str
    how: Literal["forked", "known", "loaded", "new", "resumed", "transcript"]
    sentence: str


class OutputView(TypedDict):
    alternate: bool
    base64: str
    cursor: tuple[int, int] | None
    end: int
    first: int
    left_out: int
    lines_dropped: int
    next: int
    start: int
    text: str
    title: str


class Owner(TypedDict):
    name: str
    person: bool
    workspace: str | None


class PairBody(TypedDict):
    number: int


class PairCode(TypedDict):
    code: str
    devices: DevicesView
    seconds: float
    url: str


class PartRisk(TypedDict):
    level: Literal["high", "low", "medium"]
    reasons: list[str]


class PartView(TypedDict):
    action: str
    effect: Literal["allow", "ask", "deny"]
    inside: bool
    opaque: str
    protected: bool
    reasons: list[str]
    risk: Literal["high", "low", "medium"]
    rule: str
    text: str
    why: str


class PathPreview(TypedDict):
    kind: Literal["path"]
    path: str


class PauseView(TypedDict):
    by: str
    since: int | None
    won: bool


class PersonSignedIn(TypedDict):
    kind: Literal["PersonSignedIn"]
    name: str
    place: str
    sign_in: str


class PlanData(TypedDict):
    entries: list[PlanEntry]


class PlanEntry(TypedDict):
    content: str
    priority: str
    status: str


class PolicyAccepted(TypedDict):
    by: str
    changes: list[str]
    kind: Literal["PolicyAccepted"]


class PolicyChangeView(TypedDict):
    change: Literal["added", "changed", "removed"]
    part: Literal["config", "journal", "rules"]
    what: str


class PolicyView(TypedDict):
    changes: list[PolicyChangeView]
    digest: str
    head_chain: str
    head_seq: int
    kept_seq: int | None
    known: bool
    suspended: str
    taken: list[PolicyChangeView]


class Problem(TypedDict):
    detail: str


class ProcessHealth(TypedDict):
    descriptors: int
    loop_lag_ms: float
    pid: int
    rss_bytes: int


class ProcessSeen(TypedDict):
    name: str
    pid: int


class PromptBody(TypedDict):
    agent: NotRequired[str | None]
    env: NotRequired[dict[str, str] | None]
    files: NotRequired[list[str]]
    images: NotRequired[list[ImageBody]]
    queue: NotRequired[bool]
    steer: NotRequired[bool]
    text: str


class PromptDropped(TypedDict):
    by: str
    kind: Literal["PromptDropped"]
    message: str
    thread: str


class PromptSent(TypedDict):
    kind: Literal["PromptSent"]
    message: str
    n: int
    operation: str
    thread: str


class Prompted(TypedDict):
    message: str
    operation: str | None
    replaced: str | None
    steered: bool
    thread: str


class ProposalView(TypedDict):
    after: str | None
    before: str | None
    changed: str | None
    difference: str
    path: str


class ProposedBody(TypedDict):
    approval: NotRequired[str | None]
    rule: RuleBody


class ProposedView(TypedDict):
    calls: int
    decided: int
    examples: list[str]
    matches: int
    problem: str
    prompts: int
    words: str


class PushBody(TypedDict):
    auth: str
    endpoint: str
    p256dh: str


class PushKey(TypedDict):
    key: str
    subscribed: bool


class RawData(TypedDict):
    update: Any


class Receipt(TypedDict):
    bytes_kept: int
    ended_by: str
    files_changed: list[str]
    processes_left: list[ProcessSeen]
    processes_stopped: list[ProcessSeen]
    signals: list[SignalSent]
    stopped: bool


class RenameBody(TypedDict):
    title: str


class Restart(TypedDict):
    approvals_kept: int
    at: int
    crashed: bool
    interrupted: int
    pid: int
    seq: int
    terminals_adopted: int


class Result(TypedDict):
    data: dict[str, JsonValue]
    text: str


class ResultPreview(TypedDict):
    is_error: bool
    kind: Literal["result"]
    notes: list[str]
    server: str
    structured: str
    text: str


class Rule(TypedDict):
    agent: str | None
    arguments: list[tuple[str, str]]
    command: str | None
    disabled: bool
    effect: Literal["allow", "ask", "deny"]
    expires_at: int | None
    host: str | None
    id: str
    match: list[str]
    not_match: list[str]
    note: str
    path: str | None
    rank: int
    scope: Literal["project", "session", "user"]
    server: str | None
    session: str | None
    source: str
    tool: str | None
    workspace: str | None


class RuleAdded(TypedDict):
    approval: str | None
    by: str
    kind: Literal["RuleAdded"]
    rule: Rule


class RuleBody(TypedDict):
    agent: NotRequired[str | None]
    arguments: NotRequired[dict[str, str]]
    command: NotRequired[str | None]
    effect: NotRequired[Literal["allow", "ask", "deny"]]
    expires_in: NotRequired[int | None]
    host: NotRequired[str | None]
    match: NotRequired[list[str]]
    not_match: NotRequired[list[str]]
    note: NotRequired[str]
    path: NotRequired[str | None]
    pattern: NotRequired[str | None]
    scope: NotRequired[Literal["project", "session", "user"]]
    server: NotRequired[str | None]
    tool: NotRequired[str | None]
    workspace: NotRequired[str | None]


class RuleDisabled(TypedDict):
    by: str
    kind: Literal["RuleDisabled"]
    rule: str


class RuleEnabled(TypedDict):
    by: str
    kind: Literal["RuleEnabled"]
    rule: str


class RulePlaceBody(TypedDict):
    before: NotRequired[str | None]


class RuleRemoved(TypedDict):
    by: str
    kind: Literal["RuleRemoved"]
    rule: str


class RuleSwitchBody(TypedDict):
    enabled: bool


class RuleView(TypedDict):
    added_at: int | None
    added_by: str | None
    builtin: bool
    hits: int
    in_force: bool
    last_call: str | None
    last_used_at: int | None
    removable: bool
    rule: Rule
    says: str
    words: str


class RulesOrdered(TypedDict):
    by: str
    kind: Literal["RulesOrdered"]
    rules: list[str]


class RulesView(TypedDict):
    default_policy: Literal["allow", "ask", "deny"]
    folders: list[FolderView]
    human_in_the_loop: bool
    rules: list[RuleView]
    suggestions: list[Suggestion]


class SearchHit(TypedDict):
    at: int
    call: str | None
    kind: Literal["input", "message", "output", "terminal", "title"]
    marks: list[tuple[int, int]]
    message: str | None
    n: int | None
    role: Literal["assistant", "system", "user"] | None
    snippet: str
    terminal: str | None
    thread: str | None
    title: str


class SearchView(TypedDict):
    hits: list[SearchHit]
    more: bool


class SecretBody(TypedDict):
    value: str


class SecretView(TypedDict):
    kept: Literal["file", "keyring", "nowhere"]
    name: str
    servers: list[str]


class Seen(TypedDict):
    digest: str
    id: str


class ServerEnded(TypedDict):
    client: str
    kind: Literal["ServerEnded"]
    said: list[str]
    server: str
    terminal: str
    why: str


class ServerLogView(TypedDict):
    lines: list[str]
    problem: str
    running: list[ServerProcessView]


class ServerLoginBody(TypedDict):
    local: NotRequired[bool]


class ServerLoginLink(TypedDict):
    seconds: float
    url: str


class ServerLoginView(TypedDict):
    problem: str
    server: str
    state: Literal["done", "needed", "none", "pending"]


class ServerProcessView(TypedDict):
    client: str
    lines: list[str]
    pid: int | None


class ServerStarted(TypedDict):
    client: str
    kind: Literal["ServerStarted"]
    pid: int
    protocol: str
    server: str
    terminal: str
    version: str


class ServerToolView(TypedDict):
    description: str
    diff: str
    digest: str
    name: str
    own_name: str
    state: Literal["changed", "known", "new"]
    title: str


class ServerToolsPinned(TypedDict):
    capabilities: dict[str, JsonValue]
    kind: Literal["ServerToolsPinned"]
    server: str
    tools: list[dict[str, JsonValue]]
    why: str


class ServerTrialView(TypedDict):
    lines: list[str]
    ms: int
    problem: str
    server: ServerView


class ServerView(TypedDict):
    calls_hour: int
    clients: list[str]
    cwd: str
    errors_hour: int
    headers: list[str]
    is_listed: bool
    name: str
    passed: list[str]
    problem: str
    protocol: str
    refused: list[str]
    sampling: bool
    state: Literal["disabled", "failed", "held", "idle", "running", "starting"]
    target: str
    tools: list[ServerToolView]
    variables: list[str]
    version: str


class SessionBound(TypedDict):
    agent: str
    how: Literal["forked", "known", "loaded", "new", "resumed", "transcript"]
    kind: Literal["SessionBound"]
    session: str
    thread: str
    upto: int


class SettingBody(TypedDict):
    id: NotRequired[str]
    setting: Literal["mode", "option"]
    value: str | bool


class SettingField(TypedDict):
    about: str
    choices: list[str]
    kind: Literal["choice", "names", "number", "other", "switch", "text"]
    least: float | None
    most: float | None
    optional: bool
    secret: bool


class SettingView(TypedDict):
    default: bool
    field: SettingField
    name: str
    pending: bool
    restart: bool
    value: Any


class SettingsBody(TypedDict):
    values: dict[str, bool | int | float | str | list[str] | None]


class SettingsView(TypedDict):
    path: str
    problem: str
    values: list[SettingView]


class SignInBody(TypedDict):
    code: str
    key: NotRequired[str]
    name: NotRequired[str]


class SignInRevoked(TypedDict):
    kind: Literal["SignInRevoked"]
    sign_in: str
    why: str


class SignInView(TypedDict):
    at: int
    current: bool
    device: bool
    id: str
    lasts: bool
    name: str
    seen_at: int


class SignalSent(TypedDict):
    after_ms: int
    signal: str


class SignedIn(TypedDict):
    bearer: str
    sign_in: str


class SizeBody(TypedDict):
    cols: int
    rows: int


class Speaker(TypedDict):
    name: str
    steers: bool


class State(TypedDict):
    approvals: list[ApprovalView]
    auto_approve: bool
    calls: list[CallView]
    command_line: str
    human_in_the_loop: bool
    now: int
    pause: PauseView
    policy: PolicyView
    recent: list[CallView]
    seq: int
    started: Restart
    terminals: list[TerminalView]
    version: str


class StepView(TypedDict):
    decides: bool
    effect: Literal["allow", "ask", "deny"] | None
    name: str
    parts: list[int]
    words: str


class StopReceipt(TypedDict):
    beyond: int
    calls: int
    operations: int
    terminals: int


class Suggestion(TypedDict):
    answers: int
    claims: list[int]
    rule: RuleBody
    words: str


class TakenView(TypedDict):
    by: str
    holds: bool


class TerminalAsked(TypedDict):
    kind: Literal["TerminalAsked"]
    prompt: str
    secret: bool
    sure: Literal["certain", "likely"]
    terminal: str


class TerminalClosed(TypedDict):
    by: str
    kind: Literal["TerminalClosed"]
    terminal: str


class TerminalContent(TypedDict):
    kind: Literal["terminal"]
    terminal: str


class TerminalDetail(TypedDict):
    agent_gone: bool
    argv: list[str]
    asks: AsksView | None
    at_prompt: bool | None
    attached: bool
    busy: bool
    bytes: int
    call_id: str | None
    commands: list[CommandView]
    cwd: str
    ended_at: int | None
    exit_code: int | None
    first: int
    foreground: str | None
    forgotten: bool
    id: str
    last_output_at: int | None
    lines_dropped: int
    lost: bool
    name: str
    nonce: str
    of: Literal["command", "shell", "tracked"]
    owner: Owner | None
    pid: int
    running: bool
    seq: int
    shell: str
    signal: str | None
    size: tuple[int, int]
    started_at: int
    taken: TakenView | None
    typed: list[TypedView]


class TerminalEnded(TypedDict):
    bytes: int
    cwd: str | None
    exit_code: int | None
    kind: Literal["TerminalEnded"]
    lost: bool
    signal: str | None
    terminal: str


class TerminalForgotten(TypedDict):
    kind: Literal["TerminalForgotten"]
    terminal: str
    why: str


class TerminalOpened(TypedDict):
    argv: list[str]
    call: str | None
    cols: int
    cwd: str
    kind: Literal["TerminalOpened"]
    name: str
    nonce: str
    of: Literal["command", "shell", "tracked"]
    owner: Owner | None
    pid: int
    rows: int
    terminal: str


class TerminalReleased(TypedDict):
    by: str
    kind: Literal["TerminalReleased"]
    terminal: str


class TerminalTaken(TypedDict):
    by: str
    holds: bool
    kind: Literal["TerminalTaken"]
    terminal: str


class TerminalTyped(TypedDict):
    by: str
    kind: Literal["TerminalTyped"]
    offset: int
    person: bool
    terminal: str
    text: str | None


class TerminalView(TypedDict):
    agent_gone: bool
    argv: list[str]
    asks: AsksView | None
    attached: bool
    busy: bool
    bytes: int
    call_id: str | None
    cwd: str
    ended_at: int | None
    exit_code: int | None
    first: int
    foreground: str | None
    forgotten: bool
    id: str
    last_output_at: int | None
    lines_dropped: int
    lost: bool
    name: str
    of: Literal["command", "shell", "tracked"]
    owner: Owner | None
    pid: int
    running: bool
    seq: int
    shell: str
    signal: str | None
    size: tuple[int, int]
    started_at: int
    taken: TakenView | None


class TerminalWentOn(TypedDict):
    kind: Literal["TerminalWentOn"]
    terminal: str


class TestBody(TypedDict):
    agent: NotRequired[str | None]
    command: NotRequired[str | None]
    input: NotRequired[dict[str, JsonValue] | None]
    rule: NotRequired[RuleBody | None]
    tool: NotRequired[str | None]
    workspace: NotRequired[str | None]


class TestView(TypedDict):
    chain: list[StepView]
    effect: Literal["allow", "ask", "deny"]
    parts: list[PartView]
    reasons: list[str]
    risk: Literal["high", "low", "medium"]
    rule: str
    trusted: bool
    why: str


class TextContent(TypedDict):
    kind: Literal["text"]
    text: str


class ThreadBody(TypedDict):
    agent: NotRequired[str | None]
    title: NotRequired[str]
    workspace: NotRequired[str | None]


class ThreadDeleted(TypedDict):
    by: str
    kind: Literal["ThreadDeleted"]
    thread: str


class ThreadDetail(TypedDict):
    agent: str
    asks: Literal["commands", "everything", "nobody"] | None
    created_at: int
    forked_from: str | None
    id: str
    messages: int
    more: bool
    operation: str | None
    queued: int
    rev: int
    said: list[MessageView]
    state: dict[str, dict[str, JsonValue]]
    stop: (
        Literal[
            "cancelled",
            "end_turn",
            "failed",
            "interrupted",
            "max_tokens",
            "max_turn_requests",
            "refusal",
            "steered",
        ]
        | None
    )
    title: str
    updated_at: int
    workspace: str | None


class ThreadFlow(TypedDict):
    dropped: list[str]
    messages: list[MessageView]
    parts: list[Growth]
    reset: bool
    rev: int
    state: dict[str, dict[str, JsonValue]]


class ThreadOpened(TypedDict):
    agent: str
    by: str
    forked_at: str | None
    forked_from: str | None
    imported: bool
    kind: Literal["ThreadOpened"]
    thread: str
    title: str
    workspace: str | None


class ThreadPage(TypedDict):
    more: bool
    said: list[MessageView]


class ThreadRenamed(TypedDict):
    by: str
    kind: Literal["ThreadRenamed"]
    thread: str
    title: str


class ThreadView(TypedDict):
    agent: str
    asks: Literal["commands", "everything", "nobody"] | None
    created_at: int
    forked_from: str | None
    id: str
    messages: int
    operation: str | None
    queued: int
    stop: (
        Literal[
            "cancelled",
            "end_turn",
            "failed",
            "interrupted",
            "max_tokens",
            "max_turn_requests",
            "refusal",
            "steered",
        ]
        | None
    )
    title: str
    updated_at: int
    workspace: str | None


class TranscriptDetail(TypedDict):
    client: Literal["claude", "codex", "gemini", "opencode"]
    client_title: str
    folder: str
    said: list[MessageView]
    session: str
    shortened: bool
    size: int | None
    skipped: int
    title: str
    updated_at: int


class TranscriptView(TypedDict):
    client: Literal["claude", "codex", "gemini", "opencode"]
    client_title: str
    folder: str
    session: str
    size: int | None
    title: str
    updated_at: int


class TypedView(TypedDict):
    at: int
    by: str
    offset: int
    person: bool
    text: str | None


class UndoBody(TypedDict):
    digest: str


class UndoFile(TypedDict):
    added: int
    diff: str
    does: Literal["nothing", "recreate", "refuse", "remove", "restore"]
    path: str
    removed: int
    says: str


class UndoView(TypedDict):
    digest: str
    files: list[UndoFile]
    not_covered: list[str]
    of: Literal["call", "operation", "thread", "undo"]
    title: str
    undo: str | None
    what: str


class Usage(TypedDict):
    cost: Cost | None
    size: int
    used: int


class Usual(TypedDict):
    median_ms: int
    of: int
    p95_ms: int


class Verdict(TypedDict):
    claim: int
    effect: Literal["allow", "ask", "deny"]
    rule: str
    why: str


class Get(Protocol):
    """GET below `/api`."""

    @overload
    def __call__(self, a: Literal["agents"], /) -> list[AgentView]: ...
    @overload
    def __call__(
        self, a: Literal["agents"], b: str, c: Literal["sessions"], /, *, workspace: str | None = None
    ) -> list[AgentSessionView]: ...
    @overload
    def __call__(self, a: Literal["approvals"], /, *, open: bool | None = None) -> list[ApprovalView]: ...
    @overload
    def __call__(self, a: Literal["approvals"], b: str, /) -> ApprovalView: ...
    @overload
    def __call__(self, a: Literal["approvals"], b: str, c: Literal["proposal"], /) -> ProposalView: ...
    @overload
    def __call__(
        self,
        a: Literal["calls"],
        /,
        *,
        status: Literal["running", "waiting"]
        | Literal["cancelled", "completed", "denied", "done", "failed", "interrupted"]
        | None = None,
        tool: str | None = None,
        agent: str | None = None,
        q: str | None = None,
        before: int | None = None,
        limit: int | None = None,
        caller: str | None = None,
        unasked: bool | None = None,
    ) -> list[CallView]: ...
    @overload
    def __call__(
        self, a: Literal["calls"], b: Literal["counts"], /, *, q: str | None = None
    ) -> CallCounts: ...
    @overload
    def __call__(
        self,
        a: Literal["calls"],
        b: Literal["table"],
        /,
        *,
        q: str | None = None,
        sort: Literal["agent", "by", "folder", "ran", "status", "time", "title", "tool", "waited"]
        | None = None,
        ascending: bool | None = None,
        upto: int | None = None,
        offset: int | None = None,
        limit: int | None = None,
    ) -> CallTableView: ...
    @overload
    def __call__(self, a: Literal["calls"], b: str, /) -> CallDetail: ...
    @overload
    def __call__(self, a: Literal["clients"], /) -> list[ClientView]: ...
    @overload
    def __call__(self, a: Literal["clients"], b: Literal["known"], /) -> list[KnownClientView]: ...
    @overload
    def __call__(self, a: Literal["credentials"], /) -> list[CredentialView]: ...
    @overload
    def __call__(self, a: Literal["devices"], /) -> DevicesView: ...
    @overload
    def __call__(self, a: Literal["editors"], /) -> list[EditorView]: ...
    @overload
    def __call__(self, a: Literal["events"], /, *, after: int | None = None) -> LiveEntries: ...
    @overload
    def __call__(self, a: Literal["folders"], /) -> list[FolderView]: ...
    @overload
    def __call__(self, a: Literal["health"], /) -> Health: ...
    @overload
    def __call__(self, a: Literal["keys"], /) -> KeysView: ...
    @overload
    def __call__(self, a: Literal["logins"], /) -> list[ServerLoginView]: ...
    @overload
    def __call__(self, a: Literal["operations"], /) -> list[OperationView]: ...
    @overload
    def __call__(self, a: Literal["operations"], b: str, /) -> OperationDetail: ...
    @overload
    def __call__(self, a: Literal["policy"], /) -> PolicyView: ...
    @overload
    def __call__(self, a: Literal["push"], /) -> PushKey: ...
    @overload
    def __call__(self, a: Literal["rules"], /, *, workspace: str | None = None) -> RulesView: ...
    @overload
    def __call__(
        self, a: Literal["search"], /, *, q: str, workspace: str | None = None, limit: int | None = None
    ) -> SearchView: ...
    @overload
    def __call__(self, a: Literal["secrets"], /) -> list[SecretView]: ...
    @overload
    def __call__(self, a: Literal["servers"], /) -> list[ServerView]: ...
    @overload
    def __call__(self, a: Literal["servers"], b: str, c: Literal["logs"], /) -> ServerLogView: ...
    @overload
    def __call__(self, a: Literal["settings"], /) -> SettingsView: ...
    @overload
    def __call__(self, a: Literal["sign-ins"], /) -> list[SignInView]: ...
    @overload
    def __call__(self, a: Literal["state"], /) -> State: ...
    @overload
    def __call__(
        self,
        a: Literal["terminals"],
        /,
        *,
        running: bool | None = None,
        of: list[Literal["command", "shell", "tracked"]] | None = None,
        before: int | None = None,
        limit: int | None = None,
        q: str | None = None,
    ) -> list[TerminalView]: ...
    @overload
    def __call__(self, a: Literal["terminals"], b: str, /) -> TerminalDetail: ...
    @overload
    def __call__(
        self,
        a: Literal["terminals"],
        b: str,
        c: Literal["output"],
        /,
        *,
        mode: Literal["raw", "screen", "text"] | None = None,
        after: int | None = None,
        lines: int | None = None,
        download: bool | None = None,
    ) -> OutputView: ...
    @overload
    def __call__(
        self,
        a: Literal["terminals"],
        b: str,
        c: Literal["search"],
        /,
        *,
        pattern: str,
        raw: bool | None = None,
        case_insensitive: bool | None = None,
        context: int | None = None,
        max_results: int | None = None,
    ) -> FoundView: ...
    @overload
    def __call__(
        self,
        a: Literal["threads"],
        /,
        *,
        workspace: str | None = None,
        before: int | None = None,
        limit: int | None = None,
    ) -> list[ThreadView]: ...
    @overload
    def __call__(self, a: Literal["threads"], b: str, /, *, limit: int | None = None) -> ThreadDetail: ...
    @overload
    def __call__(
        self,
        a: Literal["threads"],
        b: str,
        c: Literal["files"],
        /,
        *,
        q: str | None = None,
        limit: int | None = None,
    ) -> list[str]: ...
    @overload
    def __call__(
        self,
        a: Literal["threads"],
        b: str,
        c: Literal["messages"],
        /,
        *,
        before: int,
        limit: int | None = None,
    ) -> ThreadPage: ...
    @overload
    def __call__(
        self, a: Literal["transcripts"], /, *, folder: str | None = None, limit: int | None = None
    ) -> list[TranscriptView]: ...
    @overload
    def __call__(self, a: Literal["transcripts"], b: str, c: str, /) -> TranscriptDetail: ...
    @overload
    def __call__(self, a: Literal["undo"], b: str, /) -> UndoView: ...


class Post(Protocol):
    """POST below `/api`."""

    @overload
    def __call__(self, a: Literal["agents"], b: str, c: Literal["login"], /, *, body: LoginBody) -> None: ...
    @overload
    def __call__(
        self, a: Literal["agents"], b: str, c: Literal["sessions"], /, *, body: AdoptBody
    ) -> ThreadView: ...
    @overload
    def __call__(
        self, a: Literal["approvals"], b: Literal["allow-low"], /, *, body: AllowLowBody
    ) -> list[AllowedLow]: ...
    @overload
    def __call__(
        self, a: Literal["approvals"], b: str, c: Literal["answer"], /, *, body: AnswerBody
    ) -> ApprovalView: ...
    @overload
    def __call__(
        self, a: Literal["approvals"], b: str, c: Literal["edit"], /, *, body: EditBody
    ) -> EditView: ...
    @overload
    def __call__(self, a: Literal["calls"], b: str, c: Literal["cancel"], /) -> Forced: ...
    @overload
    def __call__(
        self, a: Literal["calls"], b: str, c: Literal["complete"], /, *, body: CompleteBody
    ) -> Forced: ...
    @overload
    def __call__(self, a: Literal["clients"], b: Literal["demo"], /) -> DemoView: ...
    @overload
    def __call__(self, a: Literal["code"], /, *, body: CodeBody | None) -> dict[str, str]: ...
    @overload
    def __call__(self, a: Literal["credentials"], /, *, body: CredentialBody) -> Credential: ...
    @overload
    def __call__(self, a: Literal["devices"], b: Literal["listener"], /, *, body: ListenBody) -> PairCode: ...
    @overload
    def __call__(self, a: Literal["down"], /, *, keep_terminals: bool | None = None) -> dict[str, bool]: ...
    @overload
    def __call__(self, a: Literal["editors"], b: str, c: Literal["pair"], /, *, body: PairBody) -> None: ...
    @overload
    def __call__(self, a: Literal["editors"], b: str, c: Literal["refuse"], /) -> None: ...
    @overload
    def __call__(
        self, a: Literal["folders"], b: Literal["distrust"], /, *, body: FolderBody
    ) -> FolderView: ...
    @overload
    def __call__(self, a: Literal["folders"], b: Literal["trust"], /, *, body: FolderBody) -> FolderView: ...
    @overload
    def __call__(
        self, a: Literal["logins"], b: str, /, *, body: ServerLoginBody | None
    ) -> ServerLoginLink: ...
    @overload
    def __call__(
        self, a: Literal["operations"], b: str, c: Literal["activities"], d: str, e: Literal["cancel"], /
    ) -> dict[str, bool]: ...
    @overload
    def __call__(self, a: Literal["operations"], b: str, c: Literal["cancel"], /) -> dict[str, bool]: ...
    @overload
    def __call__(self, a: Literal["policy"], b: Literal["accept"], /, *, body: AcceptBody) -> PolicyView: ...
    @overload
    def __call__(self, a: Literal["policy"], b: Literal["expect"], /, *, body: ExpectBody) -> None: ...
    @overload
    def __call__(self, a: Literal["rules"], /, *, body: RuleBody) -> RuleView: ...
    @overload
    def __call__(
        self, a: Literal["rules"], b: Literal["propose"], /, *, body: ProposedBody
    ) -> ProposedView: ...
    @overload
    def __call__(self, a: Literal["rules"], b: Literal["test"], /, *, body: TestBody) -> TestView: ...
    @overload
    def __call__(
        self, a: Literal["rules"], b: str, c: Literal["move"], /, *, body: RulePlaceBody
    ) -> RuleView: ...
    @overload
    def __call__(self, a: Literal["servers"], /, *, body: McpServerSection) -> ServerView: ...
    @overload
    def __call__(self, a: Literal["servers"], b: str, c: Literal["restart"], /) -> None: ...
    @overload
    def __call__(self, a: Literal["servers"], b: str, c: Literal["test"], /) -> ServerTrialView: ...
    @overload
    def __call__(
        self,
        a: Literal["servers"],
        b: str,
        c: Literal["tools"],
        d: str,
        e: Literal["accept"],
        /,
        *,
        body: AcceptToolBody,
    ) -> ServerView: ...
    @overload
    def __call__(
        self, a: Literal["settings"], b: Literal["agents"], /, *, body: AgentEntryBody
    ) -> SettingsView: ...
    @overload
    def __call__(self, a: Literal["sign-in"], /, *, body: SignInBody) -> SignedIn: ...
    @overload
    def __call__(
        self, a: Literal["sign-in"], b: Literal["challenge"], /, *, body: ChallengeBody
    ) -> Challenge: ...
    @overload
    def __call__(self, a: Literal["sign-in"], b: Literal["key"], /, *, body: KeySignInBody) -> SignedIn: ...
    @overload
    def __call__(self, a: Literal["stop"], /) -> StopReceipt: ...
    @overload
    def __call__(self, a: Literal["terminals"], /, *, body: OpenBody) -> TerminalView: ...
    @overload
    def __call__(
        self, a: Literal["terminals"], b: Literal["close"], /, *, body: CloseBody
    ) -> list[Closed]: ...
    @overload
    def __call__(self, a: Literal["terminals"], b: str, c: Literal["close"], /) -> Closed: ...
    @overload
    def __call__(
        self, a: Literal["terminals"], b: str, c: Literal["input"], /, *, body: InputBody
    ) -> TerminalView: ...
    @overload
    def __call__(self, a: Literal["terminals"], b: str, c: Literal["release"], /) -> TerminalView: ...
    @overload
    def __call__(
        self, a: Literal["terminals"], b: str, c: Literal["size"], /, *, body: SizeBody
    ) -> TerminalView: ...
    @overload
    def __call__(self, a: Literal["terminals"], b: str, c: Literal["take"], /) -> TerminalView: ...
    @overload
    def __call__(self, a: Literal["threads"], /, *, body: ThreadBody) -> ThreadView: ...
    @overload
    def __call__(
        self, a: Literal["threads"], b: Literal["default"], /, *, body: DefaultBody
    ) -> ThreadView: ...
    @overload
    def __call__(
        self,
        a: Literal["threads"],
        b: Literal["import"],
        /,
        *,
        body: dict[str, Any],
        workspace: str | None = None,
    ) -> ThreadView: ...
    @overload
    def __call__(
        self, a: Literal["threads"], b: str, c: Literal["fork"], /, *, body: ForkBody
    ) -> ThreadView: ...
    @overload
    def __call__(
        self, a: Literal["threads"], b: str, c: Literal["prompt"], /, *, body: PromptBody
    ) -> Prompted: ...
    @overload
    def __call__(
        self, a: Literal["threads"], b: str, c: Literal["queue"], d: str, e: Literal["send"], /
    ) -> Prompted: ...
    @overload
    def __call__(
        self, a: Literal["threads"], b: str, c: Literal["queue"], d: str, e: Literal["steer"], /
    ) -> Prompted: ...
    @overload
    def __call__(
        self, a: Literal["threads"], b: str, c: Literal["setting"], /, *, body: SettingBody
    ) -> None: ...
    @overload
    def __call__(self, a: Literal["undo"], b: str, /, *, body: UndoBody) -> UndoView: ...


class Put(Protocol):
    """PUT below `/api`."""

    @overload
    def __call__(self, a: Literal["keys"], b: str, /, *, body: KeyBody) -> None: ...
    @overload
    def __call__(self, a: Literal["pause"], /) -> PauseView: ...
    @overload
    def __call__(self, a: Literal["push"], /, *, body: PushBody) -> None: ...
    @overload
    def __call__(self, a: Literal["secrets"], b: str, /, *, body: SecretBody) -> None: ...


class Patch(Protocol):
    """PATCH below `/api`."""

    @overload
    def __call__(self, a: Literal["rules"], b: str, /, *, body: RuleSwitchBody) -> RuleView: ...
    @overload
    def __call__(self, a: Literal["settings"], /, *, body: SettingsBody) -> SettingsView: ...
    @overload
    def __call__(self, a: Literal["sign-ins"], b: str, /, *, body: NameBody) -> None: ...
    @overload
    def __call__(self, a: Literal["threads"], b: str, /, *, body: RenameBody) -> ThreadView: ...


class Delete(Protocol):
    """DELETE below `/api`."""

    @overload
    def __call__(self, a: Literal["credentials"], b: str, /) -> None: ...
    @overload
    def __call__(self, a: Literal["devices"], b: Literal["listener"], /) -> None: ...
    @overload
    def __call__(self, a: Literal["keys"], b: str, /) -> None: ...
    @overload
    def __call__(self, a: Literal["logins"], b: str, /) -> None: ...
    @overload
    def __call__(self, a: Literal["pause"], /) -> PauseView: ...
    @overload
    def __call__(self, a: Literal["push"], /) -> None: ...
    @overload
    def __call__(self, a: Literal["rules"], b: str, /) -> None: ...
    @overload
    def __call__(self, a: Literal["secrets"], b: str, /) -> None: ...
    @overload
    def __call__(self, a: Literal["servers"], b: str, /) -> None: ...
    @overload
    def __call__(self, a: Literal["settings"], b: Literal["agents"], c: str, /) -> SettingsView: ...
    @overload
    def __call__(self, a: Literal["sign-ins"], b: str, /) -> None: ...
    @overload
    def __call__(self, a: Literal["threads"], b: str, /) -> None: ...
    @overload
    def __call__(self, a: Literal["threads"], b: str, c: Literal["queue"], d: str, /) -> None: ...
