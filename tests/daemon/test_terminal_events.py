"""What becomes of terminals is written down, and known again by the daemon after this one."""

import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest
from tests.support.keeper_terminals import BOUND, ENV, until

from handrail.daemon.terminal_events import TerminalEvents
from handrail.paths import Places
from handrail.store.events import Event, TerminalOpened, TerminalReleased
from handrail.store.journal import Journal, open_journal
from handrail.store.records import Records, open_records
from handrail.store.values import Owner
from handrail.terminal.keeper_client import Keeper
from handrail.terminal.terminal import InputSender, Terminal, TerminalNote
from handrail.terminal.terminals import Terminals
from handrail.terminal.wait.input_detection import InputDetector

pytestmark = pytest.mark.anyio

ANN = InputSender(person=True, name="ann")
NOTE = TerminalNote(
    of="tracked", name="build", owner=Owner(person=False, name="zed", workspace="/w"), nonce="n1"
)
GIVES_UP = """
import signal, time
def give_up(*_): raise TimeoutError
signal.signal(signal.SIGUSR1, give_up)
try: input("Name? ")
except TimeoutError: time.sleep(1000)
"""


@dataclass
class Life:
    """One daemon's life with its terminals."""

    journal: Journal
    records: Records
    terminals: Terminals

    async def open(self, *argv: str) -> Terminal:
        return await self.terminals.open(argv, "/", ENV, (100, 30), note=NOTE)

    async def events(self) -> list[Event]:
        await self.journal.committed(self.journal.head)
        return [entry.event for entry in await self.journal.since(0)]


@asynccontextmanager
async def life(home: Path, *, writes: bool = True, last: bool = False) -> AsyncGenerator[Life]:
    """Until it is left, terminals running; the `last` one ends them. One that does not `write` dies too early to."""
    places = Places.under(home)
    places.make()
    async with (
        open_journal(home / "x.db", home / "x.head") as journal,
        open_records(home / "x.db") as records,
    ):
        keeper, watch = Keeper(places, idle_seconds=30.0), TerminalEvents(journal)
        told = (
            {
                "opened": watch.opened,
                "ended": watch.ended,
                "typed": watch.typed,
                "taken": watch.taken,
                "released": watch.released,
                "asked": watch.asked,
                "went_on": watch.went_on,
            }
            if writes
            else {}
        )
        terminals = Terminals(keeper, places.spool, **told)  # pyright: ignore[reportArgumentType]
        async with anyio.create_task_group() as group:
            with anyio.fail_after(BOUND):
                await group.start(keeper.run)
                await watch.catch_up(records, terminals)
            group.start_soon(terminals.run)
            group.start_soon(InputDetector(terminals).run)
            try:
                yield Life(journal, records, terminals)
            finally:
                with anyio.CancelScope(shield=True), anyio.move_on_after(BOUND):
                    if last:
                        await keeper.shutdown(0.0)
                    await journal.committed(journal.head)
                group.cancel_scope.cancel()


async def test_a_terminal_is_written_down_with_what_its_note_says(home: Path) -> None:
    async with life(home, last=True) as here:
        terminal = await here.open("cat")
        await until(lambda: terminal.asks is not None)
        await terminal.type(b"hello\r", ANN)
        terminal.release("ann")
        await until(lambda: here.journal.head >= 5)
        opened, asked, *rest = await here.events()
        assert opened == TerminalOpened(
            terminal=terminal.id,
            call=None,
            name="build",
            cwd="/",
            pid=terminal.pid,
            of="tracked",
            owner=NOTE.owner,
            argv=("cat",),
            cols=100,
            rows=30,
            nonce="n1",
        )
        assert asked.kind == "TerminalAsked"
        assert {event.kind for event in rest} >= {"TerminalTaken", "TerminalTyped", "TerminalReleased"}


async def test_who_held_a_terminal_holds_it_after_a_restart(home: Path) -> None:
    async with life(home) as here:
        (await here.open("sleep", "1000")).take("ann", holds=True)
    async with life(home, last=True) as here:
        (terminal,) = here.terminals.known
        assert terminal.taken is not None
        assert (terminal.taken.by, terminal.taken.holds) == ("ann", True)
        assert terminal.note == NOTE


async def test_who_only_typed_has_it_no_longer_after_a_restart(home: Path) -> None:
    async with life(home) as here:
        terminal = await here.open("sleep", "1000")
        await terminal.type(b"x", ANN)
    async with life(home, last=True) as here:
        (terminal,) = here.terminals.known
        assert terminal.taken is None
        assert TerminalReleased(terminal=terminal.id, by="Handrail") in await here.events()
        record = await here.records.terminals.get(terminal.id)
        assert record is not None
        assert record.taken_by is None


async def test_what_asked_still_asks_after_a_restart_and_is_told_once(home: Path) -> None:
    async with life(home) as here:
        asking = await here.open("bash", "-c", "read -p 'Name? ' x")
        await until(lambda: asking.asks is not None)
    async with life(home, last=True) as here:
        (terminal,) = here.terminals.known
        assert terminal.asks is not None
        assert terminal.asks.prompt == "Name?"
        await until(lambda: terminal.seen is not None)
        seen = terminal.seen
        await until(lambda: terminal.seen is not seen)
        assert terminal.asks is not None
        assert [event.kind for event in await here.events()].count("TerminalAsked") == 1


async def test_what_asked_and_was_answered_while_no_daemon_ran_went_on(home: Path) -> None:
    async with life(home) as here:
        asking = await here.open(sys.executable, "-c", GIVES_UP)
        await until(lambda: asking.asks is not None)
    os.kill(asking.pid, signal.SIGUSR1)
    async with life(home, last=True) as here:
        (terminal,) = here.terminals.known
        await until(lambda: terminal.asks is None)
        assert (await here.events())[-1].kind == "TerminalWentOn"


async def test_a_terminal_whose_daemon_died_before_it_wrote_it_down_is_known_by_its_note(home: Path) -> None:
    async with life(home, writes=False) as here:
        running, ended = await here.open("sleep", "1000"), await here.open("true")
        with anyio.fail_after(BOUND):
            await ended.wait()
    async with life(home, last=True) as here:
        found = await here.records.terminals.get(running.id)
        assert found is not None
        assert (found.name, found.owner, found.of, found.nonce) == ("build", NOTE.owner, "tracked", "n1")
        other = await here.records.terminals.get(ended.id)
        assert other is not None
        assert (other.exit_code, other.ended_at is not None) == (0, True)


async def test_a_terminal_that_ended_with_its_keeper_is_written_down_as_lost(home: Path) -> None:
    async with life(home) as here:
        terminal = await here.open("sleep", "1000")
    async with life(home, writes=False, last=True):
        pass
    async with life(home, last=True) as here:
        await here.events()
        record = await here.records.terminals.get(terminal.id)
        assert record is not None
        assert (record.lost, record.exit_code, record.ended_at is not None) == (True, None, True)


async def test_where_a_terminal_was_last_is_kept_after_its_end(tmp_path: Path) -> None:
    async with life(tmp_path, last=True) as now:
        terminal = await now.open("sh", "-c", "cd /usr && echo there && read line")
        await until(lambda: terminal.tail.end > 0)
        await terminal.look()
        await terminal.type(b"\r", ANN)
        with anyio.fail_after(BOUND):
            await terminal.wait()
        await now.events()
        record = await now.records.terminals.get(terminal.id)

    assert record is not None
    assert record.cwd == "/usr"


async def test_a_program_with_pipes_is_no_terminal_to_be_written_down(home: Path) -> None:
    async with life(home) as here:
        terminal, descriptors = await here.terminals.open_pipes(("sleep", "1000"), "/", ENV)
        for descriptor in descriptors:
            os.close(descriptor)
        assert await here.events() == []
    async with life(home, last=True) as here:
        assert [known.id for known in here.terminals.known] == [terminal.id]
        assert await here.records.terminals.get(terminal.id) is None
        assert await here.events() == []
