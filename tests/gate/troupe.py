"""Several calls at once, and people and clients who do what a story says, in its order and at its pace.

Owns the verbs of a random story. What must hold afterwards is said in `test_schedules.py`.
"""

from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Literal

import anyio
from tests.actors import ANN
from tests.gate.scene import Client, Scene, caller, request, rule, says
from tests.gate.toys import STUBBORN_SECONDS, Echo, ToyInput, ToyPlan, said

from handrail.errors import Conflict
from handrail.gate import person_actions
from handrail.gate.call import Call
from handrail.gate.operation import Operation
from handrail.gate.tool import CallReport, Salvage
from handrail.store.actor import actor_from_text
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
        return said(plan.word)

    async def unwind(self, call: CallReport) -> None:
        await anyio.lowlevel.checkpoint()

    def salvage(self, call: CallReport) -> Salvage | None:
        part = self._roles[str(call.input["word"])].part
        return Salvage(result=said("so far"), message="…", runs_on=part.runs_on) if part.gives else None


class Writer(Actor):
    """Complete accepts it."""

    name = "writer"
    accepts = True


class Troupe:
    """All the roles, and who did what to them."""

    def __init__(self, here: Scene, operation: Operation, roles: dict[str, Role]) -> None:
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
                self._change_rules(verb, role)
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
                    await person_actions.answer(gate, approval, says(verb), approval.digest)
                return
            case "always":
                if approval is not None:
                    given = replace(says("allow"), rules=(self._rule(call.tool, "allow"),))
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

    def _change_rules(self, verb: Literal["make rule", "remove rule"], role: Role) -> None:
        """Of which effect a rule is, hangs on the part alone, so that a story can be told again."""
        if verb == "remove rule":
            if self.rules:
                self.here.rules.remove(self.rules.pop(), ANN)
            return
        effect: Effect = "deny" if role.part.breaks else "ask" if role.part.stubborn else "allow"
        made = self._rule(role.part.tool, effect)
        self.here.rules.add(made, ANN)
        self.rules.append(made.id)

    def _rule(self, tool: str, effect: Effect) -> Rule:
        return rule(effect, f"r{next(self._numbers)}", tool=tool)

    async def _edit(self, call: Call) -> None:
        """Look at an edit, and allow it; others may be faster at every step of that."""
        changed: Json = {**call.input, "count": 2}
        try:
            edit = await person_actions.edit(self.here.gate, call, changed)
            await ticks(call.id.count("0"))
            given = replace(says("allow"), input=changed)
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
                        self.here.gate, call.approval, says("deny"), call.approval.digest
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
