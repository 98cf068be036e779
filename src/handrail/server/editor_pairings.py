"""Editors that may decide for a person, each after a one-time question: the pairing.

A pairing is bound to the editor's process (pid and start time). The question shows that process and a number, which the
editor shows too. A person answers it on the page or on the command line. An editor that is not paired may watch.
"""

import json
import secrets
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal

from handrail.errors import Conflict
from handrail.gate.call import new_id
from handrail.lazy_dataclass import dataclass
from handrail.server.access import Access
from handrail.server.api.models import now_ms
from handrail.store.actor import EDITOR, Actor
from handrail.store.bell import Bell
from handrail.store.events import EditorPaired, EditorRefused, EditorRevoked
from handrail.store.journal import Journal
from handrail.terminal.editor_process import EditorProcess, Relation, find_editor_process, is_running
from handrail.terminal.person_check import DoorLaunchers, Identity

MOST_WAITING = 5
"""Open pairing questions. More could not be told apart by a person, and a program that asks in a loop is stopped here."""
MOST_KNOWN = 50
"""Pairings and refusals that the keeper remembers: bounds its memory."""

TOO_MANY = (
    f"{MOST_WAITING} editors wait to be paired, which is the most. Answer them with `handrail editors`, then reload this "
    "window."
)
REFUSED = "You let this editor only watch. `handrail editors pair {id}` pairs it; its number is {number}."
WAITING = (
    "This editor only watches until you pair it: compare the number {number} on Handrail's page, or run `handrail editors "
    "pair {id}` in a terminal of your own."
)
LAUNCHED_DOOR = (
    "This editor has itself started `handrail mcp` or a hook, so its processes count as an agent and it only watches. Remove "
    "Handrail from the editor's own MCP settings (the extension registers it over HTTP), and restart the editor."
)

State = Literal["waiting", "paired", "refused"]


class UnknownEditor(Exception):
    """There is no such editor, or it has exited."""

    def __init__(self, id: str) -> None:
        super().__init__(
            f"There is no editor {id}; it may have exited. `handrail editors` lists those that run."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """A running editor and the person's answer about it."""

    id: str
    process: EditorProcess
    workspace: str
    """The folder that the editor has open, as it says."""
    number: int
    """Shown by the editor and in the question, to be compared by the person."""
    state: State
    since: int
    """When it asked, or was answered, in milliseconds since 1970."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What the holder of a connection may do now."""

    decides: bool
    why: str = ""
    """Why it may only watch, as a sentence."""
    pairing: Pairing | None = None


class EditorConnection:
    """One connection of an editor."""

    def __init__(self, find: Callable[[], Standing], bell: Bell) -> None:
        self._find = find
        self._bell = bell

    @property
    def standing(self) -> Standing:
        """Checked again each time: a person may have answered, or the editor may have started an agent."""
        return self._find()

    async def changed(self, known: Standing) -> Standing:
        """Wait until the standing is not `known` any more; returns the new one."""
        while True:
            rung = self._bell.next()
            standing = self._find()
            if standing != known:
                return standing
            await rung.wait()


class EditorPairings:
    """The editors that run, and whether each may decide."""

    def __init__(self, journal: Journal, access: Access, launchers: DoorLaunchers, kept: bytes = b"") -> None:
        """`kept` is what `keep` was called with before a restart."""
        self._journal = journal
        self._access = access
        self._launchers = launchers
        self._pairings: dict[Identity, Pairing] = _load(kept)
        self._open: dict[Identity, int] = {}
        self.bell = Bell()
        """Rings after each change."""
        self.keep: Callable[[bytes], None] = lambda _blob: None
        """Called with the serialised answers after each change. The keeper holds them for the next daemon."""
        launchers.on_change.append(self.bell.ring)

    @property
    def current(self) -> list[Pairing]:
        """The editors that run, oldest first."""
        self._forget_exited()
        return list(self._pairings.values())

    def count_connections(self, pairing: Pairing) -> int:
        return self._open.get(pairing.process.identity, 0)

    @contextmanager
    def connect_extension(
        self, connection: socket.socket, workspace: str, claimed_parent: int = 0
    ) -> Generator[EditorConnection]:
        """The connection of an extension host: the editor is the parent of the peer."""
        with self._connect(connection, "parent", workspace, claimed_parent) as editor:
            yield editor

    @contextmanager
    def connect_agent_host(self, connection: socket.socket, workspace: str) -> Generator[EditorConnection]:
        """The connection of an editor's agent host client: the editor is the peer itself."""
        with self._connect(connection, "peer", workspace, 0) as editor:
            yield editor

    async def pair(self, id: str, number: int, by: Actor) -> None:
        """Let an editor decide. `number` is the one that the person saw; raises Conflict if it is another one now."""
        pairing = self._find(id)
        if by == EDITOR:
            raise Conflict(
                "An editor cannot pair another one. Do it on the page, or with `handrail editors`."
            )
        if pairing.number != number:
            raise Conflict(f"Editor {id} does not show {number}. Compare the number in its window again.")
        event = EditorPaired(editor=id, by=str(by), **_facts(pairing))
        await self._journal.committed(self._journal.append(event))
        self._set_state(self._find(id), "paired")

    async def refuse(self, id: str, by: Actor) -> None:
        """Let an editor only watch, from now on, and not ask again. Takes a pairing back."""
        pairing = self._find(id)
        event = EditorRefused(editor=id, by=str(by), **_facts(pairing))
        if pairing.state == "paired":
            event = EditorRevoked(editor=id, by=str(by))
        self._set_state(pairing, "refused")
        await self._journal.committed(self._journal.append(event))

    def _set_state(self, pairing: Pairing, state: State) -> None:
        self._pairings[pairing.process.identity] = replace(pairing, state=state, since=now_ms())
        self._changed()

    @contextmanager
    def _connect(
        self, connection: socket.socket, relation: Relation, workspace: str, claimed_parent: int
    ) -> Generator[EditorConnection]:
        process = find_editor_process(connection, relation)
        if isinstance(process, EditorProcess):
            with self._count(process.identity):
                find = lambda: self._decide(connection, process, workspace, claimed_parent)  # noqa: E731
                yield EditorConnection(find, self.bell)
        else:
            reason = Standing(decides=False, why=process)
            yield EditorConnection(lambda: reason, self.bell)

    @contextmanager
    def _count(self, identity: Identity) -> Generator[None]:
        """Count a connection. A question ends with the last one."""
        self._open[identity] = self._open.get(identity, 0) + 1
        try:
            yield
        finally:
            self._open[identity] -= 1
            if not self._open[identity]:
                del self._open[identity]
                pairing = self._pairings.get(identity)
                if pairing is not None and pairing.state == "waiting":
                    del self._pairings[identity]
                    self.bell.ring()

    def _decide(
        self, connection: socket.socket, process: EditorProcess, workspace: str, claimed_parent: int
    ) -> Standing:
        if self._access.sealed is not None:
            return Standing(decides=False, why=self._access.sealed)
        refusal = self._launchers.refusal(connection, claimed_parent)
        if refusal is not None:
            has_door = self._launchers.is_launcher(process.identity)
            return Standing(decides=False, why=LAUNCHED_DOOR if has_door else refusal)
        if not is_running(process.identity):
            return Standing(decides=False, why="The editor that started this process has exited.")
        return _standing_of(self._pairings.get(process.identity) or self._ask(process, workspace))

    def _ask(self, process: EditorProcess, workspace: str) -> Pairing | None:
        self._forget_exited()
        numbers = {each.number for each in self._pairings.values()}
        if sum(each.state == "waiting" for each in self._pairings.values()) >= MOST_WAITING:
            return None
        pairing = Pairing(
            id=new_id("e"),
            process=process,
            workspace=workspace,
            number=secrets.choice([number for number in range(100, 1000) if number not in numbers]),
            state="waiting",
            since=now_ms(),
        )
        self._pairings[process.identity] = pairing
        self.bell.ring()
        return pairing

    def _find(self, id: str) -> Pairing:
        pairing = next((each for each in self.current if each.id == id), None)
        if pairing is None:
            raise UnknownEditor(id)
        return pairing

    def _forget_exited(self) -> None:
        exited = [identity for identity in self._pairings if not is_running(identity)]
        for identity in exited:
            del self._pairings[identity]
        if exited:
            self._changed()

    def _changed(self) -> None:
        answered = [each for each in self._pairings.values() if each.state != "waiting"]
        self.keep(json.dumps([_encode(each) for each in answered[-MOST_KNOWN:]]).encode())
        self.bell.ring()


def _standing_of(pairing: Pairing | None) -> Standing:
    if pairing is None:
        return Standing(decides=False, why=TOO_MANY)
    match pairing.state:
        case "paired":
            return Standing(decides=True, pairing=pairing)
        case "refused" | "waiting":
            template = REFUSED if pairing.state == "refused" else WAITING
            why = template.format(id=pairing.id, number=pairing.number)
            return Standing(decides=False, why=why, pairing=pairing)


def _facts(pairing: Pairing) -> dict[str, Any]:
    process = pairing.process
    return {"pid": process.pid, "program": process.program, "workspace": pairing.workspace}


def _encode(pairing: Pairing) -> list[object]:
    return [
        pairing.id,
        list(pairing.process),
        pairing.workspace,
        pairing.number,
        pairing.state,
        pairing.since,
    ]


def _load(kept: bytes) -> dict[Identity, Pairing]:
    """The answers about editors that still run. Ignores what another program stored in its own keeper."""
    try:
        pairings = [_decode(*fields) for fields in json.loads(kept or b"[]")]
    except (ValueError, TypeError):
        return {}
    return {each.process.identity: each for each in pairings if is_running(each.process.identity)}


def _decode(id: str, process: list[Any], workspace: str, number: int, state: State, since: int) -> Pairing:
    pid, start, program, command, started_at = process
    return Pairing(
        id=id,
        process=EditorProcess(pid, start, program, command, started_at),
        workspace=workspace,
        number=number,
        state=state,
        since=since,
    )
