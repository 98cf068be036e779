"""A while may pass before something is done; but not more, and not for each who asks."""

import anyio
import anyio.lowlevel
import pytest

from handrail.store.debounce import Debounce

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])]


async def times(done: list[float], count: int) -> None:
    with anyio.fail_after(10):
        while len(done) < count:
            await anyio.lowlevel.checkpoint()


async def test_it_is_done_once_for_all_who_asked_and_not_before_its_time() -> None:
    done: list[float] = []
    linger = Debounce(0.05, lambda: done.append(anyio.current_time()))
    began = anyio.current_time()
    for _ in range(10):
        linger.request()
    await times(done, 1)
    assert done[0] - began >= 0.045
    linger.request()
    await times(done, 2)
    assert done[1] - done[0] >= 0.045


async def test_what_was_done_meanwhile_is_not_done_again_and_the_next_has_its_own_time() -> None:
    done: list[float] = []
    linger = Debounce(0.05, lambda: done.append(anyio.current_time()))
    linger.request()
    linger.cancel()
    await anyio.sleep(0.03)
    began = anyio.current_time()
    linger.request()
    await times(done, 1)
    assert done[0] - began >= 0.045


async def test_a_request_can_postpone_the_run() -> None:
    done: list[float] = []
    release = Debounce(0.4, lambda: done.append(anyio.current_time()), postpones=True)
    for _ in range(4):
        release.request()
        await anyio.sleep(0.03)
    last = anyio.current_time()
    release.request()
    await times(done, 1)
    assert done[0] - last >= 0.39
