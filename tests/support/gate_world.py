"""A gate on a real journal, with clients that wait for replies and a person who answers.

When a test leaves the gate, `check_invariants` checks the journal and the records.
"""

import sqlite3
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import anyio
from anyio.abc import TaskGroup

from handrail.gate.approval import Answer, Approval
from handrail.gate.call import Call
from handrail.gate.gate import Gate, Reply, Request
from handrail.gate.rules.rules import Rules
from handrail.gate.tool import Tool
from handrail.store.actor import actor_from_text
from handrail.store.events import (
    ApprovalAnswered,
    ApprovalExpired,
    ApprovalOpened,
    ApprovalWithdrawn,
    CallClientBack,
    CallClientGone,
    CallHandedBack,
    CallOpened,
    CallSettled,
    CallStarted,
    CallStopped,
    Event,
)
from handrail.store.journal import Journal, open_journal
from handrail.store.records import open_records
from handrail.store.values import AnswerKind, Caller, Effect, Json, Rule

BOUND = 20.0
"""Seconds for a whole test; only a hung one reaches it."""
LONG = 60.0
"""More patience than any test needs."""

OfCall = (
    CallOpened
    | CallStarted
    | CallHandedBack
    | CallClientGone
    | CallClientBack
    | CallSettled
    | CallStopped
    | ApprovalOpened
    | ApprovalAnswered
    | ApprovalWithdrawn
    | ApprovalExpired
)
F = TypeVar("F", bound=OfCall)


def caller(client: str = "one", operation: str | None = None, workspace: str | None = "/w") -> Caller:
    return Caller(door="stdio", client=client, key=f"{client}@/w", workspace=workspace, operation=operation)


ONE = caller()


def request(
    tool: str,
    input: Json | None = None,
    caller: Caller = ONE,
    patience: float = LONG,
) -> Request:
    return Request(tool=tool, input=input or {}, caller=caller, patience=patience)


class Client:
    """A client that made a call and waits for the reply, unless it hangs up."""

    def __init__(self) -> None:
        self.replies: list[Reply] = []
        self.error: Exception | None = None
        self.ended = anyio.Event()
        self.hung_up = False
        self._opened = anyio.Event()
        self._call: Call | None = None
        self._scope = anyio.CancelScope()

    async def run(self, gate: Gate, request: Request) -> None:
        try:
            with self._scope:
                self.replies.append(await gate.submit(request, self._on_opened))
        except Exception as error:
            self.error = error
        finally:
            self.ended.set()

    def _on_opened(self, call: Call) -> None:
        self._call = call
        self._opened.set()

    async def call(self) -> Call:
        await self._opened.wait()
        assert self._call is not None
        return self._call

    @property
    def opened(self) -> Call | None:
        """The call, if it was opened by now."""
        return self._call

    def hang_up(self) -> None:
        self.hung_up = True
        self._scope.cancel()

    async def reply(self) -> Reply:
        await self.ended.wait()
        if self.error is not None:
            raise self.error
        assert len(self.replies) == 1, "the client hung up, or was answered twice"
        return self.replies[0]


@dataclass(frozen=True, slots=True)
class GateWorld:
    """A gate with its journal, rules and task group."""

    path: Path
    journal: Journal
    rules: Rules
    gate: Gate
    group: TaskGroup

    async def submit(self, tool: str, input: Json | None = None, **how: Any) -> Reply:
        return await self.gate.submit(request(tool, input, **how))

    def client(self, tool: str, input: Json | None = None, **how: Any) -> Client:
        """A client whose call is under way."""
        client = Client()
        self.group.start_soon(client.run, self.gate, request(tool, input, **how))
        return client

    async def question(self, call: Call) -> Approval:
        """The call's approval, once the question is on record."""
        await self.fact(ApprovalOpened, call)
        assert call.approval is not None
        return call.approval

    async def fact(self, kind: type[F], call: Call) -> F:
        """The call's fact of this kind, once it is on record."""
        found: list[F] = []
        async with anyio.create_task_group() as group:

            async def look(entries: Any) -> None:
                found.extend(
                    e.event for e in entries if isinstance(e.event, kind) and e.event.call == call.id
                )
                if found:
                    group.cancel_scope.cancel()

            group.start_soon(self.journal.follow, 0, look)
        return found[0]

    async def facts(self) -> list[Event]:
        """All events, once everything appended so far is committed."""
        await self.journal.committed(self.journal.head)
        return [entry.event for entry in await self.journal.since(0, 100_000)]

    async def kinds(self, call: Call) -> list[str]:
        """The kinds of the events about one call, in order."""
        return [event.kind for event in await self.facts() if call_of(event) == call.id]


def call_of(event: Event) -> str | None:
    """The call a fact is about."""
    return event.call if isinstance(event, OfCall) else None


def make_answer(kind: AnswerKind, by: str = "ann", reason: str = "") -> Answer:
    return Answer(kind=kind, by=actor_from_text(by), reason=reason)


def rule(effect: Effect = "allow", id: str = "r1", **about: Any) -> Rule:
    """A rule of the project /w, unless `about` has another scope."""
    of: dict[str, Any] = {"scope": "project", "workspace": "/w", **about}
    return Rule(id=id, effect=effect, **of)


@asynccontextmanager
async def gate_world(
    path: Path,
    *tools: Tool[Any, Any],
    default: Effect = "ask",
    expire_seconds: float = 0,
    checked: bool = True,
    opens: Callable[[Path, Path], AbstractAsyncContextManager[Journal]] = open_journal,
) -> AsyncGenerator[GateWorld]:
    """A gate with these tools on the journal at `path`, in a trusted folder; everything is under a bound."""
    with anyio.fail_after(BOUND):
        async with (
            opens(path / "handrail.db", path / "handrail.head") as journal,
            anyio.create_task_group() as group,
        ):
            rules = Rules.with_default(journal, default, trusted=["/w"])
            gate = Gate(journal, rules, {tool.name: tool for tool in tools}, group, expire_seconds)
            here = GateWorld(path, journal, rules, gate, group)
            yield here
            if checked:
                await check_invariants(here)
            group.cancel_scope.cancel()


@contextmanager
def full_disk(path: Path, kinds: str = "%") -> Generator[None]:
    """The database takes no fact whose kind is LIKE this, as if the disk were full."""
    database = sqlite3.connect(path / "handrail.db", isolation_level=None)
    database.execute(
        f"CREATE TRIGGER full BEFORE INSERT ON events WHEN NEW.kind LIKE '{kinds}' "
        "BEGIN SELECT RAISE(ABORT, 'disk full'); END"
    )
    try:
        yield
    finally:
        database.execute("DROP TRIGGER full")
        database.close()


@contextmanager
def hung_disk(path: Path) -> Generator[None]:
    """The disk hangs: nothing can be committed, and nothing fails either (for five seconds)."""
    database = sqlite3.connect(path / "handrail.db", isolation_level=None)
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        database.execute("ROLLBACK")
        database.close()


async def check_invariants(here: GateWorld) -> None:
    """Check the invariants that hold after every test."""
    facts = await here.facts()
    _each_fact_once(facts)
    _in_order(facts)
    async with open_records(here.path / "handrail.db") as records:
        for record in await records.calls.find(limit=100_000):
            call = here.gate.open.get(record.id)
            assert (call is not None) == (record.ending is None), f"{record.id} is {record.status}"
            assert call is None or call.status == record.status
        for asked in await records.approvals.find(open_only=True):
            assert asked.call in here.gate.open, "a question stays open about a call that ended"


def _each_fact_once(facts: list[Event]) -> None:
    comes_and_goes = CallClientGone | CallClientBack
    once = [each for each in facts if isinstance(each, OfCall) and not isinstance(each, comes_and_goes)]
    count = Counter((event.kind, call_of(event)) for event in once)
    assert [key for key, times in count.items() if times > 1] == []
    decided = Counter(
        event.approval
        for event in facts
        if isinstance(event, ApprovalAnswered | ApprovalWithdrawn | ApprovalExpired)
    )
    assert [approval for approval, times in decided.items() if times > 1] == []


def _in_order(facts: list[Event]) -> None:
    """Nothing about a call comes before it was opened; after it was settled, only that it stopped."""
    for call in {call_of(event) for event in facts} - {None}:
        kinds = [event.kind for event in facts if call_of(event) == call]
        assert kinds[0] == "CallOpened"
        after = kinds[kinds.index("CallSettled") + 1 :] if "CallSettled" in kinds else []
        assert after in ([], ["CallStopped"])
