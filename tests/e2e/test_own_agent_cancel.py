"""Cancel at 200 random moments: always a valid history, never a process that is left.

The model server checks the whole conversation in each request, so the operation after a cancel proves its history valid.
Each moment is relative to a fact of the operation, so that every part of it is hit; the seed is printed, and
HANDRAIL_SEED plays the same moments again. The bench measures how long a cancel takes.
"""

import json
import os
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Literal

import anyio
import pytest
from tests.support import processes
from tests.support.daemon_home import BOUND, until
from tests.support.model_server.script import Call, Turn
from tests.support.own_agent_scenario import ASKED, AgentDaemon, Dialect, Scenario, agent_daemon, scenario
from tests.support.person_client import Json, Person
from websockets.asyncio.client import ClientConnection, connect

Holds = Callable[[Json], bool]


class Facts:
    """A follower of the journal."""

    def __init__(self, connection: ClientConnection) -> None:
        self._socket = connection
        self._read: list[Json] = []

    async def next(self) -> Json:
        with anyio.fail_after(BOUND):
            while not self._read:
                self._read = [entry["event"] for entry in json.loads(await self._socket.recv())["entries"]]
        return self._read.pop(0)

    async def until(self, holds: Holds) -> Json:
        """The first fact from here on of which this holds."""
        while not holds(fact := await self.next()):
            pass
        return fact


@asynccontextmanager
async def following(person: Person) -> AsyncGenerator[Facts]:
    """From now on."""
    after = (await person.get("state"))["seq"]
    url = f"{person.home.url.replace('http', 'ws', 1)}/api/live?after={after}"
    protocols: Any = ["handrail", f"bearer.{person.bearer}"]
    async with connect(url, subprotocols=protocols, open_timeout=BOUND, max_size=None) as connection:
        yield Facts(connection)


Part = Literal["model", "tool", "approval", "join"]
PARTS: tuple[Part, ...] = ("model", "tool", "approval", "join")


def _said(words: str, *lines: str) -> Turn:
    calls = tuple(Call("execute_command", {"command": line}) for line in lines)
    return Turn(f"{words} I do it.", think="Hm.", calls=calls, pace=0.004)


RUNNING = _said("Running.", "sleep 0.1", "sleep 0.12 | sleep 0.1")
JOINING = _said("Joining.", "echo one", "sleep 0.03", "sleep 0.08")
ASKING = _said("Asking.", f"{ASKED} asked")


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """So many seconds after the nth fact of a kind."""

    aim: Part
    turns: tuple[Turn, ...]
    nth: int
    after: float

    def is_begun_by(self, fact: Json) -> bool:
        """Whether this is such a fact."""
        match self.aim, fact["kind"], fact.get("sort"):
            case ("model", "ActivityStarted", "model") | ("tool", "ActivityStarted", "call"):
                return True
            case ("join", "ActivityEnded", "call") | ("approval", "ApprovalOpened", _):
                return True
            case _:
                return False


def moment(aim: Part, random: Random) -> Moment:
    """Mostly where its aim is; now and then anywhere."""
    turns = [RUNNING, JOINING, ASKING]
    random.shuffle(turns)

    def before(turn: Turn) -> int:
        return sum(len(each.calls) for each in turns[: turns.index(turn)])

    nth, within = {
        "model": (random.randint(1, 4), 0.04),
        "tool": (before(RUNNING) + random.randint(1, 2), 0.06),
        "approval": (1, 0.08),
        "join": (before(JOINING) + random.randint(1, 2), 0.03),
    }[aim]
    if aim != "approval" and random.random() < 0.2:
        nth = random.randint(1, 4)
    return Moment(aim=aim, turns=(*turns, _said("Over.")), nth=nth, after=random.uniform(0.0, within))


def hit(activities: Sequence[Json], withdrawn: bool) -> Part:
    """What was under way when it was cancelled, by what came to an end with it."""
    cut = [each for each in activities if each["how"] == "cancelled"]
    if any(each["sort"] in ("model", "thinking") for each in cut):
        return "model"
    steps = {each["id"] for each in cut if each["sort"] == "step"}
    calls = [each for each in activities if each["sort"] == "call" and each["parent"] in steps]
    if not calls:
        return "model"  # the first step is about to ask
    if any(each["how"] != "cancelled" for each in calls):
        return "join"  # some results are in
    return "approval" if withdrawn else "tool"


pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

EACH = 50
"""Cancels aimed at each part."""
PER_THREAD = 10
"""Operations in one thread, after which the agent must still answer. A longer conversation makes the requests slow."""
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
def stage(aim: Part) -> Iterator[AgentDaemon]:
    with agent_daemon(DIALECTS[aim], one_per_thread=False) as stage:
        yield stage


@pytest.mark.parametrize("aim", PARTS)
async def test_a_cancel_at_any_moment_leaves_a_valid_history_and_no_process(
    stage: AgentDaemon, workspace: Path, aim: Part, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = os.environ.get("HANDRAIL_SEED") or os.urandom(4).hex()
    print(f"seed {seed}")
    random, hits, tries = Random(f"{seed} {aim}"), Counter[Part](), 0
    while hits.total() < EACH:
        tries += PER_THREAD
        assert tries <= TRIES, f"too few were cancelled, seed {seed}: {hits}"
        async with scenario(stage, workspace) as here, following(stage.person) as facts:
            for _ in range(PER_THREAD):
                found = await play(here, facts, moment(aim, random))
                hits.update([] if found is None else [found])
            await here.goes_on()
    with capsys.disabled():
        print(f"\nseed {seed}: aimed at {aim}, hit {dict(hits)} in {tries} tries")
    assert hits[aim] >= HITS, f"seed {seed}: {hits}"


async def play(here: Scenario, facts: Facts, at: Moment) -> Part | None:
    """One operation, cancelled at its moment; what that hit, or None where it had ended."""
    began = processes.boot_ticks()
    operation = await here.say(*at.turns)
    withdrawn = False
    if await reached(here, facts, at, operation):
        await anyio.sleep(at.after)
        await here.stage.person.ask("POST", f"operations/{operation}/cancel")
        withdrawn = await over(facts, operation)
    detail = await here.doing(operation)
    assert [each for each in detail["activities"] if each["how"] is None] == []
    await here.thread.idle()
    assert here.stage.model.refused == []
    await until(lambda: not started_before(here, began))
    if detail["stop"] == "end_turn":
        return None
    assert detail["stop"] == "cancelled", detail
    return hit(detail["activities"], withdrawn)


async def reached(here: Scenario, facts: Facts, at: Moment, operation: str) -> bool:
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


def started_before(here: Scenario, tick: int) -> list[str]:
    """What an operation before this one has started and is still there."""
    return [str(each) for each in here.started if each.started < tick]
