"""Many calls in a row leave the daemon as it was; a journal that was compacted is one like any other."""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from bench.client import Client
from tests.support.daemon_home import Home, until
from tests.support.mcp_client import stdio

from handrail.store.events import DaemonStopped
from handrail.store.hash_chain import Link
from handrail.store.integrity import verify
from handrail.store.journal import open_journal
from handrail.store.journal_retention import JournalRetention

WARM_UP, CALLS = 2000, 2000
"""The warm-up fills the journal's ring buffer. `make bench` does the same with 10,000 calls."""
WINDOW = 32
TOLERANCE = 0.05


class Usage(NamedTuple):
    rss: int
    descriptors: int


def read_usage(pid: int) -> Usage:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return Usage(pages * os.sysconf("SC_PAGE_SIZE"), len([*Path(f"/proc/{pid}/fd").iterdir()]))


def is_near(before: int, after: int) -> bool:
    return abs(after - before) <= before * TOLERANCE


def connect(home: Home, workspace: Path) -> Client:
    door = stdio(home, workspace)
    client = Client([door.command, *door.args], home.environment, workspace)
    client.initialize()
    return client


@pytest.mark.timeout(180)
async def test_many_calls_leave_memory_and_descriptors_as_they_were(home: Home, workspace: Path) -> None:
    (workspace / "a.txt").write_text("some words\n" * 50)
    pid = home.pid
    with connect(home, workspace) as client:
        client.call_pipelined("read_file", {"path": "a.txt"}, WARM_UP, WINDOW)
        before = read_usage(pid)
        client.call_pipelined("read_file", {"path": "a.txt"}, CALLS, WINDOW)

        def is_back() -> bool:
            after = read_usage(pid)
            return is_near(before.rss, after.rss) and is_near(before.descriptors, after.descriptors)

        await until(is_back)


async def test_a_daemon_works_on_a_compacted_journal(home: Home, workspace: Path) -> None:
    (workspace / "a.txt").write_text("some words\n")
    with connect(home, workspace) as client:
        client.call_pipelined("read_file", {"path": "a.txt"}, 50, 8)
    home.end()
    removed = await compact_all(home)
    assert removed >= 150
    home.up()
    with connect(home, workspace) as client:
        assert not client.call("read_file", {"path": "a.txt"}).get("isError")
        calls = client.call("list_calls", {})["structuredContent"]["calls"]
        assert len(calls) <= 2
    doctor = run_doctor(home)
    assert f"{removed} older events were compacted" in doctor, doctor
    verdict = verify(home.places.database, home.places.head)
    assert verdict.ok, str(verdict)


def run_doctor(home: Home) -> str:
    argv = [sys.executable, "-m", "handrail", "doctor"]
    done = subprocess.run(argv, env=home.environment, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout


async def compact_all(home: Home) -> int:
    """Remove all that can be removed, as the daemon does after `keep_days`."""
    async with open_journal(home.places.database, home.places.head) as journal:
        await journal.committed(journal.append(DaemonStopped(why="the newest event stays")))

        async def store_head() -> Link:
            return journal.link

        async def announce(_payload_hash: bytes) -> bool:
            return True

        return await JournalRetention(journal, home.places.database, 1e-12, store_head, announce).compact()
