"""Journaling of terminal events, and reconciliation with the keeper after a restart.

Translates the callbacks of `Terminals` into events. It does not know how a change is detected, or who may
cause it.
"""

from handrail.keeper.protocol import Exit
from handrail.store.events import (
    TerminalAsked,
    TerminalEnded,
    TerminalForgotten,
    TerminalOpened,
    TerminalReleased,
    TerminalTaken,
    TerminalTyped,
    TerminalWentOn,
)
from handrail.store.journal import Journal
from handrail.store.records import Records
from handrail.store.terminals import TerminalRecord
from handrail.terminal.input.typing_history import RELEASED_BY
from handrail.terminal.terminal import InputRequest, PersonControl, Terminal
from handrail.terminal.terminals import Terminals

MOST_RUNNING = 10_000
"""Terminals examined after a restart; bounds the query."""
ALWAYS = 0
"""For `Journal.append`: no earlier event is needed, so the event is recorded whenever the disk has space again."""


class TerminalEvents:
    """Appends terminal events to the journal; a terminal belongs to the call that its note names.

    Programs with pipes are skipped: `agents/` journals their start and end.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def opened(self, terminal: Terminal) -> None:
        if terminal.pipes:
            return
        note = terminal.note
        self._journal.append(
            TerminalOpened(
                terminal=terminal.id,
                call=note.call,
                name=note.name,
                cwd=terminal.cwd,
                pid=terminal.pid,
                of=note.of,
                owner=note.owner,
                argv=terminal.argv,
                cols=terminal.size[0],
                rows=terminal.size[1],
                nonce=note.nonce,
            ),
            completes=ALWAYS,
        )

    def ended(self, terminal: Terminal) -> None:
        if terminal.pipes:
            return
        left = terminal.exit or Exit()
        self._journal.append(
            TerminalEnded(
                terminal=terminal.id,
                exit_code=left.code,
                signal=left.signal,
                bytes=terminal.tail.end,
                lost=left.lost is not None,
                cwd=terminal.seen.cwd if terminal.seen else None,
            ),
            completes=ALWAYS,
        )

    def typed(self, terminal: Terminal, by: str, person: bool, text: str | None, offset: int) -> None:
        self._journal.append(
            TerminalTyped(terminal=terminal.id, by=by, person=person, text=text, offset=offset)
        )

    def taken(self, terminal: Terminal) -> None:
        if terminal.taken is not None:
            by, holds = terminal.taken.by, terminal.taken.holds
            self._journal.append(TerminalTaken(terminal=terminal.id, by=by, holds=holds))

    def released(self, terminal: Terminal, by: str) -> None:
        self._journal.append(TerminalReleased(terminal=terminal.id, by=by))

    def asked(self, terminal: Terminal) -> None:
        asks = terminal.asks
        if asks is not None:
            self._journal.append(
                TerminalAsked(terminal=terminal.id, prompt=asks.prompt, sure=asks.sure, secret=asks.secret)
            )

    def went_on(self, terminal: Terminal) -> None:
        self._journal.append(TerminalWentOn(terminal=terminal.id))

    async def forgotten(self, terminal: str, why: str) -> None:
        """Returns when the event is committed: only then may the output be deleted."""
        await self._journal.committed(self._journal.append(TerminalForgotten(terminal=terminal, why=why)))

    async def catch_up(self, records: Records, terminals: Terminals) -> list[str]:
        """Update the records from the keeper's state, before anything relies on them.

        Returns the terminals that were lost with an earlier keeper.
        """
        lost: list[str] = []
        await self._note_unrecorded(records, terminals)
        await self._mark_agents_gone(records, terminals)
        for record in await records.terminals.find(running_only=True, limit=MOST_RUNNING):
            terminal = terminals.get(record.id)
            if terminal is None:  # it ended with a keeper that was lost
                lost.append(record.id)
                size = terminals.tail(record.id).end
                self._journal.append(
                    TerminalEnded(terminal=record.id, exit_code=None, signal=None, bytes=size, lost=True)
                )
            elif terminal.exit is None:
                self._restore_sharing(terminal, record)
        return lost

    async def _mark_agents_gone(self, records: Records, terminals: Terminals) -> None:
        """Mark the commands that hosted agents had started: these agents ended with their daemon."""
        for terminal in terminals.live.values():
            call = terminal.note.call if terminal.note.of == "command" else None
            if call is not None:
                history = await records.calls.get(call)
                terminal.agent_gone = history is not None and history.call.caller.thread is not None

    async def _note_unrecorded(self, records: Records, terminals: Terminals) -> None:
        """Record terminals whose daemon crashed before it could journal them."""
        for terminal in terminals.known:
            if await records.terminals.get(terminal.id) is None:
                self.opened(terminal)
                if terminal.exit is not None:
                    self.ended(terminal)
        await self._journal.committed(self._journal.head)

    def _restore_sharing(self, terminal: Terminal, record: TerminalRecord) -> None:
        """Restore who holds a terminal and its open question; a hold that only came from typing is released."""
        if record.taken_by is not None and terminal.taken is None:
            if record.taken_holds:
                terminal.taken = PersonControl(by=record.taken_by, holds=True)
            else:
                self.released(terminal, RELEASED_BY)
        if record.asked_at is not None and record.asked_sure is not None:
            terminal.asks = InputRequest(
                prompt=record.asked_prompt or "",
                sure=record.asked_sure,
                secret=record.asked_secret,
                since=record.asked_at / 1000,
            )
