"""Which page may set a terminal's size: the one that was typed in last, or any if there is none."""

import anyio
import pytest

from handrail.server.context import SizeOwners

pytestmark = pytest.mark.anyio


async def test_only_the_page_that_was_typed_in_last_can_resize() -> None:
    size_owners, one, other = SizeOwners(), object(), object()
    assert size_owners.can_resize("t1", one)
    size_owners.claim("t1", one)
    assert size_owners.can_resize("t1", one)
    assert not size_owners.can_resize("t1", other)
    assert not size_owners.can_resize("t1", None)
    assert size_owners.can_resize("t2", other), "another terminal has another owner"
    size_owners.claim("t1", other)
    assert not size_owners.can_resize("t1", one)


async def test_only_the_holder_lets_go_of_its_own_accord_but_all_can_be_made_to() -> None:
    size_owners, one, other = SizeOwners(), object(), object()
    size_owners.claim("t1", one)
    size_owners.release("t1", other)
    assert not size_owners.can_resize("t1", other)
    size_owners.release("t1", one)
    assert size_owners.can_resize("t1", other)
    size_owners.claim("t1", one)
    size_owners.release("t1")
    assert size_owners.can_resize("t1", other)


async def test_a_waiter_wakes_only_when_the_owner_changes() -> None:
    size_owners, one = SizeOwners(), object()
    woken = 0

    async def wait() -> None:
        nonlocal woken
        while True:
            await size_owners.changed()
            woken += 1

    async with anyio.create_task_group() as group:
        group.start_soon(wait)
        for act, expected in (
            (lambda: size_owners.claim("t1", one), 1),
            (lambda: size_owners.claim("t1", one), 1),
            (lambda: size_owners.release("t1", object()), 1),
            (lambda: size_owners.release("t1", one), 2),
            (lambda: size_owners.release("t1"), 2),
        ):
            await anyio.wait_all_tasks_blocked()
            act()
            await anyio.wait_all_tasks_blocked()
            assert woken == expected
        group.cancel_scope.cancel()
