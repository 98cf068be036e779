"""What a compaction removes, what it keeps, and that the chain is verified across it."""

import random
import sqlite3
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from tests.support.sample_events import (
    JournalFiles,
    approval_allowed,
    approval_opened,
    call_opened,
    call_settled,
    call_started,
    caller,
    daemon_stopped,
    endless_writer,
)

from handrail.store import journal_compaction
from handrail.store.database import open_reader
from handrail.store.events import (
    CallOpened,
    CallSettled,
    CredentialIssued,
    Event,
    FilesRestored,
    FolderTrusted,
    OperationEnded,
    OperationOpened,
    PolicyAccepted,
    RuleAdded,
    TerminalEnded,
    TerminalForgotten,
    TerminalOpened,
    TerminalTyped,
    ThreadDeleted,
    ThreadOpened,
    encode,
)
from handrail.store.hash_chain import Link, payload_hash
from handrail.store.integrity import check_compactions, has_event, verify
from handrail.store.journal import Journal, open_journal
from handrail.store.journal_compaction import AlteredEvent, JournalCompacted, find_unannounced, read_gaps
from handrail.store.journal_retention import JournalRetention
from handrail.store.records import open_records
from handrail.store.rule_replay import replay_rules
from handrail.store.search_index import open_index
from handrail.store.values import FileChange, Receipt, Rule

KILLS = 8
NOW = -2e-8
"""A number of days that makes every event old, one of this very millisecond too."""


class Keeper:
    """The keeper's memory of head and announced compaction."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.answers = True
        self.head: Link | None = None
        self.announced: bytes | None = None

    async def store_head(self) -> Link | None:
        self.head = self.journal.link if self.answers else None
        return self.head

    async def announce(self, payload_hash: bytes) -> bool:
        self.announced = payload_hash
        return self.answers


@asynccontextmanager
async def journal_with(kept: JournalFiles, *events: Event) -> AsyncGenerator[Journal]:
    async with open_journal(kept.path, kept.head) as journal:
        for event in (*events, daemon_stopped("the newest event stays")):
            journal.append(event)
        await journal.committed(journal.head)
        yield journal


async def compact(
    journal: Journal, kept: JournalFiles, keep_days: float = NOW, anchors: Path = Path("/nonexistent")
) -> int:
    keeper = Keeper(journal)
    retention = JournalRetention(journal, kept.path, keep_days, keeper.store_head, keeper.announce, anchors)
    return await retention.compact()


def call(id: str, thread: str | None = None) -> Iterator[Event]:
    who = replace(caller(), thread=thread, operation=None)
    yield CallOpened(call=id, tool="read_file", title=f"read {id}", input={}, caller=who)
    yield call_started(id)
    yield settled(id)


def settled(id: str, stopped: bool = True) -> CallSettled:
    return replace(call_settled(id), receipt=Receipt(ended_by="ann", stopped=stopped))


def command(id: str, terminal: str) -> Iterator[Event]:
    opened, started, end = call(id)
    yield opened
    yield started
    yield TerminalOpened(terminal=terminal, call=id, name="make", cwd="/w", pid=1)
    yield TerminalTyped(terminal=terminal, by="ann", person=True, text="y", offset=0)
    yield TerminalEnded(terminal=terminal, exit_code=0, signal=None, bytes=10)
    yield end


def rule_added(id: str) -> RuleAdded:
    return RuleAdded(rule=Rule(id=id, effect="allow", tool="read_file"), by="ann")


def count(kept: JournalFiles, table: str, where: str = "1") -> int:
    with closing(sqlite3.connect(kept.path)) as connection:
        return int(connection.execute(f"SELECT count(*) FROM {table} WHERE {where}").fetchone()[0])


def change(kept: JournalFiles, *statements: str) -> None:
    """Write to the database as a process with the user's rights can."""
    with closing(sqlite3.connect(kept.path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def dangling(kept: JournalFiles) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(kept.path)) as connection:
        return connection.execute("PRAGMA foreign_key_check").fetchall()


async def test_old_calls_go_and_the_chain_stays_whole(kept: JournalFiles) -> None:
    async with journal_with(kept, *call("c1"), *call("c2")) as journal:
        assert await compact(journal, kept) == 6
        journal.append(daemon_stopped())
        await journal.committed(journal.head)
        async with open_records(kept.path) as records:
            assert await records.calls.find() == []
    verdict = verify(kept.path, kept.head)
    assert verdict.ok
    assert verdict.compacted == 6
    assert "6 older events were compacted" in str(verdict)
    assert dangling(kept) == []


async def test_nothing_goes_that_is_younger(kept: JournalFiles) -> None:
    async with journal_with(kept, *call("c1")) as journal:
        assert await compact(journal, kept, keep_days=1) == 0
    assert verify(kept.path, kept.head).compacted == 0


async def test_rules_trust_credentials_and_accepted_policies_stay(kept: JournalFiles) -> None:
    stays = (
        rule_added("r1"),
        FolderTrusted(folder="/w", config=None, by="ann"),
        CredentialIssued(credential="k1", name="zed", workspace="/w", sha256="0"),
        PolicyAccepted(by="ann", changes=()),
    )
    events = [event for number, one in enumerate(stays) for event in (*call(f"c{number}"), one)]
    async with journal_with(kept, *events) as journal:
        before = replay_rules(kept.path)
        assert await compact(journal, kept) == 12
    assert replay_rules(kept.path) == before
    assert before.faults == ()
    assert [each.rule.id for each in before.rules] == ["r1"]
    assert len(before.folders) == 1
    assert verify(kept.path, kept.head).ok
    assert count(kept, "compacted") == 4


async def test_what_is_open_stays(kept: JournalFiles) -> None:
    opened, started, _ = call("unsettled")
    unstopped = (*call("unstopped"),)[:2]
    running = (*command("running", "t1"),)[:-2]
    waiting = (call_opened("waiting"), approval_opened("a1", "waiting"))
    operation = OperationOpened(operation="o1", caller=caller())
    stays = (opened, started, *unstopped, settled("unstopped", stopped=False), *running, *waiting, operation)
    async with journal_with(kept, *call("gone"), *stays) as journal:
        assert await compact(journal, kept) == 3
        async with open_records(kept.path) as records:
            assert {record.id for record in await records.calls.find()} == {
                "unsettled",
                "unstopped",
                "running",
                "waiting",
            }
            approval = await records.approvals.get("a1")
            assert approval is not None
            assert approval.why == "no rule allows it"
            assert len(await records.terminals.typed("t1")) == 1
    assert count(kept, "operations") == 1
    assert verify(kept.path, kept.head).ok


async def test_a_thread_keeps_its_calls_until_it_is_deleted(kept: JournalFiles) -> None:
    thread = ThreadOpened(thread="t1", workspace="/w", title="Mine", agent="zed", by="ann")
    who = replace(caller(), thread="t1", operation="o1")
    operation = (
        OperationOpened(operation="o1", caller=who),
        *call("c1", thread="t1"),
        OperationEnded(operation="o1", cancelled_by=None),
    )
    undo = FilesRestored(
        undo="u1", calls=("c1",), files=(FileChange(path="/w/a", before=None, after="0"),), by="ann"
    )
    async with journal_with(kept, thread, *operation, undo) as journal:
        assert await compact(journal, kept) == 0
        journal.append(ThreadDeleted(thread="t1", by="ann"))
        journal.append(daemon_stopped())
        await journal.committed(journal.head)
        # the thread, its operation and calls, the undo, the deletion, the first event that was the newest
        assert await compact(journal, kept) == 9
    assert [count(kept, table) for table in ("calls", "operations", "undos", "file_changes")] == [0, 0, 0, 0]
    assert verify(kept.path, kept.head).ok
    assert dangling(kept) == []


async def test_a_command_stays_until_its_output_is_deleted(kept: JournalFiles) -> None:
    async with journal_with(kept, *command("c1", "t1")) as journal:
        assert await compact(journal, kept) == 0
        journal.append(TerminalForgotten(terminal="t1", why="old"))
        journal.append(daemon_stopped())
        await journal.committed(journal.head)
        assert await compact(journal, kept) == 8
    assert [count(kept, table) for table in ("calls", "terminals", "typed")] == [0, 0, 0]


async def test_batches_join_to_one_gap(kept: JournalFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_compaction, "BATCH", 4)
    events = [event for number in range(10) for event in call(f"c{number}")]
    async with journal_with(kept, *events) as journal:
        assert await compact(journal, kept) == 31
        with closing(open_reader(kept.path)) as connection:
            (gap,) = read_gaps(connection)
        assert (gap.first, gap.last, gap.events) == (1, 31, 31)
        # The events of the other batches are old too, and no longer needed.
        assert await compact(journal, kept) == 8
    assert verify(kept.path, kept.head).ok
    assert count(kept, "compacted") == 1


async def test_an_event_that_an_administrator_knows_stays(kept: JournalFiles, tmp_path: Path) -> None:
    anchors = tmp_path / "heads"
    async with journal_with(kept, *call("c1"), *call("c2")) as journal:
        with closing(open_reader(kept.path)) as connection:
            chain = connection.execute("SELECT chain FROM events WHERE seq = 3").fetchone()[0]
        removed = await compact_with_anchor(journal, kept, anchors, Link(3, chain))
    assert removed == 5
    assert has_event(kept.path, Link(3, chain))


async def compact_with_anchor(journal: Journal, kept: JournalFiles, anchors: Path, link: Link) -> int:
    def read_anchors(_folder: Path) -> list[Link]:
        return [link]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("handrail.store.journal_retention.read_anchors", read_anchors)
        return await compact(journal, kept, anchors=anchors)


async def test_an_altered_event_stays_as_evidence(kept: JournalFiles) -> None:
    async with journal_with(kept, *call("c1"), *call("c2")) as journal:
        change(kept, "UPDATE events SET payload = replace(payload, 'c1', 'c3') WHERE seq = 2")
        with pytest.raises(AlteredEvent):
            await compact(journal, kept)
    assert count(kept, "events") == 7


async def test_removed_events_are_found(kept: JournalFiles) -> None:
    async with journal_with(kept, *call("c1"), *call("c2"), *call("c3")) as journal:
        await compact(journal, kept)
        journal.append(rule_added("r1"))
        await journal.committed(journal.head)
    change(kept, "DELETE FROM events WHERE kind = 'DaemonStopped'")
    assert not verify(kept.path, kept.head).ok


async def test_a_forged_gap_is_found_and_never_taken_up(kept: JournalFiles) -> None:
    async with journal_with(kept, *call("c1"), *call("c2"), rule_added("r1")) as journal:
        change(
            kept,
            "INSERT INTO compacted SELECT 1, 3, lower(hex(chain)), 3, 7 FROM events WHERE seq = 3",
            "DELETE FROM calls WHERE id = 'c1'",
            "DELETE FROM events WHERE seq <= 3",
        )
        verdict = verify(kept.path, kept.head)
        assert not verdict.ok
        assert "no later event records their compaction" in str(verdict)
        with pytest.raises(AlteredEvent):
            await compact(journal, kept)


async def test_a_compaction_without_announcement_is_a_fault(kept: JournalFiles) -> None:
    event = JournalCompacted(before=1, events=0, gaps=())
    async with journal_with(kept) as journal:
        head = journal.link
        await journal.committed(journal.append(event))
    announced = payload_hash(encode(event)[1])
    assert check_compactions(kept.path, head, announced) == ()
    assert len(check_compactions(kept.path, head, None)) == 1
    assert len(check_compactions(kept.path, head, payload_hash("another"))) == 1


async def test_nothing_goes_without_a_keeper(kept: JournalFiles) -> None:
    async with journal_with(kept, *call("c1")) as journal:
        keeper = Keeper(journal)
        keeper.answers = False
        retention = JournalRetention(
            journal, kept.path, NOW, keeper.store_head, keeper.announce, Path("/nonexistent")
        )
        assert await retention.compact() == 0
    assert count(kept, "events") == 4


async def test_the_keeper_knows_head_and_compaction_beforehand(kept: JournalFiles) -> None:
    async with journal_with(kept, *call("c1"), approval_allowed()) as journal:
        keeper = Keeper(journal)
        retention = JournalRetention(
            journal, kept.path, NOW, keeper.store_head, keeper.announce, Path("/nonexistent")
        )
        assert await retention.compact() == 4
        assert keeper.head is not None
        assert has_event(kept.path, keeper.head)
        with closing(open_reader(kept.path)) as connection:
            assert find_unannounced(connection, keeper.head.seq, keeper.announced) == []


@pytest.mark.timeout(120)
def test_a_compaction_survives_kills_at_any_point(kept: JournalFiles) -> None:
    chance = random.Random(7)
    for _ in range(KILLS):
        head, announced = memory_until_killed(kept, chance.randint(20, 120))
        verdict = verify(kept.path, kept.head)
        assert verdict.ok, str(verdict)
        assert has_event(kept.path, head)
        assert check_compactions(kept.path, head, announced) == ()
        assert dangling(kept) == []
    assert verify(kept.path, kept.head).compacted > 0


def memory_until_killed(kept: JournalFiles, lines: int) -> tuple[Link, bytes | None]:
    """Let a process compact, and kill it after so many lines; return the head and the hash that it printed last."""
    child = endless_writer("compaction", kept)
    assert child.stdout is not None
    with child.stdout as output:
        printed = [output.readline() for _ in range(lines)]
        child.kill()
        printed += output.read().splitlines(keepends=True)
    child.wait(timeout=10)
    words = [line.decode().split() for line in printed if line.endswith(b"\n")]
    heads = [Link(int(line[1]), bytes.fromhex(line[2])) for line in words if line[0] == "head"]
    announced = [bytes.fromhex(line[1]) for line in words if line[0] == "announced"]
    return heads[-1], announced[-1] if announced else None


async def test_the_search_forgets_compacted_calls(kept: JournalFiles, tmp_path: Path) -> None:
    async with (
        journal_with(kept, *call("unforgettable")) as journal,
        open_records(kept.path) as records,
        open_index(tmp_path / "words.db", journal, records) as index,
        anyio.create_task_group() as group,
    ):
        group.start_soon(index.run)
        with anyio.fail_after(10):
            await index.wait_indexed(journal.durable)
            assert len((await index.search("unforgettable")).hits) == 1
            await compact(journal, kept)
            await index.wait_indexed(journal.durable)
            await journal.committed(journal.append(daemon_stopped()))
            await index.wait_indexed(journal.durable)
        group.cancel_scope.cancel()
    with closing(sqlite3.connect(tmp_path / "words.db")) as connection:
        assert connection.execute("SELECT count(*) FROM texts").fetchone()[0] == 0
