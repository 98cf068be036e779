"""Look up a terminal, running or ended, and check how it relates to the caller."""

import os
from contextlib import suppress

from handrail.gate.tool import Refusal
from handrail.lazy_dataclass import dataclass
from handrail.store.records import Records
from handrail.store.terminals import TerminalRecord
from handrail.store.values import Caller, Claim, Owner, TerminalKind
from handrail.terminal.keeper_client import KeeperError
from handrail.terminal.output.tail import Tail
from handrail.terminal.terminal import Exit, Terminal
from handrail.terminal.terminals import Terminals
from handrail.tools.results import printable_line

NOBODY = Owner(person=False, name="")


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTerminal:
    """A running or ended terminal. `live` is set while the daemon holds it, even shortly after its exit."""

    id: str
    name: str
    of: TerminalKind
    owner: Owner
    argv: tuple[str, ...]
    nonce: str
    pid: int
    size: tuple[int, int]
    call: str | None
    opened_at: int
    """Milliseconds since 1970."""
    cwd: str
    """The shell's present folder, as far as known."""
    tail: Tail
    exit: Exit | None
    live: Terminal | None = None
    forgotten: bool = False
    """Its output was deleted by the retention settings."""
    typed_to: int | None = None
    """Output offset at the last input; -1 when there was none, None when unknown."""

    @property
    def running(self) -> Terminal | None:
        return self.live if self.exit is None else None


async def find(terminals: Terminals, records: Records, id: str) -> FoundTerminal:
    """Look up a terminal by id. Raises Refusal when the id is unknown."""
    at_hand = terminals.get(id) or terminals.left(id)
    if at_hand is not None:
        return of_terminal(at_hand)
    record = await records.terminals.get(id)
    if record is None:
        raise Refusal(
            f"There is no terminal {printable_line(id)}. list_tracked_terminals names the ones there are."
        )
    return of_record(record, terminals.tail(record.id))


def of_terminal(terminal: Terminal) -> FoundTerminal:
    note, seen = terminal.note, terminal.seen
    never = None if terminal.adopted else -1
    return FoundTerminal(
        id=terminal.id,
        name=note.name,
        of=note.of,
        owner=note.owner,
        argv=terminal.argv,
        nonce=note.nonce,
        pid=terminal.pid,
        size=terminal.size,
        call=note.call,
        opened_at=round(terminal.created_at * 1000),
        cwd=(seen and seen.cwd) or terminal.cwd,
        tail=terminal.tail,
        exit=terminal.exit,
        live=terminal,
        typed_to=never if terminal.last_input is None else terminal.last_input,
    )


def of_record(record: TerminalRecord, tail: Tail) -> FoundTerminal:
    lost = "it ended with the keeper" if record.lost else None
    return FoundTerminal(
        id=record.id,
        name=record.name,
        of=record.of,
        owner=record.owner or NOBODY,
        argv=record.argv,
        nonce=record.nonce,
        pid=record.pid,
        size=(record.cols, record.rows),
        call=record.call,
        opened_at=record.opened_at,
        cwd=record.cwd,
        tail=tail,
        exit=Exit(record.exit_code, record.signal, lost),
        forgotten=record.forgotten_at is not None,
        typed_to=-1 if record.typed_to is None else record.typed_to,
    )


async def look(known: FoundTerminal) -> FoundTerminal:
    """Refresh the state of a running terminal: foreground program and folder."""
    if known.running is None:
        return known
    with suppress(KeeperError):  # the terminal or its keeper has just ended
        await known.running.look()
    return of_terminal(known.running)


def is_own(known: FoundTerminal, caller: Caller) -> bool:
    """Whether an agent of the caller's workspace opened it."""
    return not known.owner.person and _is_same(known.owner.workspace, caller.workspace)


def is_inside(known: FoundTerminal, caller: Caller) -> bool:
    """Whether it belongs to the caller's workspace: opened from there, or its shell is there now."""
    return _is_same(known.owner.workspace, caller.workspace) or _is_beneath(known.cwd, caller.workspace)


def reading_claim(known: FoundTerminal, caller: Caller) -> Claim:
    """The claim of reading its output."""
    return Claim(action="read", resource=f"terminal {known.id}", inside=is_inside(known, caller))


def describe_exit(exit: Exit | None) -> str:
    if exit is None:
        return "running"
    if exit.lost:
        return f"ended, how is unknown: {exit.lost}"
    return f"exit code {exit.code}" if exit.code is not None else f"ended by {exit.signal}"


def refuse_ended(known: FoundTerminal) -> Refusal:
    """The refusal to type into a terminal that has ended."""
    return Refusal(
        f"Terminal {known.id} has ended ({describe_exit(known.exit)}), so nothing can be typed into it. get_terminal_buffer "
        "still reads its output; create_tracked_terminal opens another."
    )


def _is_same(one: str | None, other: str | None) -> bool:
    if one is None or other is None:
        return False
    return one == other or os.path.realpath(one) == os.path.realpath(other)


def _is_beneath(path: str, root: str | None) -> bool:
    if root is None:
        return False
    path, root = os.path.realpath(path), os.path.realpath(root)
    return path == root or path.startswith(root.rstrip("/") + "/")
