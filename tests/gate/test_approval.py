"""A question to a person: asked once, answered once, and bound to what was shown."""

from pathlib import Path

import anyio
import pytest
from tests.support.actors import ANN, BOB
from tests.support.gate_world import GateWorld, gate_world, hung_disk, make_answer, rule
from tests.support.sample_tools import Patient, Planner, Sheet, Write, sha

from handrail.errors import Conflict
from handrail.gate import person_actions
from handrail.gate.approval import Answer, Approval, format_age
from handrail.store.events import (
    ApprovalAnswered,
    ApprovalExpired,
    ApprovalOpened,
    CallSettled,
    CallStarted,
    CallStopped,
)
from handrail.store.values import Effect

pytestmark = pytest.mark.anyio


async def test_an_asked_call_waits_and_runs_once_it_is_allowed(tmp_path: Path) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool) as here:
        client = here.client("write", {"word": "a"})
        call = await client.call()
        approval = await here.question(call)
        assert (call.status, tool.runs) == ("waiting", [])
        await here.journal.committed(
            await person_actions.answer(here.gate, approval, make_answer("allow"), approval.digest)
        )
        reply = await client.reply()
        assert reply.outcome is not None
        assert (reply.outcome.ending, tool.runs) == ("done", ["a"])
        assert (await here.fact(CallStarted, call)).allowed_by == f"approval {approval.id}"
        assert await here.kinds(call) == [
            "CallOpened",
            "ApprovalOpened",
            "ApprovalAnswered",
            "CallStarted",
            "CallSettled",
        ]


async def test_the_question_says_what_would_be_done_how_bad_it_is_and_why_it_asks(tmp_path: Path) -> None:
    async with gate_world(tmp_path, Write()) as here:
        client = here.client("write", {"word": "a"})
        call = await client.call()
        asked = (await here.question(call)).asked
        assert [claim.resource for claim in asked.claims] == ["/w/a"]
        assert (asked.risk, asked.reasons) == ("medium", ("changes a file in the workspace",))
        assert asked.why == "No rule allows it, so you are asked."
        assert asked.preview is not None
        assert asked.preview.kind == "diff"
        person_actions.cancel(here.gate, call, ANN)


async def test_a_denied_call_is_told_the_reason_and_never_runs(tmp_path: Path) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool) as here:
        client = here.client("write")
        approval = await here.question(await client.call())
        await person_actions.answer(
            here.gate, approval, make_answer("deny", "ann", "use the other file"), approval.digest
        )
        reply = await client.reply()
        assert reply.outcome is not None
        assert (reply.outcome.ending, str(reply.outcome.by)) == ("denied", "ann")
        assert reply.outcome.message == "use the other file"
        assert tool.runs == []
        answered = await here.fact(ApprovalAnswered, reply.call)
        assert (answered.answer, answered.by, answered.reason) == ("deny", "ann", "use the other file")


async def race(here: GateWorld, approval: Approval, *answers: Answer) -> list[int | Conflict]:
    """Everybody has looked at the open question before the first of them answers."""
    looked: list[Answer] = []
    all_looked = anyio.Event()
    results: list[int | Conflict] = []

    async def decide(answer: Answer) -> None:
        assert approval.open
        looked.append(answer)
        if len(looked) == len(answers):
            all_looked.set()
        await all_looked.wait()
        try:
            results.append(await person_actions.answer(here.gate, approval, answer, approval.digest))
        except Conflict as conflict:
            results.append(conflict)

    async with anyio.create_task_group() as group:
        for answer in answers:
            group.start_soon(decide, answer)
    assert len(looked) == len(results) == len(answers)
    return results


async def test_when_deny_races_allow_exactly_one_wins_and_the_other_is_told_who(tmp_path: Path) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool) as here:
        for turn in range(10):
            client = here.client("write", {"word": str(turn)})
            call = await client.call()
            approval = await here.question(call)
            results = await race(here, approval, make_answer("allow", "ann"), make_answer("deny", "bob"))
            answered = await here.fact(ApprovalAnswered, call)
            won = {"ann": "allowed", "bob": "denied"}[answered.by]
            assert [str(lost) for lost in results if isinstance(lost, Conflict)] == [
                f"Already {won} by {answered.by}, 0 s ago."
            ]
            reply = await client.reply()
            assert reply.outcome is not None
            assert reply.outcome.ending == ("done" if answered.by == "ann" else "denied")
            assert (str(turn) in tool.runs) == (answered.by == "ann")


@pytest.mark.parametrize(("first", "ending"), [("allow", "done"), ("deny", "denied")])
async def test_of_two_answers_in_one_tick_the_first_stands(tmp_path: Path, first: str, ending: str) -> None:
    async with gate_world(tmp_path, Write()) as here:
        client = here.client("write")
        approval = await here.question(await client.call())
        kinds = ("allow", "deny") if first == "allow" else ("deny", "allow")
        seq = await person_actions.answer(here.gate, approval, make_answer(kinds[0]), approval.digest)
        with pytest.raises(Conflict, match="Already"):
            await person_actions.answer(here.gate, approval, make_answer(kinds[1], "bob"), approval.digest)
        assert approval.answered_seq == seq
        reply = await client.reply()
        assert reply.outcome is not None
        assert reply.outcome.ending == ending


async def test_an_answer_to_what_is_no_longer_asked_is_refused_and_the_question_stays_open(
    tmp_path: Path,
) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool) as here:
        client = here.client("write")
        call = await client.call()
        approval = await here.question(call)
        with pytest.raises(Conflict, match="out of date"):
            await person_actions.answer(here.gate, approval, make_answer("allow"), "0" * 64)
        assert (approval.open, call.status, tool.runs) == (True, "waiting", [])
        await person_actions.answer(here.gate, approval, make_answer("allow"), approval.digest)
        assert (await client.reply()).outcome is not None
        assert tool.runs == ["hello"]


async def test_an_answer_after_the_call_was_cancelled_is_told_so(tmp_path: Path) -> None:
    async with gate_world(tmp_path, Write()) as here:
        client = here.client("write")
        call = await client.call()
        approval = await here.question(call)
        person_actions.cancel(here.gate, call, ANN)
        with pytest.raises(Conflict, match="Already withdrawn, 0 s ago: the call was cancelled by ann"):
            await person_actions.answer(here.gate, approval, make_answer("allow", "bob"), approval.digest)
        await client.reply()


async def test_what_changed_since_it_was_asked_is_not_done_although_it_was_allowed(tmp_path: Path) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool) as here:
        client = here.client("write")
        approval = await here.question(await client.call())
        tool.bound = {"version": 2}
        await person_actions.answer(here.gate, approval, make_answer("allow"), approval.digest)
        reply = await client.reply()
        assert reply.outcome is not None
        assert (reply.outcome.ending, str(reply.outcome.by)) == ("failed", "handrail")
        assert "What it depends on (version) changed since the question was asked" in reply.outcome.message
        assert tool.runs == []
        assert "CallStarted" not in await here.kinds(reply.call)


@pytest.mark.parametrize(("effect", "ending"), [("deny", "denied"), ("ask", "failed")])
async def test_an_allowed_call_is_not_run_under_rules_that_became_stricter_since(
    tmp_path: Path, effect: Effect, ending: str
) -> None:
    """The rule comes after the answer, and before the effect."""
    tool = Write()
    async with gate_world(tmp_path, tool) as here:
        client = here.client("write")
        call = await client.call()
        approval = await here.question(call)
        await person_actions.answer(here.gate, approval, make_answer("allow"), approval.digest)
        await here.rules.add(rule(effect, tool="write", note="Not on Sundays"), BOB)
        reply = await client.reply()
        assert reply.outcome is not None
        assert (reply.outcome.ending, tool.runs) == (ending, [])
        told = "Not on Sundays" if effect == "deny" else "What the rules say about it changed"
        assert told in reply.outcome.message
        assert "CallStarted" not in await here.kinds(call)


async def test_an_approval_serves_one_call_only(tmp_path: Path) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool) as here:
        first, second = here.client("write"), here.client("write")
        one = await here.question(await first.call())
        two = await here.question(await second.call())
        assert one.id != two.id
        assert one.digest == two.digest, "the same thing would be done"
        await person_actions.answer(here.gate, one, make_answer("allow"), one.digest)
        await first.reply()
        assert (two.open, tool.runs) == (True, ["hello"])
        await person_actions.answer(here.gate, two, make_answer("deny"), two.digest)
        assert (await second.reply()).outcome is not None
        assert tool.runs == ["hello"]


async def test_the_answer_to_one_call_leaves_the_others_waiting(tmp_path: Path) -> None:
    async with gate_world(tmp_path, Write(), Patient("run")) as here:
        clients = [here.client("write"), here.client("patient")]
        calls = [await client.call() for client in clients]
        approvals = [await here.question(call) for call in calls]
        await person_actions.answer(here.gate, approvals[0], make_answer("deny"), approvals[0].digest)
        await clients[0].reply()
        assert [call.status for call in calls] == ["denied", "waiting"]
        person_actions.cancel(here.gate, calls[1], ANN)


async def test_a_call_that_ends_while_it_plans_asks_nobody(tmp_path: Path) -> None:
    """The plan is ready and the cancel comes in one tick: the work goes on before it hears of the cancel."""
    tool = Planner("write")
    async with gate_world(tmp_path, tool) as here:
        client = here.client("planner")
        call = await client.call()
        await tool.planning.wait()
        tool.planned.set()
        person_actions.cancel(here.gate, call, ANN)
        await client.reply()
        await here.fact(CallSettled, call)
        await anyio.wait_all_tasks_blocked()
        assert "ApprovalOpened" not in await here.kinds(call)


async def test_allow_and_cancel_in_one_tick_run_nothing(tmp_path: Path) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool) as here:
        client = here.client("write")
        call = await client.call()
        approval = await here.question(call)
        await person_actions.answer(here.gate, approval, make_answer("allow"), approval.digest)
        assert person_actions.cancel(here.gate, call, BOB)
        reply = await client.reply()
        assert reply.outcome is not None
        assert (reply.outcome.ending, str(reply.outcome.by)) == ("cancelled", "bob")
        await anyio.wait_all_tasks_blocked()
        assert tool.runs == []
        assert await here.kinds(call) == [
            "CallOpened",
            "ApprovalOpened",
            "ApprovalAnswered",
            "CallSettled",
            "CallStopped",
        ]


async def test_a_cancel_in_the_tick_in_which_the_answer_became_durable_runs_nothing(tmp_path: Path) -> None:
    """The wait for the answer's commit is over, but the call has not gone on yet: a cancel still wins.

    Nothing says that it started after it was settled: that is checked on leaving the scene.
    """
    tool = Write()
    async with gate_world(tmp_path, tool) as here:
        client = here.client("write")
        call = await client.call()
        approval = await here.question(call)

        async def cancel_when_durable(seq: int) -> None:
            await here.journal.committed(seq)
            won.append(person_actions.cancel(here.gate, call, BOB))

        won: list[bool] = []
        async with anyio.create_task_group() as group:
            group.start_soon(cancel_when_durable, here.journal.head + 1)
            await anyio.wait_all_tasks_blocked()
            assert (
                await person_actions.answer(here.gate, approval, make_answer("allow"), approval.digest)
                == here.journal.head
            )
        await client.reply()
        assert won == [True]
        await here.fact(CallStopped, call)
        assert tool.runs == []


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # it wakes whoever waits in order; trio in any
async def test_a_cancel_in_the_tick_in_which_the_start_became_durable_runs_nothing(tmp_path: Path) -> None:
    """The wait for the start's commit is over, but the tool has not been run yet: a cancel still wins."""
    tool = Write()
    async with gate_world(tmp_path, tool) as here:
        client = here.client("write")
        call = await client.call()
        approval = await here.question(call)

        async def cancel_when_durable(seq: int) -> None:
            await here.journal.committed(seq)
            won.append(person_actions.cancel(here.gate, call, BOB))

        won: list[bool] = []
        async with anyio.create_task_group() as group:
            group.start_soon(cancel_when_durable, here.journal.head + 2)
            await anyio.wait_all_tasks_blocked()
            await person_actions.answer(here.gate, approval, make_answer("allow"), approval.digest)
        await client.reply()
        assert won == [True]
        await here.fact(CallStopped, call)
        assert "CallStarted" in await here.kinds(call)
        assert tool.runs == []


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # it wakes whoever waits in order; trio in any
async def test_a_rule_that_refuses_in_the_tick_in_which_the_start_became_durable_runs_nothing(
    tmp_path: Path,
) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool) as here:
        client = here.client("write")
        call = await client.call()
        approval = await here.question(call)

        async def refuse_when_durable(seq: int) -> None:
            await here.journal.committed(seq)
            assert tool.runs == []
            await here.rules.add(rule("deny", tool="write"), BOB)

        async with anyio.create_task_group() as group:
            group.start_soon(refuse_when_durable, here.journal.head + 2)
            await anyio.wait_all_tasks_blocked()
            await person_actions.answer(here.gate, approval, make_answer("allow"), approval.digest)
        reply = await client.reply()
        assert reply.outcome is not None
        assert (reply.outcome.ending, str(reply.outcome.by), tool.runs) == ("denied", "rule r1", [])
        assert "CallStarted" in await here.kinds(call)


async def test_the_question_is_on_record_before_anybody_can_answer_it(tmp_path: Path) -> None:
    async with gate_world(tmp_path, Write()) as here:
        client = here.client("write")
        call = await client.call()
        asked = await here.fact(ApprovalOpened, call)
        assert call.approval is not None
        assert (asked.approval, asked.digest) == (call.approval.id, call.approval.digest)
        person_actions.cancel(here.gate, call, ANN)
        await client.reply()


async def test_a_question_that_nobody_answers_in_the_time_that_was_set_expires(tmp_path: Path) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool, expire_seconds=0.05) as here:
        client = here.client("write")
        reply = await client.reply()
        assert reply.outcome is not None
        assert (reply.outcome.ending, str(reply.outcome.by)) == ("failed", "handrail")
        assert reply.outcome.message.startswith("Expired: nobody answered within 0 s. Nothing was run")
        expired = await here.fact(ApprovalExpired, reply.call)
        assert 50 <= expired.after_ms < 20_000
        assert await here.kinds(reply.call) == [
            "CallOpened",
            "ApprovalOpened",
            "ApprovalExpired",
            "CallSettled",
        ]
        approval = reply.call.approval
        assert approval is not None
        assert (approval.answered, approval.withdrawn, tool.runs) == (None, None, [])
        with pytest.raises(Conflict, match="Already expired, 0 s ago: nobody answered within 0 s"):
            await person_actions.answer(here.gate, approval, make_answer("allow"), approval.digest)


async def test_an_answer_in_time_counts_however_long_it_takes_to_be_written(tmp_path: Path) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool, expire_seconds=0.2) as here:
        client = here.client("write")
        call = await client.call()
        approval = await here.question(call)
        with hung_disk(tmp_path):
            await person_actions.answer(here.gate, approval, make_answer("allow"), approval.digest)
            await anyio.sleep_until(approval.since + 0.3)  # the deadline itself must have passed
            assert (call.status, tool.runs) == ("running", [])
        assert (await client.reply()).outcome is not None
        assert tool.runs == ["hello"]
        assert "ApprovalExpired" not in await here.kinds(call)


async def test_an_answer_and_the_deadline_in_one_tick_settle_it_once(tmp_path: Path) -> None:
    """The deadline has passed and its task has not run yet: whoever acts first wins, and the other hears of it."""
    tool = Write()
    async with gate_world(tmp_path, tool, expire_seconds=0.05) as here:
        for turn in range(10):
            client = here.client("write", {"word": str(turn)})
            call = await client.call()
            approval = await here.question(call)
            late = approval.since + 0.05
            while anyio.current_time() < late:
                pass  # nobody else runs meanwhile
            won = approval.open
            if won:
                await person_actions.answer(here.gate, approval, make_answer("allow"), approval.digest)
            reply = await client.reply()
            assert reply.outcome is not None
            assert reply.outcome.ending == ("done" if won else "failed")
            assert (str(turn) in tool.runs) == won


async def test_without_a_time_that_was_set_a_question_waits(tmp_path: Path) -> None:
    async with gate_world(tmp_path, Write()) as here:
        client = here.client("write")
        call = await client.call()
        approval = await here.question(call)
        await anyio.wait_all_tasks_blocked()
        assert approval.open
        person_actions.cancel(here.gate, call, ANN)


async def test_whoever_comes_late_is_told_who_won_and_how_long_ago(tmp_path: Path) -> None:
    async with gate_world(tmp_path, Write()) as here:
        client = here.client("write")
        approval = await here.question(await client.call())
        await person_actions.answer(
            here.gate, approval, make_answer("deny", "a person on the phone"), approval.digest
        )
        approval._closed_at -= 12  # pyright: ignore[reportPrivateUsage] # twelve seconds pass
        assert approval.closed() == "Already denied by a person on the phone, 12 s ago."
        await client.reply()


@pytest.mark.parametrize(
    ("ms", "shown"),
    [
        (0, "0 s"),
        (12_999, "12 s"),
        (119_000, "119 s"),
        (121_000, "2 min"),
        (7_200_000, "2 h"),
        (172_800_000, "2 d"),
    ],
)
def test_how_long_ago_is_said_in_one_word(ms: int, shown: str) -> None:
    assert format_age(ms) == shown


async def test_a_call_that_rules_allow_says_which_and_what_it_puts_in_place_of_what(tmp_path: Path) -> None:
    tool = Sheet()
    async with gate_world(tmp_path, tool) as here:
        await here.rules.add(rule(tool="sheet"), ANN)
        reply = await here.submit("sheet", {"word": "new"})
        started = await here.fact(CallStarted, reply.call)
        assert (started.allowed_by, started.rules) == ("rule r1", ("r1",))
        assert [(change.path, change.before) for change in started.files] == [("/w/sheet", sha("old"))]


async def test_a_call_that_a_rule_refuses_is_told_which_and_its_note(tmp_path: Path) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool) as here:
        await here.rules.add(rule("deny", tool="write", note="Ask Ann first"), ANN)
        reply = await here.submit("write")
        assert reply.outcome is not None
        assert (reply.outcome.ending, str(reply.outcome.by)) == ("denied", "rule r1")
        assert "r1" in reply.outcome.message
        assert "Ask Ann first" in reply.outcome.message
        assert tool.runs == []


async def test_a_call_that_would_touch_something_else_by_now_is_not_run(tmp_path: Path) -> None:
    """What it is bound to is the same; what its words lead to is not."""
    tool = Write()
    async with gate_world(tmp_path, tool) as here:
        client = here.client("write")
        approval = await here.question(await client.call())
        await person_actions.answer(here.gate, approval, make_answer("allow"), approval.digest)
        tool.action = "run"
        reply = await client.reply()
        assert reply.outcome is not None
        assert "What it would touch changed since the question was asked" in reply.outcome.message
        assert tool.runs == []
