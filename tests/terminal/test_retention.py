"""What is kept of ended terminals: too old goes, then the oldest until the rest fits, each with its reason."""

import os
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.support.keeper_terminals import all_output, running_keeper, until

from handrail.keeper.spool import Spool
from handrail.store.events import TerminalEnded, TerminalForgotten, TerminalOpened
from handrail.store.journal import Journal, open_journal
from handrail.store.records import Records, open_records
from handrail.terminal import retention
from handrail.terminal.retention import Retention
from handrail.terminal.terminals import Terminals

FOREVER = 36_500.0


@dataclass
class Shelf:
    """Ended terminals with output, and what was said of those let go."""

    journal: Journal
    records: Records
    terminals: Terminals
    spool: Path
    forgotten: dict[str, str] = field(default_factory=dict[str, str])

    async def hold(self, *sizes: int) -> None:
        """Terminals t0, t1 … that printed so much and ended, in this order."""
        for number, size in enumerate(sizes):
            await self.ended(f"t{number}", size)

    async def ended(self, id: str, size: int) -> None:
        spool = Spool(str(self.spool / id), 1 << 20)
        spool.append(memoryview(b"x" * size))
        spool.close()
        self.journal.append(TerminalOpened(terminal=id, call=None, name="sh", cwd="/", pid=1))
        end = TerminalEnded(terminal=id, exit_code=0, signal=None, bytes=size)
        await self.journal.committed(self.journal.append(end))

    async def prune(self, keep_days: float = FOREVER, keep_bytes: int = 1 << 40) -> None:
        await Retention(self.records, self.terminals, self.spool, keep_days, keep_bytes, self._forget).prune()

    async def _forget(self, id: str, why: str) -> None:
        assert (self.spool / id).exists(), "it is written down first"
        self.forgotten[id] = why
        await self.journal.committed(self.journal.append(TerminalForgotten(terminal=id, why=why)))

    def kept(self) -> set[str]:
        return {path.name for path in self.spool.iterdir()}


@asynccontextmanager
async def shelf(home: Path) -> AsyncGenerator[Shelf]:
    database = home / "x.db"
    async with (
        running_keeper(home) as scene,
        open_journal(database, home / "x.head") as journal,
        open_records(database) as records,
    ):
        yield Shelf(journal, records, scene.terminals, scene.places.spool)


async def test_what_is_within_the_limits_stays(home: Path) -> None:
    async with shelf(home) as here:
        await here.hold(100, 200)
        await here.prune()
        assert (here.kept(), here.forgotten) == ({"t0", "t1"}, {})


async def test_the_oldest_go_first_until_the_rest_fits(home: Path) -> None:
    async with shelf(home) as here:
        await here.hold(5_000, 4_000, 3_000, 2_000)
        await here.prune(keep_bytes=6_000)
        assert here.kept() == {"t2", "t3"}
        assert list(here.forgotten) == ["t0", "t1"]
        assert "more than 6,000 bytes" in here.forgotten["t0"]
        record = await here.records.terminals.get("t0")
        assert record is not None
        assert (record.forgotten_at is not None, record.bytes) == (True, 5_000)
        assert here.terminals.tail("t0").end == 0


async def test_what_is_too_old_goes_however_small(home: Path) -> None:
    async with shelf(home) as here:
        await here.hold(10)
        await here.prune(keep_days=1e-9)
        assert here.kept() == set()
        assert "days ago" in here.forgotten["t0"]


async def test_what_runs_or_has_just_ended_is_left_alone(home: Path) -> None:
    async with shelf(home) as here:
        running = await here.terminals.open(("sh", "-c", "echo running; sleep 1000"), "/", dict(os.environ))
        await until(lambda: running.tail.end > 0)
        ended = await here.terminals.open(("echo", "ended"), "/", dict(os.environ))
        await all_output(ended)
        for name in (running.id, ended.id):
            here.journal.append(TerminalOpened(terminal=name, call=None, name="sh", cwd="/", pid=1))
        end = TerminalEnded(terminal=ended.id, exit_code=0, signal=None, bytes=6)
        await here.journal.committed(here.journal.append(end))
        await here.prune(keep_days=1e-9, keep_bytes=0)
        assert (here.kept(), here.forgotten) == ({running.id, ended.id}, {})


async def test_an_ended_terminal_is_let_go_of_once_it_is_written_down_and_its_output_stays(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "LINGER", -1.0)
    async with shelf(home) as here:
        ended = await here.terminals.open(("echo", "ended"), "/", dict(os.environ))
        await all_output(ended)
        here.journal.append(TerminalOpened(terminal=ended.id, call=None, name="sh", cwd="/", pid=1))
        await here.prune()
        assert here.terminals.get(ended.id) is not None
        end = TerminalEnded(terminal=ended.id, exit_code=0, signal=None, bytes=7)
        await here.journal.committed(here.journal.append(end))
        await here.prune()
        assert here.terminals.get(ended.id) is None
        assert here.terminals.left(ended.id) is ended
        assert here.terminals.tail(ended.id).read(0)[0] == b"ended\r\n"
        await here.prune(keep_bytes=0)
        assert here.terminals.left(ended.id) is None


async def test_output_that_no_record_leads_to_goes_when_it_is_old(home: Path) -> None:
    async with shelf(home) as here:
        for name in ("fresh", "stale"):
            (here.spool / name).mkdir()
        long_ago = time.time() - 40 * retention.DAY
        os.utime(here.spool / "stale", (long_ago, long_ago))
        await here.prune(keep_days=30)
        assert (here.kept(), here.forgotten) == ({"fresh"}, {})


async def test_what_was_written_down_as_gone_and_is_still_there_goes_the_next_time(home: Path) -> None:
    async with shelf(home) as here:
        await here.hold(10)
        told = TerminalForgotten(terminal="t0", why="too old")
        await here.journal.committed(here.journal.append(told))
        await here.prune()
        assert (here.kept(), here.forgotten) == (set(), {})
