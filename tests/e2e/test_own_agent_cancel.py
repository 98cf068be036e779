"""Cancel at 60 random moments: always a valid history, never a process that is left.

Each moment is relative to a fact of the operation, so that every part of it is hit; the seed is printed, and
HANDRAIL_SEED plays the same moments again. The bench cancels at 200 moments and measures how long each takes.
"""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import anyio
import pytest
from tests.e2e.own_agent import kin
from tests.e2e.own_agent.facts import Facts, following
from tests.e2e.own_agent.moments import PARTS, Moment, Part, hit, moment
from tests.e2e.own_agent.scene import Scene, scene
from tests.e2e.own_agent.stage import Dialect, Stage, staged

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

EACH = 50
"""Cancels aimed at each part."""
HITS = 20
"""Of those, at least, that must have hit it."""
TRIES = 80
"""Some operations end before their cancel arrives; only a fault makes it as many."""


DIALECTS: dict[Part, Dialect] = {
    "model": "anthropic",
    "tool": "openai",
    "approval": "openai",
    "join": "anthropic",
}
"""By whose rules the history must be valid."""


@pytest.fixture
def stage(aim: Part) -> Iterator[Stage]:
    with staged(DIALECTS[aim]) as stage:
        yield stage


@pytest.mark.parametrize("aim", PARTS)
async def test_a_cancel_at_any_moment_leaves_a_valid_history_and_no_process(
    stage: Stage, workspace: Path, aim: Part, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = os.environ.get("HANDRAIL_SEED") or os.urandom(4).hex()
    print(f"seed {seed}")
    random, hits, tries = Random(f"{seed} {aim}"), Counter[Part](), 0
    async with scene(stage, workspace) as here, following(stage.person) as facts:
        while hits.total() < EACH:
            tries += 1
            assert tries <= TRIES, f"too few were cancelled, seed {seed}: {hits}"
            found = await play(here, facts, moment(aim, random))
            hits.update([] if found is None else [found])
        await here.nothing_left()
    with capsys.disabled():
        print(f"\nseed {seed}: aimed at {aim}, hit {dict(hits)} in {tries} tries")
    assert hits[aim] >= HITS, f"seed {seed}: {hits}"


async def play(here: Scene, facts: Facts, at: Moment) -> Part | None:
    """One operation, cancelled at its moment; what that hit, or None where it had ended."""
    began = kin.now()
    operation = await here.say(*at.turns)
    withdrawn = False
    if await reached(here, facts, at, operation):
        await anyio.sleep(at.after)
        await here.stage.person.ask("POST", f"operations/{operation}/cancel")
        withdrawn = await over(facts, operation)
    detail = await here.doing(operation)
    assert [each for each in detail["activities"] if each["how"] is None] == []
    await here.goes_on()
    assert_nothing_older(here, began)
    if detail["stop"] == "end_turn":
        return None
    assert detail["stop"] == "cancelled", detail
    return hit(detail["activities"], withdrawn)


async def reached(here: Scene, facts: Facts, at: Moment, operation: str) -> bool:
    """Whether the fact came that the moment is relative to; until then, what is asked is allowed."""
    await facts.until(lambda fact: fact["kind"] == "OperationOpened" and fact["operation"] == operation)
    seen = 0
    while True:
        fact = await facts.next()
        seen += at.is_begun_by(fact)
        if seen == at.nth or fact["kind"] == "OperationEnded":
            return seen == at.nth
        if fact["kind"] == "ApprovalOpened":
            body = {"answer": "allow", "digest": fact["digest"]}
            await here.stage.person.post(f"approvals/{fact['approval']}/answer", body)


async def over(facts: Facts, operation: str) -> bool:
    """The operation has ended; whether a question was withdrawn with it."""
    withdrawn = False
    while True:
        fact = await facts.next()
        withdrawn |= fact["kind"] == "ApprovalWithdrawn"
        if fact["kind"] == "OperationEnded" and fact["operation"] == operation:
            return withdrawn


def assert_nothing_older(here: Scene, than: int) -> None:
    """What an operation before this one has started is gone by now."""
    assert [str(each) for each in here.started if each.started < than] == []
