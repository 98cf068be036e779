import anyio
import pytest

from handrail.store.bell import Bell

pytestmark = pytest.mark.anyio

BOUND = 5.0


async def test_a_ring_wakes_every_waiter_once() -> None:
    bell, woken = Bell(), list[str]()

    async def wait(name: str) -> None:
        await bell.wait()
        woken.append(name)

    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as group:
            group.start_soon(wait, "one")
            group.start_soon(wait, "two")
            await anyio.wait_all_tasks_blocked()
            bell.ring()
    assert sorted(woken) == ["one", "two"]
    assert not bell.next().is_set()


async def test_an_event_taken_before_a_ring_is_set_by_it() -> None:
    bell = Bell()
    before = bell.next()
    bell.ring()
    assert before.is_set()


async def test_a_ring_without_a_waiter_is_not_remembered() -> None:
    bell = Bell()
    bell.ring()
    with anyio.move_on_after(0) as scope:
        await bell.wait()
    assert scope.cancelled_caught
