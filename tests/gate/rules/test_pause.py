"""The pause: calls that rules allow wait for a person, until the agents are resumed."""

from pathlib import Path

import pytest
from tests.support.actors import ANN, BOB
from tests.support.gate_world import gate_world, make_answer, rule
from tests.support.sample_tools import Echo, Write

from handrail.gate import person_actions
from handrail.gate.rules.pause import JUST_PAUSED, WHY
from handrail.store.events import AgentsPaused, AgentsResumed, ApprovalAnswered, CallStarted, Entry
from handrail.store.pauses import PauseRecord
from handrail.store.rule_replay import replay_rules

pytestmark = pytest.mark.anyio


async def test_what_a_rule_allows_waits_until_a_person_resumes_the_agents(tmp_path: Path) -> None:
    tool = Write()
    async with gate_world(tmp_path, Echo(), tool) as here:
        await here.rules.add(rule("allow", tool="write"), ANN)
        pause = here.rules.pause
        assert await pause.begin(ANN)
        assert not await pause.begin(BOB)
        read, written = here.client("echo", {"word": "hi"}), here.client("write")
        for client in (read, written):
            approval = await here.question(await client.call())
            assert approval.asked.why == WHY
        assert tool.runs == []

        assert await pause.end(BOB)
        assert not await pause.end(BOB)
        for client, by in ((read, "rule reads in the workspace"), (written, "rule r1")):
            reply = await client.reply()
            assert reply.outcome is not None
            assert reply.outcome.ending == "done"
            assert (await here.fact(ApprovalAnswered, reply.call)).by == by
        facts = [event for event in await here.facts() if isinstance(event, AgentsPaused | AgentsResumed)]
        assert facts == [AgentsPaused(by="ann"), AgentsResumed(by="bob")]


async def test_a_person_answers_a_call_that_the_pause_holds(tmp_path: Path) -> None:
    async with gate_world(tmp_path, Echo()) as here:
        await here.rules.pause.begin(ANN)
        client = here.client("echo", {"word": "hi"})
        approval = await here.question(await client.call())
        await person_actions.answer(here.gate, approval, make_answer("allow"), approval.digest)
        reply = await client.reply()
        assert reply.outcome is not None
        assert reply.outcome.ending == "done"
        started = await here.fact(CallStarted, reply.call)
        assert started.allowed_by == f"approval {approval.id}"


async def test_an_answer_given_before_the_pause_ends_is_still_good_after_it(tmp_path: Path) -> None:
    async with gate_world(tmp_path, Write()) as here:
        client = here.client("write")
        approval = await here.question(await client.call())
        seen = approval.digest
        await here.rules.pause.begin(ANN)
        await person_actions.answer(here.gate, approval, make_answer("allow"), seen)
        reply = await client.reply()
        assert reply.outcome is not None
        assert reply.outcome.ending == "done"


async def test_what_a_rule_denies_stays_denied(tmp_path: Path) -> None:
    async with gate_world(tmp_path, Write()) as here:
        await here.rules.add(rule("deny", tool="write"), ANN)
        await here.rules.pause.begin(ANN)
        reply = await here.submit("write")
        assert reply.outcome is not None
        assert reply.outcome.ending == "denied"


async def test_a_call_that_is_about_to_begin_does_not_pass_the_pause(tmp_path: Path) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool) as here:
        await here.rules.add(rule("allow", tool="write"), ANN)

        def pause_now(entry: Entry) -> None:
            here.rules.pause.current = PauseRecord(at=entry.at, by="ann")

        here.journal.watch("CallStarted", pause_now)
        reply = await here.submit("write")
        assert reply.outcome is not None
        assert (reply.outcome.ending, reply.outcome.message.startswith(JUST_PAUSED)) == ("failed", True)
        assert tool.runs == []


async def test_a_pause_lasts_over_a_restart(tmp_path: Path) -> None:
    async with gate_world(tmp_path, Echo()) as here:
        await here.rules.pause.begin(ANN)
        await here.facts()
    again = replay_rules(tmp_path / "handrail.db").pause
    assert again is not None
    assert (again.by, again.at > 0) == ("ann", True)
    async with gate_world(tmp_path, Echo()) as here:
        here.rules.pause.current = PauseRecord(at=again.at, by=again.by)
        client = here.client("echo", {"word": "hi"})
        await here.question(await client.call())
        await here.rules.pause.end(ANN)
        assert (await client.reply()).outcome is not None
    assert replay_rules(tmp_path / "handrail.db").pause is None
