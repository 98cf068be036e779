"""When the rules change, open questions are decided anew: each by itself, and said to be by that rule."""

from pathlib import Path

import pytest
from tests.support.actors import ANN, BOB
from tests.support.gate_world import ONE, GateWorld, caller, gate_world, make_answer, rule
from tests.support.sample_tools import Echo, ToyInput, ToyPlan, Write

from handrail.errors import Conflict
from handrail.gate import person_actions
from handrail.gate.approval import Approval
from handrail.gate.call import Call
from handrail.store.events import ApprovalAnswered, CallSettled, CallStarted
from handrail.store.values import Caller, Claim

pytestmark = pytest.mark.anyio


class Both(Write):
    """Writes two files."""

    name = "both"

    async def plan(self, input: ToyInput, caller: Caller) -> ToyPlan:
        plan = await super().plan(input, caller)
        two = tuple(Claim(action="write", resource=f"/w/{each}", inside=True) for each in ("x", "y"))
        return ToyPlan(claims=two, bound=plan.bound, word=plan.word)


async def asked(here: GateWorld, tool: str, word: str = "a", who: Caller = ONE) -> tuple[Call, Approval]:
    call = await here.client(tool, {"word": word}, caller=who).call()
    return call, await here.question(call)


async def test_a_new_rule_answers_the_open_questions_it_covers_and_leaves_the_others(tmp_path: Path) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool) as here:
        covered = [await asked(here, "write", word) for word in ("a1", "a2", "a3")]
        other, approval = await asked(here, "write", "b")
        await here.rules.add(rule(path="a*"), ANN)
        for call, _ in covered:
            await call.settled()
            answered = await here.fact(ApprovalAnswered, call)
            assert (answered.answer, answered.by) == ("allow", "rule r1")
            started = await here.fact(CallStarted, call)
            assert (started.allowed_by, started.rules) == ("rule r1", ("r1",))
        assert sorted(tool.runs) == ["a1", "a2", "a3"]
        assert (other.status, approval.open) == ("waiting", True)
        person_actions.cancel(here.gate, other, ANN)


async def test_a_rule_made_with_one_answer_settles_the_other_questions(tmp_path: Path) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool) as here:
        (first, approval), (second, _) = await asked(here, "write", "a"), await asked(here, "write", "b")
        given = person_actions.Answer(kind="allow", by=ANN, rules=(rule(tool="write"),))
        await person_actions.answer(here.gate, approval, given, approval.digest)
        for call, by in ((first, "ann"), (second, "rule r1")):
            await call.settled()
            assert (await here.fact(ApprovalAnswered, call)).by == by
        assert (await here.fact(CallStarted, first)).allowed_by == f"approval {approval.id}"
        assert sorted(tool.runs) == ["a", "b"]


async def test_a_new_rule_that_refuses_denies_open_questions_and_says_why(tmp_path: Path) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool) as here:
        call, approval = await asked(here, "write")
        await here.rules.add(rule("deny", tool="write", note="Not here"), ANN)
        await call.settled()
        settled = await here.fact(CallSettled, call)
        assert (settled.ending, settled.by) == ("denied", "rule r1")
        assert "r1" in settled.message
        assert "Not here" in settled.message
        with pytest.raises(Conflict, match="Already denied by rule r1, 0 s ago"):
            await person_actions.answer(here.gate, approval, make_answer("allow"), approval.digest)
        assert tool.runs == []


async def test_a_rule_about_a_part_leaves_the_question_open_and_answerable_and_says_the_new_why(
    tmp_path: Path,
) -> None:
    tool = Both()
    async with gate_world(tmp_path, tool) as here:
        call, approval = await asked(here, "both")
        assert [verdict.effect for verdict in approval.asked.verdicts] == ["ask", "ask"]
        await here.rules.add(rule(path="x"), ANN)
        await here.rules.add(rule("ask", "r2", path="y", note="Careful"), ANN)
        assert [verdict.rule for verdict in approval.asked.verdicts] == ["r1", "r2"]
        assert "Careful" in approval.asked.why
        await person_actions.answer(here.gate, approval, make_answer("allow"), approval.digest)
        await call.settled()
        assert tool.runs == ["a"], "what was asked is what runs; the person answered under the new rules"
        assert (await here.fact(CallStarted, call)).rules == ("r1",), "the rest of it the person allowed"


async def test_a_rule_that_is_removed_between_its_answer_and_the_effect_runs_nothing(tmp_path: Path) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool) as here:
        call, _ = await asked(here, "write")
        await here.rules.add(rule(tool="write"), ANN)
        await here.rules.remove("r1", ANN)
        await call.settled()
        settled = await here.fact(CallSettled, call)
        assert (settled.ending, tool.runs) == ("failed", [])
        assert "Rule r1, which had allowed it, does so no longer" in settled.message


async def test_what_changed_since_it_was_asked_is_not_run_by_a_rule_unseen(tmp_path: Path) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool) as here:
        call, _ = await asked(here, "write")
        tool.bound = {"version": 2}
        await here.rules.add(rule(tool="write"), ANN)
        await call.settled()
        assert (call.status, tool.runs) == ("failed", [])


async def test_trusting_a_folder_answers_what_only_waited_for_that(tmp_path: Path) -> None:
    tool = Write()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    async with gate_world(tmp_path, tool, default="allow") as here:
        call, approval = await asked(here, "write", who=caller(workspace=str(elsewhere)))
        assert "not trusted" in approval.asked.why
        await here.rules.trust(str(elsewhere), None, ANN)
        await call.settled()
        assert (await here.fact(ApprovalAnswered, call)).by == "rule default policy"
        assert tool.runs == ["a"]


async def test_a_persons_answer_in_the_same_tick_stands(tmp_path: Path) -> None:
    async with gate_world(tmp_path, Write()) as here:
        call, approval = await asked(here, "write")
        await person_actions.answer(here.gate, approval, make_answer("deny"), approval.digest)
        await here.rules.add(rule(tool="write"), BOB)
        await call.settled()
        assert (await here.fact(ApprovalAnswered, call)).by == "ann"


async def test_a_daemon_that_leaves_lets_no_rule_start_anything(tmp_path: Path) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool) as here:
        _, approval = await asked(here, "write")
        here.gate.leave()
        await here.rules.add(rule(tool="write"), ANN)
        assert approval.open
        assert tool.runs == []


async def test_a_call_that_is_not_asked_about_is_left_alone(tmp_path: Path) -> None:
    async with gate_world(tmp_path, Echo()) as here:
        reply = await here.submit("echo")
        await here.rules.add(rule("deny", tool="echo"), ANN)
        assert reply.outcome is not None
        assert reply.call.outcome == reply.outcome
