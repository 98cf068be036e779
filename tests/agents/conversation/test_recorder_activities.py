"""What an operation is busy with: taken down as its agent tells it, bounded, ended with it, and cancelled one by one."""

import sqlite3
from contextlib import closing
from pathlib import Path

import anyio
import pytest
from tests.support.actors import ANN
from tests.support.conversation_host import ConversationHost, check_invariants, conversation_host, notes, text
from tests.support.scripted_agent import ACTIVITY_CAPABILITIES

from handrail.errors import Conflict
from handrail.store.events import ActivityEnded, ActivityStarted
from handrail.store.operations import ActivityRecord

pytestmark = pytest.mark.anyio

ROOT = {"begin": "a0", "sort": "operation", "title": "Do it"}
STEP = {"begin": "a1", "in": "a0", "sort": "step", "title": "Step 1"}
MODEL = {"begin": "a2", "in": "a1", "sort": "model", "title": "some:model"}


def telling(scene: ConversationHost) -> str:
    """A thread with an agent that tells what it is busy with."""
    return scene.thread(scene.stage.add("telling", capabilities=ACTIVITY_CAPABILITIES))


async def activities(scene: ConversationHost, operation: str | None) -> dict[str, ActivityRecord]:
    assert operation is not None
    await scene.threads.written()
    found = await scene.records.operations.history(operation)
    assert found is not None
    return {each.id: each for each in found.activities}


async def until_open(scene: ConversationHost, operation: str | None, id: str) -> None:
    async def look() -> bool:
        return id in await activities(scene, operation)

    await scene.until(look)


async def test_what_an_agent_tells_becomes_facts_in_its_order_and_a_tree(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = telling(scene)
        said = await scene.ask(
            thread,
            *(ROOT, STEP, MODEL),
            {"say": "Hello"},
            {"finish": "a2", "sort": "model", "detail": "12 tokens"},
            {"begin": "a3", "in": "a1", "sort": "call", "title": "Run it", "call": "tc1"},
            {"finish": "a3", "sort": "call", "how": "failed", "detail": "no such file"},
            {"finish": "a1"},
            {"finish": "a0", "sort": "operation"},
        )
        found = await activities(scene, said.operation)
        assert [(each.id, each.parent, each.sort, each.how) for each in found.values()] == [
            ("a0", None, "operation", "done"),
            ("a1", "a0", "step", "done"),
            ("a2", "a1", "model", "done"),
            ("a3", "a1", "call", "failed"),
        ]
        assert (found["a3"].title, found["a3"].tool_call, found["a3"].detail) == (
            "Run it",
            "tc1",
            "no such file",
        )
        assert all(each.ended_at is not None for each in found.values())
        facts = await scene.facts(ActivityStarted, ActivityEnded)
        assert [each.activity for each in facts] == ["a0", "a1", "a2", "a2", "a3", "a3", "a1", "a0"]
        assert {each.operation for each in facts} == {said.operation}
        await check_invariants(scene)


async def test_an_agent_that_tells_nothing_leaves_no_trace_of_activities(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        said = await scene.ask(scene.thread(), {"say": "Hello"})
        assert await activities(scene, said.operation) == {}
        assert await scene.facts(ActivityStarted, ActivityEnded) == []


async def test_an_activity_that_is_one_of_our_calls_names_it(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = telling(scene)
        path = str(scene.stage.cwd / "a.txt")
        told = {"toolCallId": "tc1", "title": "Write a.txt", "kind": "edit", "locations": [{"path": path}]}
        prompted = await scene.say(
            thread,
            {"tool_call": told},
            {"begin": "a1", "sort": "call", "call": "tc1"},
            {"write": {"path": path, "content": "x"}},
            {"finish": "a1", "sort": "call"},
            {"tool_call_update": {"toolCallId": "tc1", "status": "completed"}},
        )
        call = await scene.asked(thread)
        await scene.decide(call, "allow")
        said = await scene.answer(thread, prompted)
        assert (await activities(scene, said.operation))["a1"].call == call.id


async def test_a_cancelled_operation_says_what_it_was_busy_with_and_closes_it(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = telling(scene)
        prompted = await scene.say(
            thread,
            *(ROOT, STEP, MODEL),
            {"finish": "a2", "sort": "model"},
            {"begin": "a3", "in": "a1", "sort": "call", "title": "Run pytest"},
            {"begin": "a4", "in": "a1", "sort": "compaction"},
            {"on_cancel": [{"finish": "a3", "sort": "call", "how": "cancelled", "detail": "late"}]},
            {"hang": True},
        )
        await until_open(scene, prompted.operation, "a4")
        assert scene.gate.operations[prompted.operation or ""].cancel(ANN)
        await scene.answer(thread, prompted)
        ended = await scene.ended(prompted.operation or "")
        assert ended.cancelled_activities == ("Run pytest", "summing up the conversation")
        found = await activities(scene, prompted.operation)
        assert {each.id: each.how for each in found.values()} == {
            **dict.fromkeys(("a0", "a1", "a3", "a4"), "cancelled"),
            "a2": "done",
        }
        assert found["a3"].detail == "", "what ended with its operation is over; nothing is said of it twice"
        await check_invariants(scene)


async def test_what_an_agent_leaves_open_is_over_when_its_operation_is(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        said = await scene.ask(telling(scene), ROOT, STEP, {"say": "Bye"})
        found = await activities(scene, said.operation)
        assert {each.how for each in found.values()} == {"interrupted"}
        assert (await scene.ended(said.operation or "")).cancelled_activities == ()


async def test_one_activity_is_cancelled_and_the_operation_goes_on(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = telling(scene)
        prompted = await scene.say(
            thread,
            *(ROOT, STEP),
            {"begin": "a3", "in": "a1", "sort": "call", "title": "Run pytest"},
            {"busy": "a3", "then": [{"say": "then I do something else"}]},
        )
        await until_open(scene, prompted.operation, "a3")
        with anyio.fail_after(30):
            await scene.prompts.cancel_activity(prompted.operation or "", "a3", by=ANN)
        said = await scene.answer(thread, prompted)
        assert (said.stop, text(said)) == ("end_turn", "then I do something else")
        found = await activities(scene, prompted.operation)
        assert (found["a3"].how, found["a3"].by) == ("cancelled", str(ANN))
        with pytest.raises(Conflict):
            await scene.prompts.cancel_activity(prompted.operation or "", "a3", by=ANN)
        await check_invariants(scene)


async def test_who_cancelled_something_is_said_of_what_was_part_of_it_too(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = telling(scene)
        prompted = await scene.say(
            thread,
            *(ROOT, STEP, MODEL),
            {"busy": "a1", "then": []},
        )
        await until_open(scene, prompted.operation, "a2")
        await scene.prompts.cancel_activity(prompted.operation or "", "a1", by=ANN)
        await scene.answer(thread, prompted)
        found = await activities(scene, prompted.operation)
        assert (found["a1"].how, found["a1"].by) == ("cancelled", str(ANN))
        assert (found["a2"].how, found["a2"].by) == ("interrupted", "")


async def test_to_cancel_the_root_is_to_cancel_the_operation(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = telling(scene)
        prompted = await scene.say(thread, ROOT, STEP, {"hang": True})
        await until_open(scene, prompted.operation, "a1")
        await scene.prompts.cancel_activity(prompted.operation or "", "a0", by=ANN)
        assert (await scene.answer(thread, prompted)).stop == "cancelled"
        assert (await scene.ended(prompted.operation or "")).cancelled_by == str(ANN)


async def test_what_cannot_be_cancelled_is_refused_with_the_reason(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        quiet = scene.thread()  # an agent that tells, but does not say that it can be asked
        prompted = await scene.say(quiet, STEP, {"hang": True})
        await until_open(scene, prompted.operation, "a1")
        operation = prompted.operation or ""
        with pytest.raises(Conflict, match="cannot end a part"):
            await scene.prompts.cancel_activity(operation, "a1", by=ANN)
        with pytest.raises(LookupError, match="There is no activity a7"):
            await scene.prompts.cancel_activity(operation, "a7", by=ANN)
        scene.gate.operations[operation].cancel(ANN)
        await scene.answer(quiet, prompted)
        with pytest.raises(Conflict, match="has ended"):
            await scene.prompts.cancel_activity(operation, "a1", by=ANN)


async def test_what_makes_no_sense_is_not_taken_down(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = telling(scene)
        said = await scene.ask(
            thread,
            {"begin": "dream", "sort": "dreaming"},
            {"begin": "x" * 65},
            {"finish": "never-begun"},
            {"begin": "a1"},
            {"begin": "a1", "title": "again"},
            {"begin": "a2", "in": "nobody", "title": "y" * 600},
            {"begin": "a3", "in": "a3"},
            {"finish": "a3", "how": "exploded"},
            {"notify": "_handrail/activity", "params": {"sessionId": "of-nobody", "activity": {"id": "a9"}}},
            {"notify": "_handrail/activity"},
            {"notify": "_handrail/activity", "params": {"activity": [1, 2]}},
            {"say": "done"},
        )
        found = await activities(scene, said.operation)
        assert text(said) == "done"
        assert {each.id: (each.parent, each.title) for each in found.values()} == {
            "a1": (None, "a1"),
            "a2": (None, "y" * 500),
            "a3": (None, "a3"),
        }


async def test_an_agent_that_tells_without_end_is_heard_up_to_a_bound(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = telling(scene)
        said = await scene.ask(thread, {"begin": "a{n}", "times": 20_100}, {"say": "done"})
        assert text(said) == "done"
        assert len(await activities(scene, said.operation)) == 20_000
        await check_invariants(scene)


async def test_nothing_of_activities_is_left_of_a_deleted_thread(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = telling(scene)
        prompted = await scene.say(
            thread,
            *(ROOT, STEP),
            {"begin": "a3", "in": "a1", "sort": "call", "title": "Run secret.sh"},
            {"begin": "a4", "in": "a1", "sort": "call", "title": "Run other.sh"},
            {"finish": "a4", "sort": "call", "how": "failed", "detail": "secret.sh is gone"},
            {"hang": True},
        )

        async def failed() -> bool:
            found = await activities(scene, prompted.operation)
            return "a4" in found and found["a4"].how == "failed"

        await scene.until(failed)
        scene.gate.operations[prompted.operation or ""].cancel(ANN)
        await scene.answer(thread, prompted)
        await scene.prompts.forget(thread)
        await scene.threads.delete(thread, ANN)
        assert await activities(scene, prompted.operation) == {}
        detail = await scene.records.operations.history(prompted.operation or "")
        assert detail is not None
        assert detail.cancelled_activities == ()
        for payload in payloads(tmp_path):
            assert "secret.sh" not in payload
            assert "Run other.sh" not in payload


def payloads(home: Path) -> list[str]:
    with closing(sqlite3.connect(f"file:{home / 'handrail.db'}?mode=ro", uri=True)) as database:
        return [row[0] for row in database.execute("SELECT payload FROM events WHERE payload IS NOT NULL")]


async def test_only_our_own_agent_speaks_in_our_name(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        other = await scene.ask(scene.thread(), {"note": "Approved."}, {"say": " Done."})
        assert (notes(other), text(other)) == ([], "Approved. Done.")
        own = await scene.ask(
            scene.thread(scene.stage.add("handrail")),
            {"say": "One. "},
            {"note": "Summed up."},
            {"say": "Two."},
        )
        assert (notes(own), text(own)) == (["Summed up."], "One. Two.")
