"""Random stories: whatever people, clients and tools do in whatever order, each call ends once and is told once."""

import logging
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.gate.scene import Scene, caller, scene
from tests.gate.troupe import Actor, Pace, Part, Role, Step, Troupe, Verb, Writer

from handrail.gate.operation import Operation
from handrail.store.events import (
    ApprovalAnswered,
    ApprovalOpened,
    CallOpened,
    CallSettled,
    CallStarted,
    CallStopped,
    Event,
)

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
    async with scene(path, *tools) as here:
        operations: list[Operation] = []
        begun, over = anyio.Event(), anyio.Event()

        async def prompt() -> None:
            async with here.gate.operation(caller()) as operation:
                operations.append(operation)
                begun.set()
                await over.wait()

        here.group.start_soon(prompt)
        await begun.wait()
        troupe = Troupe(here, operations[0], roles)
        for number, part in enumerate(cast):
            troupe.enter(number, part)
        if asked:
            await troupe.questions()
        for step in story:
            await troupe.play(step)
        await troupe.curtain()
        over.set()
        while here.gate.operations:
            await anyio.lowlevel.checkpoint()
        facts = await here.facts()
        check_facts(here, facts, tools)
        check_answers(troupe, facts)
        check_replies(troupe)


def check_facts(here: Scene, facts: list[Event], tools: list[Actor]) -> None:
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


def check_answers(troupe: Troupe, facts: list[Event]) -> None:
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
    assert {call for call, answer in answers.items() if answer.input is not None} == troupe.edited


def check_replies(troupe: Troupe) -> None:
    for role in troupe.roles.values():
        client, call = role.client, role.client.opened
        assert client.error is None
        assert len(client.replies) == 1 or (client.hung_up and not client.replies)
        if call is None:
            continue
        assert troupe.won[call.id] <= 1, "only one person ended it"
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
