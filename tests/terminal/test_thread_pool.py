"""Work that takes a while has a room of its own."""

import threading

import anyio
import anyio.to_thread
import pytest

from handrail.terminal.thread_pool import ThreadPool

BOUND = 20.0


async def test_only_so_much_runs_at_once_and_everything_comes_to_its_turn() -> None:
    room, lock = ThreadPool("test", 2), threading.Lock()
    running, most, done = 0, 0, 0
    gate = threading.Event()

    def work() -> None:
        nonlocal running, most, done
        with lock:
            running += 1
            most = max(most, running)
        gate.wait(0.01)
        with lock:
            running -= 1
            done += 1

    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as group:
            for _ in range(100):
                group.start_soon(room.run, work)
    assert (most, done) == (2, 100)


async def test_who_fills_a_room_holds_up_nobody_outside() -> None:
    room, gate = ThreadPool("test", 1), threading.Event()
    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as group:
            for _ in range(200):
                group.start_soon(room.run, gate.wait, BOUND)
            await anyio.wait_all_tasks_blocked()
            assert await anyio.to_thread.run_sync(lambda: "at once") == "at once"
            gate.set()


async def test_who_is_cancelled_need_not_wait_for_the_end() -> None:
    gate = threading.Event()
    with pytest.raises(TimeoutError), anyio.fail_after(0.1):
        await ThreadPool("test", 1).run(gate.wait, BOUND, abandon=True)
    gate.set()
