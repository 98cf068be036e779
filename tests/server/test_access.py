"""Credentials that are lent: good for one thread, for as long as this daemon runs."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from handrail.server.access import MOST_LENT, Access
from handrail.store.journal import open_journal

pytestmark = pytest.mark.anyio


@pytest.fixture
async def access(tmp_path: Path) -> AsyncIterator[Access]:
    async with open_journal(tmp_path / "handrail.db", tmp_path / "handrail.head") as journal:
        yield Access(journal, [], b"")


async def test_what_is_lent_names_its_thread_and_is_no_person(access: Access) -> None:
    bearer = access.lend("h1", "/w", "claude")

    client = access.client(bearer)
    assert client is not None
    assert (client.thread, client.workspace, client.name) == ("h1", "/w", "claude")
    assert access.person(bearer) is None


def _read_all(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


async def test_lending_leaves_no_trace_on_disk(tmp_path: Path, access: Access) -> None:
    bearer = access.lend("h1", None, "claude")

    assert _read_all(tmp_path)
    assert bearer.encode() not in _read_all(tmp_path)


async def test_of_one_agent_on_one_thread_only_the_newest_few_are_good(access: Access) -> None:
    others = [access.lend("h2", "/w", "claude"), access.lend("h1", "/w", "codex")]
    lent = [access.lend("h1", "/w", "claude") for _ in range(MOST_LENT + 2)]

    assert [access.client(bearer) is not None for bearer in lent] == [False, False, *[True] * MOST_LENT]
    assert all(access.client(bearer) is not None for bearer in others)


async def test_what_was_lent_for_a_thread_is_taken_back_with_it(access: Access) -> None:
    gone, other = access.lend("h1", "/w", "claude"), access.lend("h2", "/w", "claude")

    access.take_back("h1")

    assert access.client(gone) is None
    assert access.client(other) is not None
