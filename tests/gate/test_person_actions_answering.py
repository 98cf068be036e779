"""An answer with more than a word: a person's own input or content, and rules that come of it."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from tests.support.actors import ANN
from tests.support.gate_world import GateWorld, caller, full_disk, gate_world, make_answer, rule
from tests.support.sample_tools import Planner, Sheet, Write

from handrail.errors import Conflict, Unwritable
from handrail.gate import person_actions
from handrail.gate.approval import Answer, Approval
from handrail.gate.tool import Refusal
from handrail.store.actor import actor_from_text
from handrail.store.events import ApprovalAnswered, CallStarted, RuleAdded
from handrail.store.values import Comment, Effect, Json

pytestmark = pytest.mark.anyio


def allows(input: Json | None = None, content: str | None = None, by: str = "ann") -> Answer:
    return Answer(kind="allow", by=actor_from_text(by), input=input, content=content)


async def asked(here: GateWorld, tool: str, word: str = "a", client: str = "one") -> Approval:
    """A question, open and on record."""
    return await here.question(await here.client(tool, {"word": word}, caller=caller(client)).call())


async def ended(here: GateWorld, approval: Approval) -> str:
    """How the call came out: its ending, and its message."""
    call = here.gate.open.get(approval.call)
    if call is not None:
        await call.settled()
        assert call.outcome is not None
        return f"{call.outcome.ending}: {call.outcome.message}"
    raise AssertionError("ended before anybody waited for it")


async def test_an_edited_input_is_what_runs_and_the_agent_is_told(tmp_path: Path) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool) as here:
        client = here.client("write", {"word": "a"})
        call = await client.call()
        approval = await here.question(call)
        edit = await person_actions.edit(here.gate, call, {"word": "b", "count": 2})
        assert [claim.resource for claim in edit.plan.claims] == ["/w/b"]
        assert edit.digest != approval.digest
        await person_actions.answer(here.gate, approval, allows({"word": "b", "count": 2}), edit.digest)
        reply = await client.reply()
        assert reply.outcome is not None
        assert reply.outcome.result is not None
        assert tool.runs == ["b"]
        first, _, rest = reply.outcome.result.text.partition("\n\n")
        assert first == edit.tells
        assert first == (
            'A person changed this call before allowing it: `word` is "b" instead of "a"; `count` was added: 2.'
        )
        assert rest == "b"
        assert reply.outcome.result.data == {
            "word": "b",
            "edited": {"input": {"word": "b", "count": 2}, "asked": {"word": "a"}},
        }
        answered = await here.fact(ApprovalAnswered, call)
        assert (answered.digest, answered.input) == (edit.digest, {"word": "b", "count": 2})
        started = await here.fact(CallStarted, call)
        assert [claim.resource for claim in started.claims] == ["/w/b"]
        assert call.input == {"word": "a"}, "what was asked stays what was asked"


async def test_an_answer_with_an_edit_must_have_seen_that_edit(tmp_path: Path) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool) as here:
        approval = await asked(here, "write")
        call = here.gate.open[approval.call]
        other = await person_actions.edit(here.gate, call, {"word": "c"})
        for digest in (approval.digest, other.digest, "0" * 64):
            with pytest.raises(Conflict, match="out of date"):
                await person_actions.answer(here.gate, approval, allows({"word": "b"}), digest)
        with pytest.raises(Conflict, match="out of date"):
            await person_actions.answer(here.gate, approval, allows(), other.digest)
        assert (approval.open, tool.runs) == (True, [])
        person_actions.cancel(here.gate, call, ANN)


@pytest.mark.parametrize(
    ("input", "sentence"),
    [
        ({"word": 5}, "write cannot take this input: `word`"),
        ({"word": "b", "more": 1}, "`more` is not an input of this tool"),
    ],
)
async def test_an_edit_that_the_tool_cannot_take_is_refused_and_the_question_stays(
    tmp_path: Path, input: Json, sentence: str
) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool) as here:
        approval = await asked(here, "write")
        call = here.gate.open[approval.call]
        with pytest.raises(Refusal, match=sentence):
            await person_actions.edit(here.gate, call, input)
        with pytest.raises(Refusal, match=sentence):
            await person_actions.answer(here.gate, approval, allows(input), approval.digest)
        assert (approval.open, tool.runs) == (True, [])
        person_actions.cancel(here.gate, call, ANN)


async def test_an_edit_falls_under_the_rules_and_what_they_refuse_nobody_can_allow(tmp_path: Path) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool) as here:
        await here.rules.add(rule("deny", path="secret", note="It is a secret"), ANN)
        await here.rules.add(rule("allow", "r2", path="free"), ANN)
        approval = await asked(here, "write")
        call = here.gate.open[approval.call]
        edit = await person_actions.edit(here.gate, call, {"word": "secret"})
        assert (edit.decision.effect, edit.decision.rule) == ("deny", "r1")
        with pytest.raises(Conflict, match=r"cannot be allowed.*r1.*It is a secret"):
            await person_actions.answer(here.gate, approval, allows({"word": "secret"}), edit.digest)
        assert (approval.open, tool.runs) == (True, [])
        edit = await person_actions.edit(here.gate, call, {"word": "free"})
        assert edit.decision.effect == "allow"
        await person_actions.answer(here.gate, approval, allows({"word": "free"}), edit.digest)
        await call.settled()
        assert tool.runs == ["free"]


async def test_a_question_that_a_rule_refuses_by_now_cannot_be_allowed(tmp_path: Path) -> None:
    """The rule came without a word: the project's own file was changed."""
    tool = Write()
    folder = tmp_path / "project" / ".handrail"
    folder.mkdir(parents=True)
    async with gate_world(tmp_path, tool) as here:
        client = here.client("write", caller=caller(workspace=str(folder.parent)))
        call = await client.call()
        approval = await here.question(call)
        (folder / "config.toml").write_text('[[rules]]\neffect = "deny"\ntool = "write"\nnote = "Frozen"\n')
        with pytest.raises(Conflict, match=r"cannot be allowed.*config\.toml:1.*Frozen"):
            await person_actions.answer(here.gate, approval, make_answer("allow"), approval.digest)
        assert (approval.open, tool.runs) == (True, [])
        person_actions.cancel(here.gate, call, ANN)


async def test_what_changes_between_an_edit_and_its_answer_makes_the_answer_stale(tmp_path: Path) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool) as here:
        approval = await asked(here, "write")
        call = here.gate.open[approval.call]
        edit = await person_actions.edit(here.gate, call, {"word": "b"})
        tool.bound = {"version": 2}
        with pytest.raises(Conflict, match="out of date"):
            await person_actions.answer(here.gate, approval, allows({"word": "b"}), edit.digest)
        assert approval.open
        edit = await person_actions.edit(here.gate, call, {"word": "b"})
        await person_actions.answer(here.gate, approval, allows({"word": "b"}), edit.digest)
        tool.bound = {"version": 3}  # before the call goes on
        assert "What it depends on (version) changed" in await ended(here, approval)
        assert tool.runs == []


async def test_what_changed_since_it_was_asked_can_be_looked_at_anew_and_allowed_as_it_is(
    tmp_path: Path,
) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool) as here:
        approval = await asked(here, "write")
        call = here.gate.open[approval.call]
        tool.bound = {"version": 2}
        now = await person_actions.edit(here.gate, call)
        assert now.tells == "Nothing: it runs as it was asked."
        await person_actions.answer(here.gate, approval, allows({"word": "a"}), now.digest)
        await call.settled()
        assert tool.runs == ["a"]
        assert call.outcome is not None
        assert call.outcome.result is not None
        assert "edited" not in call.outcome.result.data
        assert (await here.fact(ApprovalAnswered, call)).input is None, "nobody changed anything"


async def test_an_answer_that_comes_while_an_edit_is_worked_out_wins(tmp_path: Path) -> None:
    tool = Planner("write")
    tool.planned.set()
    async with gate_world(tmp_path, tool) as here:
        approval = await asked(here, "planner")
        call = here.gate.open[approval.call]
        edit = await person_actions.edit(here.gate, call, {"word": "b"})
        tool.planned, tool.planning = anyio.Event(), anyio.Event()
        lost: list[str] = []

        async def allow_edited() -> None:
            try:
                await person_actions.answer(here.gate, approval, allows({"word": "b"}), edit.digest)
            except Conflict as conflict:
                lost.append(str(conflict))

        async with anyio.create_task_group() as group:
            group.start_soon(allow_edited)
            await tool.planning.wait()
            await person_actions.answer(here.gate, approval, make_answer("deny", "bob"), approval.digest)
            tool.planned.set()
        assert lost == ["Already denied by bob, 0 s ago."]
        await call.settled()
        assert (call.status, tool.runs) == ("denied", [])


async def test_of_two_edits_at_once_the_first_that_is_worked_out_wins(tmp_path: Path) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool) as here:
        approval = await asked(here, "write")
        call = here.gate.open[approval.call]
        results: list[str] = []

        async def allow(word: str, by: str) -> None:
            edit = await person_actions.edit(here.gate, call, {"word": word})
            assert approval.open
            looked.append(by)
            await both.wait()
            try:
                await person_actions.answer(here.gate, approval, allows({"word": word}, by=by), edit.digest)
                results.append(f"{by} won")
            except Conflict as conflict:
                results.append(str(conflict))

        looked, both = list[str](), anyio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(allow, "b", "ann")
            group.start_soon(allow, "c", "bob")
            while len(looked) < 2:
                await anyio.lowlevel.checkpoint()
            both.set()
        winner = (await here.fact(ApprovalAnswered, call)).by
        assert sorted(results) == sorted([f"{winner} won", f"Already allowed by {winner}, 0 s ago."])
        await call.settled()
        assert tool.runs == [{"ann": "b", "bob": "c"}[winner]]


async def test_a_reviewed_content_is_what_is_written_and_the_tool_tells_of_it(tmp_path: Path) -> None:
    tool = Sheet()
    async with gate_world(tmp_path, tool) as here:
        client = here.client("sheet", {"word": "new"})
        call = await client.call()
        approval = await here.question(call)
        edit = await person_actions.edit(here.gate, call, content="newer")
        assert edit.tells == "A person made newer of it."
        given = replace(allows(content="newer"), comments=(Comment(line=1, text="nearly"),))
        await person_actions.answer(here.gate, approval, given, edit.digest)
        reply = await client.reply()
        assert reply.outcome is not None
        assert reply.outcome.result is not None
        assert reply.outcome.result.text == "newer\nA person made newer of it.\n1: nearly"
        assert tool.holds == "newer"
        answered = await here.fact(ApprovalAnswered, call)
        assert (answered.content, answered.comments, answered.digest) == (
            "newer",
            given.comments,
            edit.digest,
        )
        started = await here.fact(CallStarted, call)
        assert started.files == edit.plan.files, "what is put in place of what is on record before"


async def test_comments_alone_reach_the_agent_and_change_nothing(tmp_path: Path) -> None:
    tool, plain = Sheet(), Write()
    async with gate_world(tmp_path, tool, plain) as here:
        for name, told in (
            ("sheet", "new\nA person made new of it.\n1: why?"),
            ("write", "The person who allowed it says: fine\nLine 1: why?\n\nnew"),
        ):
            approval = await asked(here, name, "new")
            call = here.gate.open[approval.call]
            reason = "fine" if name == "write" else ""
            given = Answer(kind="allow", by=ANN, reason=reason, comments=(Comment(line=1, text="why?"),))
            await person_actions.answer(here.gate, approval, given, approval.digest)
            await call.settled()
            assert call.outcome is not None
            assert call.outcome.result is not None
            assert call.outcome.result.text == told
        assert (tool.holds, plain.runs) == ("new", ["new"])


async def test_a_denial_tells_the_reason_and_every_comment_and_takes_no_edit(tmp_path: Path) -> None:
    tool = Sheet()
    async with gate_world(tmp_path, tool) as here:
        approval = await asked(here, "sheet", "new")
        call = here.gate.open[approval.call]
        comments = (Comment(line=3, text="no"), Comment(line=4, text="neither"))
        given = Answer(kind="deny", by=ANN, reason="Not so", content="mine", comments=comments)
        await person_actions.answer(here.gate, approval, given, approval.digest)
        assert await ended(here, approval) == "denied: Not so\nLine 3: no\nLine 4: neither"
        assert tool.holds == "old"
        assert (await here.fact(ApprovalAnswered, call)).content is None


async def test_a_review_of_what_is_no_longer_there_overwrites_nothing(tmp_path: Path) -> None:
    tool = Sheet()
    async with gate_world(tmp_path, tool) as here:
        approval = await asked(here, "sheet", "new")
        call = here.gate.open[approval.call]
        tool.holds = "another's"
        with pytest.raises(Conflict, match="changed since you looked at it"):
            await person_actions.edit(here.gate, call, content="mine")
        with pytest.raises(Conflict, match="changed since you looked at it"):
            await person_actions.answer(here.gate, approval, allows(content="mine"), approval.digest)
        assert (approval.open, tool.holds) == (True, "another's")
        shown = await person_actions.proposal(here.gate, call)
        assert (shown.proposal.before, shown.changed) == ("another's", "The sheet changed on disk.")
        edit = await person_actions.edit(here.gate, call, content="both")
        await person_actions.answer(here.gate, approval, allows(content="both"), edit.digest)
        await call.settled()
        assert tool.holds == "both"


async def test_a_review_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    async with gate_world(tmp_path, Sheet(), Write()) as here:
        for name, sentence in (("sheet", "no text"), ("write", "proposes no file")):
            approval = await asked(here, name, "new")
            call = here.gate.open[approval.call]
            with pytest.raises(Refusal, match=sentence):
                await person_actions.edit(here.gate, call, content="\0")
            assert approval.open
            person_actions.cancel(here.gate, call, ANN)


async def test_what_was_written_meanwhile_is_told_to_the_agent_that_came_too_late(tmp_path: Path) -> None:
    tool = Sheet()
    async with gate_world(tmp_path, tool) as here:
        first, second = await asked(here, "sheet", "x", "one"), await asked(here, "sheet", "y", "two")
        calls = [here.gate.open[each.call] for each in (first, second)]
        await person_actions.answer(here.gate, first, make_answer("allow"), first.digest)
        await calls[0].settled()
        await person_actions.answer(here.gate, second, make_answer("allow"), second.digest)
        await calls[1].settled()
        outcome = calls[1].outcome
        assert outcome is not None
        assert outcome.result is not None
        assert outcome.message == (
            "What was approved is no longer what would run. The sheet changed on disk."
        )
        assert (outcome.ending, outcome.result.text) == ("failed", "-old\n+x")
        assert (tool.holds, tool.runs) == ("x", ["x"])


async def test_an_answer_makes_its_rules_hold_after_it_and_the_next_such_call_passes(tmp_path: Path) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool) as here:
        approval = await asked(here, "write", "a")
        call = here.gate.open[approval.call]
        given = replace(make_answer("allow"), rules=(rule(path="a"), rule("ask", "r2", path="b")))
        await person_actions.answer(here.gate, approval, given, approval.digest)
        await call.settled()
        kinds = [fact.kind for fact in await here.facts()]
        assert kinds.index("ApprovalAnswered") < kinds.index("RuleAdded") < kinds.index("CallStarted")
        assert (await here.fact(ApprovalAnswered, call)).rules == ("r1", "r2")
        added = [fact for fact in await here.facts() if isinstance(fact, RuleAdded)]
        assert [(fact.rule.id, fact.by, fact.approval) for fact in added] == [
            ("r1", "ann", approval.id),
            ("r2", "ann", approval.id),
        ]
        again = await here.submit("write", {"word": "a"})
        started = await here.fact(CallStarted, again.call)
        assert (started.allowed_by, started.rules) == ("rule r1", ("r1",))
        assert tool.runs == ["a", "a"]


async def test_allow_for_session_holds_for_that_client_alone(tmp_path: Path) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool) as here:
        approval = await asked(here, "write", "a", "one")
        mine = rule(tool="write", scope="session", session=caller("one").key)
        given = replace(make_answer("allow"), rules=(mine,))
        await person_actions.answer(here.gate, approval, given, approval.digest)
        reply = await here.submit("write", {"word": "b"}, caller=caller("one"))
        assert reply.outcome is not None
        assert (reply.outcome.ending, sorted(tool.runs)) == ("done", ["a", "b"])
        other = await asked(here, "write", "c", "two")
        assert other.open
        person_actions.cancel(here.gate, here.gate.open[other.call], ANN)


@pytest.mark.parametrize("effect", ["ask", "allow"])
async def test_a_rule_of_ones_own_does_not_void_the_answer_it_came_with(
    tmp_path: Path, effect: Effect
) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool) as here:
        approval = await asked(here, "write", "a")
        call = here.gate.open[approval.call]
        given = replace(make_answer("allow"), rules=(rule(effect, tool="write"),))
        await person_actions.answer(here.gate, approval, given, approval.digest)
        await call.settled()
        assert tool.runs == ["a"]


async def test_whoever_comes_late_makes_no_rule(tmp_path: Path) -> None:
    async with gate_world(tmp_path, Write()) as here:
        approval = await asked(here, "write", "a")
        await person_actions.answer(here.gate, approval, make_answer("deny"), approval.digest)
        late = replace(make_answer("allow", "bob"), rules=(rule(tool="write"),))
        with pytest.raises(Conflict, match="Already denied by ann"):
            await person_actions.answer(here.gate, approval, late, approval.digest)
        stale = await asked(here, "write", "b")
        with pytest.raises(Conflict, match="out of date"):
            await person_actions.answer(here.gate, stale, late, "0" * 64)
        assert stale.open
        assert not [fact for fact in await here.facts() if isinstance(fact, RuleAdded)]
        person_actions.cancel(here.gate, here.gate.open[stale.call], ANN)


async def test_a_rule_that_cannot_be_recorded_does_not_hold(tmp_path: Path) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool) as here:
        approval = await asked(here, "write", "a")
        call = here.gate.open[approval.call]
        given = replace(make_answer("deny"), rules=(rule(tool="write"),))
        with full_disk(here.path, "RuleAdded"), pytest.raises(Unwritable):
            await person_actions.answer(here.gate, approval, given, approval.digest)
        assert here.rules.known() == []
        with suppress(Unwritable):  # the answer was lost with it
            await call.settled()
