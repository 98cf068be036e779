"""Calls: events, records, queries and SQL for tool calls, from opening to the end of the work.

Owns the one place where a call's status is derived.
"""

import sqlite3
from collections.abc import Iterable
from functools import cache
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, TypeAdapter

from handrail.lazy_dataclass import dataclass
from handrail.store.actor import actor_from_text
from handrail.store.approvals import (
    APPROVALS,
    IS_OPEN,
    ApprovalAnswered,
    ApprovalRecord,
    approval_of,
)
from handrail.store.call_times import ALIKE, RAN, WAITED
from handrail.store.database import Statement
from handrail.store.file_changes import changes
from handrail.store.query import AMONG_IDS, Queries, Value, Where, caller_of, column_names, columns_of
from handrail.store.rules import used_by_settling, used_by_start
from handrail.store.values import (
    Assurance,
    Caller,
    Claim,
    Ending,
    FileChange,
    Json,
    Preview,
    Receipt,
    Result,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOpened:
    """A client called a tool."""

    kind: Literal["CallOpened"] = "CallOpened"
    call: str
    tool: str
    title: str
    input: Json
    caller: Caller
    assurance: Assurance = "bound"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStarted:
    """The call was allowed and starts to run."""

    kind: Literal["CallStarted"] = "CallStarted"
    call: str
    claims: tuple[Claim, ...]
    allowed_by: str
    """The text form of an actor: `rule ID` or `approval ID`."""
    rules: tuple[str, ...] = ()
    """Every rule that contributed to allowing it."""
    files: tuple[FileChange, ...] = ()
    """The file changes it is about to make; the old contents are already stored."""
    title: str = ""
    """The title of what runs, if a person edited the input; empty if that of `CallOpened` is right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallHandedBack:
    """The client got `waiting` and the call's id; the call continues."""

    kind: Literal["CallHandedBack"] = "CallHandedBack"
    call: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallClientGone:
    """The client no longer waits for this call; the outcome goes to its mailbox."""

    kind: Literal["CallClientGone"] = "CallClientGone"
    call: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallClientBack:
    """The client of this call is connected again, and can ask for the outcome."""

    kind: Literal["CallClientBack"] = "CallClientBack"
    call: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSettled:
    """The outcome is final; the work may still be stopping (`receipt.stopped`)."""

    kind: Literal["CallSettled"] = "CallSettled"
    call: str
    ending: Ending
    by: str
    message: str
    result: Result | None
    receipt: Receipt


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStopped:
    """The work of a call that was settled early has ended."""

    kind: Literal["CallStopped"] = "CallStopped"
    call: str
    receipt: Receipt


Status = Literal["waiting", "running"] | Ending


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord:
    """One call, without large fields. Times are milliseconds since 1970."""

    id: str
    tool: str
    title: str
    status: Status
    caller: Caller
    assurance: Assurance
    approval: str | None
    """The latest approval."""
    terminal: str | None
    allowed_by: str | None
    ending: Ending | None
    settled_by: str | None
    message: str | None
    opened_at: int
    started_at: int | None
    handed_back_at: int | None
    client_gone_at: int | None
    settled_at: int | None
    stopped_at: int | None
    opened_seq: int
    settled_seq: int | None
    stopped_seq: int | None
    exit_code: int | None
    """Of the command that the call ran; None if it ran none, or a signal ended it."""
    signal: str | None
    asked_at: int | None
    """When a person was asked whether it may run."""
    reviewed_at: int | None
    """When a person was asked to review its result; `answered_at` is then of the review."""
    answered_at: int | None
    """When a person or a rule answered it; None if it ended another way."""
    answered_by: str | None
    edited: bool
    """Allowed with an edited input or content."""
    waited_ms: int
    """How long it waited for a person, or has waited until now: to be allowed, and for the review of its result."""
    ran_ms: int
    """How long it ran, or has run until now, without the review of its result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallHistory:
    """One call with its input, result and other large fields."""

    call: CallRecord
    input: Json | None
    """The effective input, with a person's edits."""
    asked: Json | None
    """The agent's original input if a person edited it; otherwise None."""
    claims: tuple[Claim, ...]
    """The claims at its start; before that, those of the approval."""
    preview: Preview | None
    approval: ApprovalRecord | None
    """The latest approval."""
    files: tuple[FileChange, ...]
    """The planned file changes, once it started."""
    result: Result | None
    allowed_digest: str
    """Digest of what the answer of the latest approval allows; empty if nothing was allowed."""
    receipt: Receipt | None
    """The receipt of the stop, if any; otherwise of the settling."""


class TypicalDuration(NamedTuple):
    """How long similar calls took after they were allowed; `of` is the sample size."""

    median_ms: int
    p95_ms: int
    of: int


_ALIKE_MAX, _ALIKE_MIN = 50, 3
"""Sample size for a typical duration: the maximum, and the minimum for an estimate."""


class CallPlace(NamedTuple):
    """The workspace and thread of a call."""

    workspace: str | None
    thread: str | None


class ServerCounts(NamedTuple):
    """Calls of the tools of one MCP server."""

    calls: int
    errors: int
    """Failed or interrupted."""


_COUNTED_MAX = 20_000
"""Latest calls among which those of servers are counted: bounds the time."""


class CallCounts(Queries):
    """Counts over many calls."""

    async def by_status(self, where: Where) -> dict[Status, int]:
        """Count calls as their rows show them: a command that ended with 1 has failed. Indexes do it for calls that ended."""
        sql = f"SELECT calls.ending, count(*) FROM calls{where} GROUP BY 1"
        counts = dict(await self._all(lambda row: (row[0], int(row[1])), sql, where.values))
        if counts.pop(None, 0):
            still_open = where.copy()
            still_open.plain("calls.ending IS NULL")
            sql = f"SELECT {STATUS}, count(*) FROM calls{still_open} GROUP BY 1"
            counts |= dict(await self._all(lambda row: (row[0], int(row[1])), sql, where.values))
        failed = where.copy()
        failed.plain(EXIT_FAILED)
        exits = (
            await self._all(lambda row: int(row[0]), f"SELECT count(*) FROM calls{failed}", where.values)
        )[0]
        counts |= {"done": counts.get("done", 0) - exits, "failed": counts.get("failed", 0) + exits}
        return {status: count for status, count in counts.items() if count}

    async def by_server(self, since: int) -> dict[str, ServerCounts]:
        """Count the calls of the tools of each MCP server that were opened since then, among the latest calls."""
        sql = f"""SELECT substr(tool, 1, instr(tool, '__') - 1), count(*), sum(ending IN ('failed', 'interrupted'))
            FROM (SELECT tool, ending, opened_at FROM calls ORDER BY opened_seq DESC LIMIT {_COUNTED_MAX})
            WHERE opened_at >= ? AND instr(tool, '__') > 1 GROUP BY 1"""
        rows = await self._all(lambda row: (str(row[0]), int(row[1]), int(row[2] or 0)), sql, (since,))
        return {server: ServerCounts(calls=calls, errors=errors) for server, calls, errors in rows}


class CallQueries(Queries):
    """Queries for calls."""

    async def find(
        self,
        status: Status | None = None,
        tool: str | None = None,
        client: str | None = None,
        before: int | None = None,
        limit: int = 200,
        of: Caller | None = None,
        open_only: bool = False,
        handed_back_to: str | None = None,
    ) -> list[CallRecord]:
        """Return calls that match every given condition, newest first. `call_table` searches by words and fields.

        `before` is the `opened_seq` of the last call of the previous page; `of` selects calls made by this client or
        in its workspace, `handed_back_to` those of the client with this key that were handed back to it.
        """
        where = Where()
        if handed_back_to is not None:
            where.add("calls.caller_key = ?", handed_back_to)
            where.plain("calls.handed_back_at IS NOT NULL")
        if of is not None:
            where.add("(calls.caller_key = ? OR calls.workspace = ?)", of.key, of.workspace)
        if open_only:
            where.plain("calls.ending IS NULL")
        where.add("calls.tool = ?", tool)
        where.add("calls.client = ?", client)
        where.add("calls.opened_seq < ?", before)
        if status is not None:
            where.add("status = ?", status)
            # Redundant with the line above, but lets SQLite use an index.
            where.plain("calls.ending IS NULL") if status in _OPEN else where.add("calls.ending = ?", status)
        sql = f"{_CALLS}{where} ORDER BY calls.opened_seq DESC LIMIT ?"
        return await self._all(call_of, sql, (*where.values, limit))

    async def slice(self, where: Where, order: str, offset: int, limit: int) -> list[CallRecord]:
        """Return the calls from `offset`, in this order; the large columns of skipped rows are never read."""
        chosen = f"SELECT calls.opened_seq FROM calls{where} ORDER BY {order} LIMIT ? OFFSET ?"
        sql = f"{_CALLS} WHERE calls.opened_seq IN ({chosen}) ORDER BY {order}"
        return await self._all(call_of, sql, (*where.values, limit, offset))

    async def newest(self) -> int:
        """Return the position of the newest call; 0 without calls."""
        return (await self._all(lambda row: int(row[0]), "SELECT coalesce(max(opened_seq), 0) FROM calls"))[0]

    async def get(self, id: str) -> CallHistory | None:
        details = await self._details("WHERE calls.id = ?", id)
        return details[0] if details else None

    async def still_open(self) -> list[CallHistory]:
        """Return calls without an outcome, oldest first; used at a restart."""
        return await self._details("WHERE calls.ending IS NULL")

    async def count_interrupted(self) -> int:
        """Count the calls interrupted since the last start of a daemon."""
        return await self._reader.read(lambda db: int(db.execute(_INTERRUPTED).fetchone()[0]))

    async def unwinding(self) -> list[CallHistory]:
        """Return settled calls without a recorded stop, oldest first."""
        return await self._details("WHERE calls.ending IS NOT NULL AND calls.stopped_at IS NULL")

    async def of_operation(self, operation: str) -> list[CallRecord]:
        """Return calls oldest first."""
        return await self._all(
            call_of, f"{_CALLS} WHERE calls.operation = ? ORDER BY calls.opened_seq", (operation,)
        )

    async def of_thread(self, thread: str) -> list[CallRecord]:
        """Return calls oldest first."""
        return await self._all(
            call_of, f"{_CALLS} WHERE calls.thread = ? ORDER BY calls.opened_seq", (thread,)
        )

    async def typical_duration(self, tool: str, title: str) -> TypicalDuration | None:
        """Return how long recent calls of the same tool and title ran, without waiting for a person.

        None when there are too few of them.
        """
        took = sorted(await self._all(lambda row: int(row[0]), ALIKE, (tool, title, _ALIKE_MAX)))
        if len(took) < _ALIKE_MIN:
            return None
        return TypicalDuration(
            median_ms=took[len(took) // 2], p95_ms=took[len(took) * 95 // 100], of=len(took)
        )

    async def places(self, calls: Iterable[str]) -> dict[str, CallPlace]:
        sql = f"SELECT id, workspace, thread FROM calls WHERE id {AMONG_IDS}"
        return await self._by_id(sql, calls, lambda row: CallPlace(row["workspace"], row["thread"]))

    async def titles(self, calls: Iterable[str]) -> dict[str, str]:
        return await self._by_id(
            f"SELECT id, title FROM calls WHERE id {AMONG_IDS}", calls, lambda row: str(row["title"])
        )

    async def _details(self, where: str, *values: Value) -> list[CallHistory]:
        sql = f"{_CALLS} {where} ORDER BY calls.opened_seq"

        def read(db: sqlite3.Connection) -> list[CallHistory]:
            return [_detail(db, row) for row in db.execute(sql, values).fetchall()]

        return await self._reader.read(read)


def _detail(db: sqlite3.Connection, row: sqlite3.Row) -> CallHistory:
    asked = db.execute(f"{APPROVALS} WHERE approvals.id = ?", (row["approval"],)).fetchone()
    seqs = (row["opened_seq"], row["started_seq"], row["settled_seq"], row["stopped_seq"], row["id"])
    payloads = db.execute(_PAYLOADS, seqs).fetchall()
    return detail_of(call_of(row), None if asked is None else approval_of(asked), payloads)


_INTERRUPTED = """
SELECT count(*) FROM calls WHERE ending = 'interrupted' AND settled_seq > (
    SELECT coalesce((SELECT seq FROM events WHERE kind = 'DaemonStarted' ORDER BY seq DESC LIMIT 1), 0)
)"""
_OPEN = ("waiting", "running")

# A call's status is its ending; before that, `waiting` while it has an open approval, otherwise `running`.
STATUS = f"""coalesce(calls.ending, CASE WHEN EXISTS (
    SELECT 1 FROM approvals WHERE approvals.call = calls.id AND {IS_OPEN}
) THEN 'waiting' ELSE 'running' END)"""
EXIT_FAILED = "((calls.exit_code <> 0 OR calls.signal IS NOT NULL) AND +calls.ending = 'done')"
"""A command that failed in a call that did not: shown as failed. The `+` lets SQLite take the index of failed exits."""
_ANSWER = ", ".join(
    f"(SELECT approvals.{name} FROM approvals WHERE approvals.id = calls.approval) AS {name}"
    for name in ("answered_at", "answered_by", "edited")
)
_CALLS = f"SELECT calls.*, {STATUS} AS status, {_ANSWER}, {WAITED} AS waited_ms, {RAN} AS ran_ms FROM calls"
_PAYLOADS = """SELECT payload FROM events WHERE payload IS NOT NULL AND seq IN (
    SELECT ? UNION ALL SELECT ? UNION ALL SELECT ? UNION ALL SELECT ?
    UNION ALL SELECT answered_seq FROM approvals WHERE call = ? AND answered_seq IS NOT NULL
) ORDER BY seq"""


def call_of(row: sqlite3.Row) -> CallRecord:
    return CallRecord(caller=caller_of(row), edited=bool(row["edited"]), **columns_of(row, _CALL_COLUMNS))


def detail_of(
    call: CallRecord, approval: ApprovalRecord | None, payloads: Iterable[sqlite3.Row]
) -> CallHistory:
    """Combine a call with the large fields of its events. `payloads` are in order, without erased ones."""
    given = edited = result = receipt = None
    allowed = ""
    claims, files = approval.claims if approval else (), ()
    for row in payloads:
        match _payload_adapter().validate_json(row["payload"]):
            case CallOpened(input=given):
                pass
            case ApprovalAnswered(input=input, digest=allowed):
                edited = input if edited is None else edited  # a review of the result has none
            case CallStarted(claims=claims, files=files):
                pass
            case CallSettled(result=result, receipt=receipt):
                pass
            case CallStopped(receipt=receipt):
                pass
    return CallHistory(
        call=call,
        input=given if edited is None else edited,
        asked=None if edited is None else given,
        claims=claims,
        preview=approval.preview if approval else None,
        approval=approval,
        files=files,
        result=result,
        allowed_digest=allowed,
        receipt=receipt,
    )


CallPayload = Annotated[
    CallOpened | ApprovalAnswered | CallStarted | CallSettled | CallStopped, Field(discriminator="kind")
]
"""The events that hold the large fields of a call."""


@cache
def _payload_adapter() -> TypeAdapter[CallPayload]:
    return TypeAdapter(CallPayload)


_CALL_COLUMNS = column_names(CallRecord, "caller", "edited")

_OfCall = (
    CallOpened | CallStarted | CallHandedBack | CallClientGone | CallClientBack | CallSettled | CallStopped
)


def statements(seq: int, at: int, event: _OfCall) -> list[Statement]:  # noqa: PLR0911 - a line for each event
    match event:
        case CallOpened():
            return [_opened(seq, at, event)]
        case CallStarted():
            return _started(seq, at, event)
        case CallHandedBack(call=id):
            return [(_HANDED_BACK, (at, id))]
        case CallClientGone(call=id):
            return [(_CLIENT_GONE, (at, id))]
        case CallClientBack(call=id):
            return [(_CLIENT_BACK, (id,))]
        case CallSettled():
            return _settled(seq, at, event)
        case CallStopped(call=id):
            return [(_STOPPED, (at, seq, id))]


def _opened(seq: int, at: int, event: CallOpened) -> Statement:
    who = event.caller
    named = (event.call, event.tool, event.title, who.door, who.client, who.key)
    placed = (who.workspace, who.thread, who.operation, event.assurance)
    return (_OPENED, (*named, *placed, at, seq))


def _started(seq: int, at: int, event: CallStarted) -> list[Statement]:
    return [
        (_STARTED, (at, seq, event.allowed_by, event.title, event.call)),
        *(used_by_start(seq, at, rule, event.call) for rule in dict.fromkeys(event.rules)),
        *changes(seq, at, event.call, event.files),
    ]


def _settled(seq: int, at: int, event: CallSettled) -> list[Statement]:
    stopped_at = at if event.receipt.stopped else None
    ended = (event.ending, event.by, event.message, at, seq, stopped_at)
    row = (*ended, *_exit_of(event.result), event.call)
    rule = actor_from_text(event.by).rule if event.ending == "denied" else None
    return [(_SETTLED, row), *([used_by_settling(seq, at, rule, event.call)] if rule else [])]


def _exit_of(result: Result | None) -> tuple[int | None, str | None]:
    """The exit code and the signal in a result."""
    data = result.data if result else {}
    code, signal = data.get("exit_code"), data.get("signal")
    return (code if type(code) is int else None), (signal if isinstance(signal, str) else None)


_OPENED = """
INSERT INTO calls (id, tool, title, door, client, caller_key, workspace, thread, operation, assurance,
                   opened_at, opened_seq)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"""
_STARTED = """
UPDATE calls SET started_at = ?, started_seq = ?, allowed_by = ?, title = coalesce(nullif(?, ''), title)
WHERE id = ? AND started_seq IS NULL"""
_HANDED_BACK = "UPDATE calls SET handed_back_at = ? WHERE id = ? AND handed_back_at IS NULL"
_CLIENT_GONE = "UPDATE calls SET client_gone_at = ? WHERE id = ? AND client_gone_at IS NULL"
_CLIENT_BACK = "UPDATE calls SET client_gone_at = NULL WHERE id = ?"
# Other tools report the exit code of a terminal they look at, which is not how their own call ended.
_RUNS_COMMAND = "tool IN ('execute_command', 'client_work')"
_SETTLED = f"""
UPDATE calls SET ending = ?, settled_by = ?, message = ?, settled_at = ?, settled_seq = ?, stopped_at = ?,
    exit_code = CASE WHEN {_RUNS_COMMAND} THEN ? END, signal = CASE WHEN {_RUNS_COMMAND} THEN ? END
WHERE id = ? AND ending IS NULL"""
_STOPPED = "UPDATE calls SET stopped_at = ?, stopped_seq = ? WHERE id = ? AND stopped_seq IS NULL"
