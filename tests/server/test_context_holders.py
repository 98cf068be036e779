"""Which page may set a size: the one that was typed in last, and anybody when there is none."""

import anyio
import pytest

from handrail.server.context import SizeOwners

pytestmark = pytest.mark.anyio


async def test_the_page_that_was_typed_in_last_may_and_no_other() -> None:
    holders, one, other = SizeOwners(), object(), object()
    assert holders.may_size("t1", one)
    holders.hold("t1", one)
    assert holders.may_size("t1", one)
    assert not holders.may_size("t1", other)
    assert not holders.may_size("t1", None)
    assert holders.may_size("t2", other), "another terminal has another holder"
    holders.hold("t1", other)
    assert not holders.may_size("t1", one)


async def test_only_the_holder_lets_go_of_its_own_accord_but_all_can_be_made_to() -> None:
    holders, one, other = SizeOwners(), object(), object()
    holders.hold("t1", one)
    holders.let_go("t1", other)
    assert not holders.may_size("t1", other)
    holders.let_go("t1", one)
    assert holders.may_size("t1", other)
    holders.hold("t1", one)
    holders.let_go("t1")
    assert holders.may_size("t1", other)


async def test_whoever_waits_wakes_when_the_holder_changes_and_only_then() -> None:
    holders, one = SizeOwners(), object()
    woken = 0

    async def wait() -> None:
        nonlocal woken
        while True:
            await holders.changed()
            woken += 1

    async with anyio.create_task_group() as group:
        group.start_soon(wait)
        for act, expected in (
            (lambda: holders.hold("t1", one), 1),
            (lambda: holders.hold("t1", one), 1),
            (lambda: holders.let_go("t1", object()), 1),
            (lambda: holders.let_go("t1", one), 2),
            (lambda: holders.let_go("t1"), 2),
        ):
            await anyio.wait_all_tasks_blocked()
            act()
            await anyio.wait_all_tasks_blocked()
            assert woken == expected
        group.cancel_scope.cancel()
