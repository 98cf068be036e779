"""The path of a call: allowed, denied, asked, refused or broken, each with its outcome and its record."""

from pathlib import Path

import anyio
import pytest
from tests.support.actors import ANN
from tests.support.gate_world import caller, gate_world, make_answer
from tests.support.sample_tools import Broken, Echo, Refusing, ToyInput, ToyPlan, Write

from handrail.gate import gate, person_actions
from handrail.gate.tool import CallReport, Refusal
from handrail.store.events import CallOpened, CallSettled, CallStarted
from handrail.store.values import Caller, Json, Result

pytestmark = pytest.mark.anyio


async def test_a_read_in_the_workspace_is_allowed_by_a_rule_that_is_named(tmp_path: Path) -> None:
    async with gate_world(tmp_path, Echo()) as here:
        reply = await here.submit("echo", {"word": "hi"})
        assert reply.outcome is not None
        assert (reply.outcome.ending, reply.outcome.result) == (
            "done",
            Result(text="hi", data={"word": "hi"}),
        )
        assert await here.kinds(reply.call) == ["CallOpened", "CallStarted", "CallSettled"]
        started = await here.fact(CallStarted, reply.call)
        assert started.allowed_by == "rule reads in the workspace"
        settled = await here.fact(CallSettled, reply.call)
        assert (settled.ending, settled.by, settled.receipt.stopped) == ("done", "echo", True)
        assert here.gate.open == {}


async def test_the_record_of_a_call_says_who_asked_for_what(tmp_path: Path) -> None:
    async with gate_world(tmp_path, Echo()) as here:
        who = caller("zed")
        reply = await here.submit("echo", {"word": "hi"}, caller=who)
        opened = await here.fact(CallOpened, reply.call)
        assert (opened.tool, opened.title, opened.input) == ("echo", "echo hi", {"word": "hi"})
        assert opened.caller == who


async def test_a_call_denied_by_a_rule_is_never_run(tmp_path: Path) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool, default="deny") as here:
        reply = await here.submit("write")
        assert reply.outcome is not None
        assert (reply.outcome.ending, str(reply.outcome.by)) == ("denied", "rule default policy")
        assert "refuses" in reply.outcome.message
        assert tool.runs == []
        assert await here.kinds(reply.call) == ["CallOpened", "CallSettled"]


async def test_a_call_without_a_workspace_asks_even_to_read(tmp_path: Path) -> None:
    async with gate_world(tmp_path, Echo()) as here:
        client = here.client("echo", caller=caller(workspace=None))
        approval = await here.question(await client.call())
        assert approval.asked.why.startswith("The caller has no workspace")
        await person_actions.answer(here.gate, approval, make_answer("allow"), approval.digest)
        outcome = (await client.reply()).outcome
        assert outcome is not None
        assert outcome.ending == "done"


async def test_a_tool_that_breaks_fails_its_call_with_a_sentence_and_no_traceback(tmp_path: Path) -> None:
    async with gate_world(tmp_path, Broken(), Echo()) as here:
        reply = await here.submit("broken")
        assert reply.outcome is not None
        assert (reply.outcome.ending, str(reply.outcome.by)) == ("failed", "handrail")
        assert "broken broke: ZeroDivisionError" in reply.outcome.message
        assert "secret" not in reply.outcome.message
        assert "Traceback" not in reply.outcome.message
        again = await here.submit("echo")
        assert again.outcome is not None
        assert again.outcome.ending == "done", "others are not affected"


async def test_a_tool_that_breaks_while_it_plans_fails_its_call_too(tmp_path: Path) -> None:
    class Lost(Echo):
        async def plan(self, input: ToyInput, caller: Caller) -> ToyPlan:
            raise KeyError(input.word)

    async with gate_world(tmp_path, Lost()) as here:
        reply = await here.submit("echo")
        assert reply.outcome is not None
        assert reply.outcome.ending == "failed"


async def test_a_refusal_is_told_in_the_tools_own_words_with_what_there_is(tmp_path: Path) -> None:
    async with gate_world(tmp_path, Refusing()) as here:
        reply = await here.submit("refusing")
        assert reply.outcome is not None
        assert (reply.outcome.ending, str(reply.outcome.by)) == ("failed", "refusing")
        assert reply.outcome.message == "It ran out of time."
        assert reply.outcome.result == Result(text="half", data={"word": "half"})
        settled = await here.fact(CallSettled, reply.call)
        assert settled.result == reply.outcome.result


async def test_a_refusal_to_plan_asks_nobody(tmp_path: Path) -> None:
    class Missing(Write):
        async def plan(self, input: ToyInput, caller: Caller) -> ToyPlan:
            raise Refusal(f"There is no file {input.word}.")

    async with gate_world(tmp_path, Missing()) as here:
        reply = await here.submit("write", {"word": "x"})
        assert reply.outcome is not None
        assert (reply.outcome.ending, reply.outcome.message) == ("failed", "There is no file x.")
        assert await here.kinds(reply.call) == ["CallOpened", "CallSettled"]


async def test_clean_up_that_breaks_harms_no_other_call(tmp_path: Path) -> None:
    class Sloppy(Echo):
        name = "sloppy"

        async def work(self, plan: ToyPlan, call: CallReport) -> Result:
            call.keep_unwinding()
            return await super().work(plan, call)

        async def unwind(self, call: CallReport) -> None:
            raise ZeroDivisionError

    async with gate_world(tmp_path, Sloppy(), Echo()) as here:
        reply = await here.submit("sloppy")
        assert reply.outcome is not None
        assert reply.outcome.ending == "done"
        again = await here.submit("echo")
        assert again.outcome is not None
        assert again.outcome.ending == "done"


async def test_tasks_of_a_tool_that_break_while_it_is_cancelled_harm_no_other_call(tmp_path: Path) -> None:
    started = anyio.Event()

    async def breaks_when_cancelled() -> None:
        try:
            started.set()
            await anyio.sleep_forever()
        finally:
            raise ZeroDivisionError

    class Crowd(Echo):
        name = "crowd"

        async def work(self, plan: ToyPlan, call: CallReport) -> Result:
            async with anyio.create_task_group() as group:
                group.start_soon(breaks_when_cancelled)
                group.start_soon(anyio.sleep_forever)
            return await super().work(plan, call)

    async with gate_world(tmp_path, Crowd(), Echo()) as here:
        client = here.client("crowd")
        await started.wait()
        person_actions.cancel(here.gate, await client.call(), ANN)
        outcome = (await client.reply()).outcome
        assert outcome is not None
        assert outcome.ending == "cancelled"
        again = await here.submit("echo")
        assert again.outcome is not None
        assert again.outcome.ending == "done"


def nested(levels: int) -> Json:
    found: Json = {}
    for _ in range(levels):
        found = {"word": found}
    return found


@pytest.mark.parametrize(
    ("tool", "input", "sentence"),
    [
        ("nothing", {}, "There is no tool named 'nothing'. Use one of: echo, write."),
        ("n" * 5000, {}, "There is no tool named 'nnn"),
        ("echo", {"count": "many"}, "`count`: input should be a valid integer"),
        ("echo", {"colour": "red"}, "`colour` is not an input of this tool"),
        ("echo", {"c" * 5000: "red"}, "is not an input of this tool"),
        ("echo", nested(100), "nested deeper than 64 levels"),
        ("echo", nested(230), "nested deeper than 64 levels"),
        ("echo", nested(50_000), "nested deeper than 64 levels"),
        ("echo", {"word": "x" * (17 * 1024 * 1024)}, "larger than 16,777,216 characters"),
    ],
    ids=[
        "unknown tool",
        "long name",
        "wrong type",
        "extra field",
        "long field",
        "deep",
        "unreadably deep",
        "very deep",
        "huge",
    ],
)
async def test_what_a_tool_cannot_take_is_answered_with_a_sentence_and_recorded(
    tmp_path: Path, tool: str, input: Json, sentence: str
) -> None:
    echo, write = Echo(), Write()
    async with gate_world(tmp_path, echo, write) as here:
        reply = await here.submit(tool, input)
        assert reply.outcome is not None
        assert (reply.outcome.ending, str(reply.outcome.by)) == ("failed", "handrail")
        assert sentence in reply.outcome.message
        assert len(reply.outcome.message) < 500
        assert await here.kinds(reply.call) == ["CallOpened", "CallSettled"]
        assert (await here.fact(CallSettled, reply.call)).message == reply.outcome.message
        assert echo.runs == write.runs == []
        assert here.gate.open == {}


class Reader(Echo):
    name = "reader"
    reads_only = True


async def test_a_caller_with_very_many_open_calls_opens_no_more_but_may_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "OPEN_MAX", 2)
    async with gate_world(tmp_path, Reader(), Write()) as here:
        for word in ("a", "b"):
            await here.question(await here.client("write", {"word": word}).call())
        refused = await here.submit("write", {"word": "c"})
        assert refused.outcome is not None
        assert (refused.outcome.ending, refused.call.approval) == ("failed", None)
        assert "You have 2 open calls" in refused.outcome.message
        read = await here.submit("reader", {"word": "hi"})
        assert read.outcome is not None
        assert read.outcome.ending == "done"
        other = await here.client("write", {"word": "d"}, caller=caller("other")).call()
        assert (await here.question(other)).open
        here.gate.leave()
