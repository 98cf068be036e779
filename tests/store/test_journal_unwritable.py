"""A full disk and a read-only file: nothing is half written, whoever waits is told, and it recovers."""

import errno
import os
import resource
import subprocess
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest
from tests.support.sample_events import JournalFiles, call_opened, call_settled, daemon_stopped

from handrail.errors import Unwritable
from handrail.store.events import CallOpened, Entry
from handrail.store.integrity import verify
from handrail.store.journal import Journal, open_journal
from handrail.store.records import open_records

pytestmark = pytest.mark.anyio

LARGE = "x" * 200_000


@contextmanager
def files_no_larger_than(size: int) -> Generator[None]:
    """Every write of this process beyond `size` fails, as it does on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def refused(journal: Journal, seq: int) -> Unwritable:
    with anyio.fail_after(10), pytest.raises(Unwritable) as refusal:
        await journal.committed(seq)
    return refusal.value


async def test_whoever_waits_for_a_record_that_cannot_be_kept_is_told_why(kept: JournalFiles) -> None:
    async with open_journal(kept.path, kept.head) as journal:
        with files_no_larger_than(150_000):
            error = await refused(journal, journal.append(daemon_stopped(LARGE)))
    assert str(error).startswith("The journal could not be written (")
    assert "nothing was run" in str(error)
    assert "Free space" in str(error)


async def test_after_space_is_back_the_next_append_is_kept_and_the_chain_is_whole(kept: JournalFiles) -> None:
    async with open_journal(kept.path, kept.head) as journal:
        await journal.committed(journal.append(daemon_stopped("before")))
        with files_no_larger_than(150_000):
            for _ in range(3):
                await refused(journal, journal.append(daemon_stopped(LARGE)))
        with anyio.fail_after(10):
            seq = journal.append(daemon_stopped(LARGE))
            await journal.committed(seq)
        assert journal.durable == seq
        assert [entry.seq for entry in await journal.since(0)] == [1, seq]
    verdict = verify(kept.path, kept.head)
    assert verdict.ok, str(verdict)
    assert verdict.rows == 2


async def test_a_committed_event_that_cannot_be_synced_is_refused_to_who_waits_for_that(
    kept: JournalFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    async with open_journal(kept.path, kept.head) as journal:
        seq = journal.append(daemon_stopped("a read"))
        await journal.committed(seq, sync=False)
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", fail)
            await refused(journal, seq)
        assert journal.durable == seq

        other = journal.append(daemon_stopped("space is back"))
        with anyio.fail_after(10):
            await journal.committed(other)
            await journal.committed(seq)
        assert journal.synced == other


async def test_a_lost_number_stays_lost_even_after_others_are_durable(kept: JournalFiles) -> None:
    async with open_journal(kept.path, kept.head) as journal:
        with files_no_larger_than(150_000):
            lost = journal.append(daemon_stopped(LARGE))
            await refused(journal, lost)
        later = journal.append(daemon_stopped())
        with anyio.fail_after(10):
            await journal.committed(later)
        assert later > lost, "a number is never given twice"
        await refused(journal, lost)


async def test_all_that_was_appended_with_a_failed_record_is_lost_with_it(kept: JournalFiles) -> None:
    async with open_journal(kept.path, kept.head) as journal:
        with files_no_larger_than(150_000):
            first = journal.append(call_opened("c1", input={"text": LARGE}))
            rest = [journal.append(call_settled("c1")) for _ in range(50)]
            await refused(journal, first)
        for seq in rest:
            await refused(journal, seq)
        with anyio.fail_after(10):
            await journal.committed(journal.append(call_opened("c2")))
        entries = await journal.since(0)
        assert [entry.event.call for entry in entries if isinstance(entry.event, CallOpened)] == ["c2"]
        assert len(entries) == 1
    async with open_records(kept.path) as records:
        assert [call.id for call in await records.calls.find()] == ["c2"]


async def test_followers_are_not_told_of_what_was_lost(kept: JournalFiles) -> None:
    async with open_journal(kept.path, kept.head) as journal, anyio.create_task_group() as group:
        seen: list[int] = []
        done = anyio.Event()

        async def send(entries: Sequence[Entry]) -> None:
            seen.extend(entry.seq for entry in entries)
            done.set()

        group.start_soon(journal.follow, 0, send)
        with files_no_larger_than(150_000):
            await refused(journal, journal.append(daemon_stopped(LARGE)))
        seq = journal.append(daemon_stopped("after"))
        with anyio.fail_after(10):
            await done.wait()
        assert seen == [seq]
        group.cancel_scope.cancel()


@contextmanager
def as_an_ordinary_user() -> Generator[None]:
    """Root may write everything; file modes only count for others."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def make_modes(folder: Path, folder_mode: int, file: Path, file_mode: int) -> None:
    folder.chmod(folder_mode)
    file.chmod(file_mode)


async def test_a_read_only_database_is_refused_when_it_is_opened(home: Path) -> None:
    path, head = home / "handrail.db", home / "handrail.head"
    async with open_journal(path, head) as journal:
        await journal.committed(journal.append(daemon_stopped()))
    make_modes(home, 0o555, path, 0o444)
    with as_an_ordinary_user(), pytest.raises(Unwritable, match=r"readonly|unable to open"):
        async with open_journal(path, head):
            pass
    make_modes(home, 0o755, path, 0o600)
    async with open_journal(path, head) as journal:
        assert journal.durable == 1


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("mounting a small file system needs leave that this user does not have")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def fill(ballast: Path) -> None:
    with ballast.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)


async def test_a_disk_that_is_really_full_refuses_and_recovers(tiny_disk: Path) -> None:
    path, head, ballast = tiny_disk / "handrail.db", tiny_disk / "handrail.head", tiny_disk / "ballast"
    async with open_journal(path, head) as journal:
        await journal.committed(journal.append(daemon_stopped("before")))
        with pytest.raises(OSError, match="No space"):
            fill(ballast)
        error = await refused(journal, journal.append(daemon_stopped(LARGE)))
        assert "full" in error.reason
        ballast.unlink()
        with anyio.fail_after(10):
            seq = journal.append(daemon_stopped(LARGE))
            await journal.committed(seq)
        assert [entry.seq for entry in await journal.since(0)] == [1, seq]
    assert verify(path, head).ok


async def follow_until(journal: Journal, kind: str) -> list[Entry]:
    """All entries up to the first of this kind."""
    entries: list[Entry] = []
    with anyio.fail_after(10), anyio.CancelScope() as scope:

        async def take(more: Sequence[Entry]) -> None:
            entries.extend(more)
            if any(entry.event.kind == kind for entry in more):
                scope.cancel()

        await journal.follow(0, take)
    return entries


async def test_what_completes_an_event_on_disk_is_kept_as_soon_as_space_is_back(kept: JournalFiles) -> None:
    async with open_journal(kept.path, kept.head) as journal:
        opened = journal.append(call_opened())
        await journal.committed(opened)
        with files_no_larger_than(150_000):
            await refused(journal, journal.append(daemon_stopped(LARGE)))
            settled = journal.append(call_settled(), completes=opened)
            await refused(journal, journal.append(daemon_stopped(LARGE)))
            await refused(journal, settled)
        entries = await follow_until(journal, "CallSettled")
        assert [entry.event.kind for entry in entries] == ["CallOpened", "CallSettled"]
        assert entries[-1].seq > settled, "a number is never given twice"
    assert verify(kept.path, kept.head).ok


async def test_what_completes_a_lost_event_is_lost_with_it(kept: JournalFiles) -> None:
    async with open_journal(kept.path, kept.head) as journal:
        with files_no_larger_than(150_000):
            lost = journal.append(daemon_stopped(LARGE))
            await refused(journal, lost)
            await refused(journal, journal.append(daemon_stopped(LARGE), completes=lost))
        journal.append_again()
        with anyio.fail_after(10):
            await journal.committed(journal.append(daemon_stopped("after")))
        assert [getattr(entry.event, "why", "") for entry in await journal.since(0)] == ["after"]
