"""Random stories: whatever people, clients and tools do in whatever order, each call ends once and is told once."""

import logging
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, get_args

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.actors import ANN
from tests.support.gate_world import Client, GateWorld, caller, gate_world, make_answer, request, rule
from tests.support.sample_tools import STUBBORN_SECONDS, Echo, ToyInput, ToyPlan, word_result

from handrail.errors import Conflict
from handrail.gate import person_actions
from handrail.gate.call import Call
from handrail.gate.operation import Operation
from handrail.gate.tool import CallReport, Salvage
from handrail.store.actor import actor_from_text
from handrail.store.events import (
    ApprovalAnswered,
    ApprovalOpened,
    CallOpened,
    CallSettled,
    CallStarted,
    CallStopped,
    Event,
)
from handrail.store.values import Caller, Effect, Json, Result, Rule

Verb = Literal[
    "allow",
    "deny",
    "edit",
    "always",
    "cancel",
    "complete",
    "stop",
    "text",
    "hang up",
    "finish",
    "again",
    "cancel operation",
    "make rule",
    "remove rule",
]
Pace = Literal["at once", "a tick", "a while", "until it is written"]


@dataclass(frozen=True, slots=True)
class Part:
    """One call to be made, and how its tool behaves."""

    tool: Literal["actor", "writer"] = "actor"
    asks: bool = True
    inside: bool = False
    """Belongs to the operation."""
    patience: float = 60.0
    stubborn: bool = False
    gives: bool = True
    runs_on: bool = False
    background: bool = False
    untidy: bool = False
    breaks: bool = False
    ponders: int = 0
    """How many ticks it takes to plan."""


@dataclass(frozen=True, slots=True)
class Step:
    verb: Verb
    who: int
    pace: Pace


@dataclass(slots=True)
class Role:
    """A part on stage."""

    part: Part
    client: Client
    go: anyio.Event = field(default_factory=anyio.Event)


class Actor(Echo):
    """Behaves as the part of each call says; the word of a call is its part's number."""

    name = "actor"

    def __init__(self, roles: dict[str, Role]) -> None:
        super().__init__("run")
        self._roles = roles

    async def plan(self, input: ToyInput, caller: Caller) -> ToyPlan:
        await ticks(self._roles[input.word].part.ponders)
        return await super().plan(input, caller)

    async def work(self, plan: ToyPlan, call: CallReport) -> Result:
        role = self._roles[plan.word]
        if role.part.background:
            call.hand_back()
        with anyio.move_on_after(STUBBORN_SECONDS, shield=role.part.stubborn):
            await role.go.wait()
        if role.part.breaks:
            raise ZeroDivisionError
        if role.part.untidy:
            call.keep_unwinding()
        return word_result(plan.word)

    async def unwind(self, call: CallReport) -> None:
        await anyio.lowlevel.checkpoint()

    def salvage(self, call: CallReport) -> Salvage | None:
        part = self._roles[str(call.input["word"])].part
        return (
            Salvage(result=word_result("so far"), message="…", runs_on=part.runs_on) if part.gives else None
        )


class Writer(Actor):
    """Complete accepts it."""

    name = "writer"
    completes_by_accepting = True


class ScheduleRunner:
    """All the roles, and who did what to them."""

    def __init__(self, here: GateWorld, operation: Operation, roles: dict[str, Role]) -> None:
        self.here = here
        self.operation = operation
        self.roles = roles
        self.won: Counter[str] = Counter()
        """How often somebody was told that they ended a call."""
        self.edited: set[str] = set()
        """Calls whose edit somebody was told they had allowed."""
        self.rules: list[str] = []
        """Made and not removed."""
        self._numbers = count()

    def enter(self, number: int, part: Part) -> None:
        who = caller(
            f"client {number}",
            operation=self.operation.id if part.inside else None,
            workspace="/w",
        )
        name = part.tool if part.asks else f"free {part.tool}"
        client = self.here.client(name, {"word": str(number)}, caller=who, patience=part.patience)
        self.roles[str(number)] = Role(part, client)

    async def questions(self) -> None:
        """Return when every part that asks has asked."""
        for role in self.roles.values():
            if role.part.asks:
                await self.here.question(await role.client.call())

    async def play(self, step: Step) -> None:
        role = self.roles[str(step.who % len(self.roles))]
        await self._do(step.verb, role)
        match step.pace:
            case "at once":
                return
            case "a tick":
                await anyio.lowlevel.checkpoint()
            case "a while":
                await ticks(20)
            case "until it is written":
                await self.here.facts()

    async def _do(self, verb: Verb, role: Role) -> None:
        call = role.client.opened
        match verb:
            case "finish":
                role.go.set()
            case "hang up":
                role.client.hang_up()
            case "cancel operation":
                self.operation.cancel(actor_from_text("the director"))
            case "again":
                await self._again(role, call)
            case "make rule" | "remove rule":
                await self._change_rules(verb, role)
            case "edit" if call is not None:
                self.here.group.start_soon(self._edit, call)
            case _ if call is not None:
                try:
                    await self._force(verb, call)
                except Conflict:
                    return
            case _:
                return

    async def _force(self, verb: Verb, call: Call) -> None:
        gate, approval = self.here.gate, call.approval
        shown = None if approval is None else approval.digest
        ended_before = call.outcome is not None
        match verb:
            case "allow" | "deny":
                if approval is not None:
                    await person_actions.answer(gate, approval, make_answer(verb), approval.digest)
                return
            case "always":
                if approval is not None:
                    given = replace(make_answer("allow"), rules=(self._rule(call.tool, "allow"),))
                    await person_actions.answer(gate, approval, given, approval.digest)
                    self.rules.append(given.rules[0].id)
                return
            case "cancel":
                won = person_actions.cancel(gate, call, ANN)
            case "text":
                won = person_actions.complete(gate, call, ANN, text="mine")
            case _:
                won = person_actions.complete(gate, call, ANN, stop=verb == "stop", digest=shown)
        assert not (won and ended_before), "who comes late is told so"
        self.won[call.id] += won and call.outcome is not None

    async def _change_rules(self, verb: Literal["make rule", "remove rule"], role: Role) -> None:
        """Of which effect a rule is, hangs on the part alone, so that a story can be told again."""
        if verb == "remove rule":
            if self.rules:
                await self.here.rules.remove(self.rules.pop(), ANN)
            return
        effect: Effect = "deny" if role.part.breaks else "ask" if role.part.stubborn else "allow"
        made = self._rule(role.part.tool, effect)
        await self.here.rules.add(made, ANN)
        self.rules.append(made.id)

    def _rule(self, tool: str, effect: Effect) -> Rule:
        return rule(effect, f"r{next(self._numbers)}", tool=tool)

    async def _edit(self, call: Call) -> None:
        """Look at an edit, and allow it; others may be faster at every step of that."""
        changed: Json = {**call.input, "count": 2}
        try:
            edit = await person_actions.edit(self.here.gate, call, changed)
            await ticks(call.id.count("0"))
            given = replace(make_answer("allow"), input=changed)
            assert call.approval is not None
            await person_actions.answer(self.here.gate, call.approval, given, edit.digest)
        except Conflict:
            return
        self.edited.add(call.id)

    async def _again(self, role: Role, call: Call | None) -> None:
        if call is not None and call.handed_back and call.id in self.here.gate.open:
            reply = await self.here.gate.submit(request(call.tool, call.input, call.caller))
            assert (reply.call.id, reply.repeated) == (call.id, True)

    async def curtain(self) -> None:
        """Let everything end; a call that does not is found by the bound of the scene."""
        for role in self.roles.values():
            role.go.set()
        while self.here.gate.open or not all(_over(role.client) for role in self.roles.values()):
            for call in list(self.here.gate.open.values()):
                if call.approval is not None and call.approval.open:
                    await person_actions.answer(
                        self.here.gate, call.approval, make_answer("deny"), call.approval.digest
                    )
            await self.here.facts()
            await ticks(5)


def _over(client: Client) -> bool:
    """The client has been answered, and the work of its call has really ended."""
    return client.ended.is_set() and (client.opened is None or client.opened.receipt.stopped)


async def ticks(number: int) -> None:
    """Let the others go on for a while, but not until they have nothing left to do."""
    for _ in range(number):
        await anyio.lowlevel.checkpoint()


parts = st.builds(
    Part,
    tool=st.sampled_from(["actor", "writer"]),
    asks=st.booleans(),
    inside=st.booleans(),
    patience=st.sampled_from([0.0, 0.002, 60.0, 60.0]),
    stubborn=st.booleans(),
    gives=st.booleans(),
    runs_on=st.booleans(),
    background=st.booleans(),
    untidy=st.booleans(),
    breaks=st.booleans(),
    ponders=st.integers(0, 3),
)
steps = st.builds(
    Step,
    verb=st.sampled_from(get_args(Verb)),
    who=st.integers(0, 4),
    pace=st.sampled_from(get_args(Pace)),
)


class FreeActor(Actor):
    name = "free actor"


class FreeWriter(Writer):
    name = "free writer"


def stage(roles: dict[str, Role]) -> list[Actor]:
    """Two tools that ask, and two whose claims a rule allows."""
    asking, free = [Actor(roles), Writer(roles)], [FreeActor(roles), FreeWriter(roles)]
    for tool in free:
        tool.action = "read"
    return [*asking, *free]


async def perform(path: Path, cast: list[Part], story: list[Step], asked: bool) -> None:
    """Tell a story; where it begins `asked`, all the questions are open by then."""
    roles: dict[str, Role] = {}
    tools = stage(roles)
    async with gate_world(path, *tools) as here:
        operations: list[Operation] = []
        begun, over = anyio.Event(), anyio.Event()

        async def prompt() -> None:
            async with here.gate.operation(caller()) as operation:
                operations.append(operation)
                begun.set()
                await over.wait()

        here.group.start_soon(prompt)
        await begun.wait()
        runner = ScheduleRunner(here, operations[0], roles)
        for number, part in enumerate(cast):
            runner.enter(number, part)
        if asked:
            await runner.questions()
        for step in story:
            await runner.play(step)
        await runner.curtain()
        over.set()
        while here.gate.operations:
            await anyio.lowlevel.checkpoint()
        facts = await here.facts()
        check_facts(here, facts, tools)
        check_answers(runner, facts)
        check_replies(runner)


def check_facts(here: GateWorld, facts: list[Event], tools: list[Actor]) -> None:
    opened = {fact.call for fact in facts if isinstance(fact, CallOpened)}
    settled = {fact.call: fact for fact in facts if isinstance(fact, CallSettled)}
    stopped = {fact.call: fact for fact in facts if isinstance(fact, CallStopped)}
    assert settled.keys() == opened
    assert here.gate.open == {}
    for call, fact in settled.items():
        assert fact.receipt.stopped != (call in stopped), "it stopped when it settled, or later, not both"
    asked = {fact.call for fact in facts if isinstance(fact, ApprovalOpened)}
    allowed = {fact.call for fact in facts if isinstance(fact, ApprovalAnswered) and fact.answer == "allow"}
    words = {fact.call: str(fact.input["word"]) for fact in facts if isinstance(fact, CallOpened)}
    ran = [word for tool in tools for word in tool.runs]
    assert len(ran) == len(set(ran)), "nothing runs twice"
    assert not {words[call] for call in asked - allowed} & set(ran), "nothing runs without its answer"


def check_answers(runner: ScheduleRunner, facts: list[Event]) -> None:
    """What ran is what was allowed, by whoever answered; an edit that won is what its agent is told of."""
    answers = {fact.call: fact for fact in facts if isinstance(fact, ApprovalAnswered)}
    settled = {fact.call: fact for fact in facts if isinstance(fact, CallSettled)}
    for fact in facts:
        if isinstance(fact, CallStarted) and fact.call in answers:
            answer = answers[fact.call]
            by_rule = answer.by.startswith("rule ")
            assert fact.allowed_by == (answer.by if by_rule else f"approval {answer.approval}")
            result = settled[fact.call].result
            told = result is not None and "edited" in result.data
            assert told == (answer.input is not None)
    assert {call for call, answer in answers.items() if answer.input is not None} == runner.edited


def check_replies(runner: ScheduleRunner) -> None:
    for role in runner.roles.values():
        client, call = role.client, role.client.opened
        assert client.error is None
        assert len(client.replies) == 1 or (client.hung_up and not client.replies)
        if call is None:
            continue
        assert runner.won[call.id] <= 1, "only one person ended it"
        for reply in client.replies:
            assert reply.outcome in (None, call.outcome)
            assert reply.outcome is not None or call.handed_back


@pytest.mark.timeout(300)
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@settings(max_examples=150)
@given(cast=st.lists(parts, min_size=1, max_size=5), story=st.lists(steps, max_size=25), asked=st.booleans())
def test_whatever_happens_in_whatever_order_each_call_ends_once_and_is_told_once(
    backend: str, cast: list[Part], story: list[Step], asked: bool
) -> None:
    logging.disable(logging.CRITICAL)  # tools that break say so at length
    try:
        with TemporaryDirectory() as path:
            anyio.run(perform, Path(path), cast, story, asked, backend=backend)
    finally:
        logging.disable(logging.NOTSET)
