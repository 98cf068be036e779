"""The tree of activities: what is told of it, and what a cancel of any node does."""

from contextlib import ExitStack

import anyio
import pytest

from handrail.own_agent.activity import Activity, ActivityUpdate, operation

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])]


def story(told: list[ActivityUpdate]) -> list[tuple[str, str | None]]:
    return [(each.title, each.how) for each in told]


async def test_what_begins_is_told_and_what_ends_is_told_from_the_leaves_up() -> None:
    told: list[ActivityUpdate] = []
    with (
        operation("Root", told.append) as root,
        root.begin("step", "Step 1") as step,
        step.begin("call", "Look", "call_7") as call,
    ):
        call.detail = "Seen."
    assert story(told) == [
        *[("Root", None), ("Step 1", None), ("Look", None)],
        *[("Look", "done"), ("Step 1", "done"), ("Root", "done")],
    ]
    began, ended = told[2], told[3]
    assert (began.id, began.parent, began.tool_call, began.detail) == (call.id, step.id, "call_7", "")
    assert (ended.id, ended.parent, ended.tool_call, ended.detail) == (call.id, step.id, "call_7", "Seen.")
    assert told[0].parent is None


async def test_a_cancel_ends_a_node_and_what_is_below_it_and_nothing_else() -> None:
    told: list[ActivityUpdate] = []
    with operation("Root", told.append) as root:
        with root.begin("step", "Step 1") as step, step.begin("call", "Wait"):
            assert root.cancel(step.id)
            await anyio.sleep_forever()
        assert step.scope.cancelled_caught
        with root.begin("step", "Step 2"):
            await anyio.lowlevel.checkpoint()
    assert dict(story(told)) == {"Root": "done", "Step 1": "cancelled", "Wait": "cancelled", "Step 2": "done"}


async def test_what_is_over_cannot_be_cancelled() -> None:
    with operation("Root", list[ActivityUpdate]().append) as root:
        with root.begin("step", "Step 1") as step:
            pass
        assert not root.cancel(step.id)
        assert [*root.open] == [root]


async def test_a_cancel_of_the_root_reaches_the_tasks_below() -> None:
    told: list[ActivityUpdate] = []

    async def wait(step: Activity, title: str) -> None:
        with step.begin("call", title):
            await anyio.sleep_forever()

    with anyio.fail_after(5), operation("Root", told.append) as root, root.begin("step", "Step 1") as step:
        async with anyio.create_task_group() as group:
            group.start_soon(wait, step, "One")
            group.start_soon(wait, step, "Two")
            await anyio.wait_all_tasks_blocked()
            assert sorted(each.title for each in root.open) == ["One", "Root", "Step 1", "Two"]
            root.cancel(root.id)
    assert dict(story(told)) == dict.fromkeys(["One", "Two", "Step 1", "Root"], "cancelled")
    assert root.scope.cancelled_caught


async def test_what_raises_is_told_as_a_failure_and_goes_on() -> None:
    told: list[ActivityUpdate] = []
    with pytest.raises(KeyError), operation("Root", told.append) as root, root.begin("step", "Step 1"):
        raise KeyError
    assert dict(story(told)) == {"Step 1": "failed", "Root": "failed"}


async def test_whoever_works_in_it_may_say_how_it_ended() -> None:
    told: list[ActivityUpdate] = []
    with operation("Root", told.append) as root, root.begin("call", "Try") as call:
        call.ending, call.detail = "failed", "No such file."
    assert [(each.how, each.detail) for each in told[2:]] == [("failed", "No such file."), ("done", "")]


async def test_a_cancel_that_comes_when_the_work_is_done_changes_nothing() -> None:
    told: list[ActivityUpdate] = []
    with operation("Root", told.append) as root, root.begin("call", "Quick") as call:
        call.scope.cancel()
    assert dict(story(told)) == {"Quick": "done", "Root": "done"}


async def test_a_part_has_no_scope_of_its_own_and_to_cancel_it_is_to_cancel_the_whole() -> None:
    told: list[ActivityUpdate] = []
    with operation("Root", told.append) as root:
        with root.begin("model", "Ask") as asking:
            with ExitStack() as parts:
                with anyio.CancelScope():  # a scope that ends before the part does
                    parts.enter_context(asking.part("thinking", "Thinking"))
                    await anyio.lowlevel.checkpoint()
                assert [each.title for each in asking.open] == ["Ask", "Thinking"]
            with asking.part("thinking", "Again") as again:
                assert root.cancel(again.id)
                await anyio.sleep_forever()
        assert asking.scope.cancelled_caught
        assert [*root.open] == [root]
    assert dict(story(told)) == {
        "Root": "done",
        "Ask": "cancelled",
        "Thinking": "done",
        "Again": "cancelled",
    }
