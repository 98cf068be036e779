"""Which process of an editor may decide, and after which answer. Every peer is a real process."""

import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path

import anyio
import pytest
from tests.support.editor_process import BOUND, EditorTree, accept

from handrail.errors import Conflict
from handrail.server.access import Access
from handrail.server.editor_pairings import (
    LAUNCHED_DOOR,
    MOST_WAITING,
    TOO_MANY,
    EditorPairings,
    UnknownEditor,
)
from handrail.store.actor import EDITOR, person_on
from handrail.store.journal import Journal, open_journal
from handrail.terminal.person_check import DoorLaunchers

pytestmark = pytest.mark.anyio

PERSON = person_on("page")


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[Journal]:
    async with open_journal(tmp_path / "handrail.db", tmp_path / "handrail.head") as opened:
        yield opened


@pytest.fixture
async def access(journal: Journal) -> Access:
    return Access(journal, [], b"")


@pytest.fixture
def launchers() -> DoorLaunchers:
    return DoorLaunchers()


@pytest.fixture
async def pairings(journal: Journal, access: Access, launchers: DoorLaunchers) -> EditorPairings:
    return EditorPairings(journal, access, launchers)


@pytest.fixture
def listener(home: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(home / "s"))
        listening.listen()
        listening.settimeout(BOUND)
        yield listening


@pytest.fixture
def editor(listener: socket.socket) -> Iterator[EditorTree]:
    with EditorTree(listener.getsockname()) as tree:
        yield tree


def connect(tree: EditorTree, listener: socket.socket, role: str = "host") -> socket.socket:
    tree.connect(role)
    return accept(listener)


async def pair_host(pairings: EditorPairings, tree: EditorTree, listener: socket.socket) -> str:
    """Pair an editor through its extension host, and return the id."""
    with connect(tree, listener) as host, pairings.connect_extension(host, "/w") as connection:
        pairing = connection.standing.pairing
        assert pairing is not None
        await pairings.pair(pairing.id, pairing.number, PERSON)
        assert connection.standing.decides
    return pairing.id


async def test_an_editor_watches_until_a_person_pairs_it(
    pairings: EditorPairings, editor: EditorTree, listener: socket.socket
) -> None:
    with connect(editor, listener) as host, pairings.connect_extension(host, "/w") as connection:
        standing = connection.standing
        assert not standing.decides
        assert standing.pairing is not None
        assert standing.pairing.process.pid == editor.process.pid
        assert str(standing.pairing.number) in standing.why

        await pairings.pair(standing.pairing.id, standing.pairing.number, PERSON)

        with anyio.fail_after(BOUND):
            assert (await connection.changed(standing)).decides


async def test_one_pairing_is_for_every_window_and_for_the_agent_host_of_that_editor(
    pairings: EditorPairings, listener: socket.socket, editor: EditorTree
) -> None:
    editor_id = await pair_host(pairings, editor, listener)
    with connect(editor, listener) as window, pairings.connect_extension(window, "/other") as connection:
        assert connection.standing.decides
        assert [each.id for each in pairings.current] == [editor_id]
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(listener.getsockname())
        with listener.accept()[0] as peer, pairings.connect_agent_host(peer, "/w") as connection:
            pairing = connection.standing.pairing
            assert pairing is not None
            assert pairing.process.pid == os.getpid()
            await pairings.pair(pairing.id, pairing.number, PERSON)
            assert connection.standing.decides


@pytest.mark.parametrize("role", ["below", "twice", "marked"])
async def test_what_runs_in_a_paired_editor_but_is_no_extension_host_does_not_decide(
    pairings: EditorPairings, editor: EditorTree, listener: socket.socket, role: str
) -> None:
    """A child of the extension host, a process that forked twice, and one that Handrail started."""
    await pair_host(pairings, editor, listener)
    with connect(editor, listener, role) as other, pairings.connect_extension(other, "/w") as connection:
        standing = connection.standing
        assert not standing.decides
        assert standing.why
        if role == "marked":
            assert standing.pairing is None


async def test_an_editor_that_launched_a_door_stops_to_decide_and_says_why(
    pairings: EditorPairings, launchers: DoorLaunchers, editor: EditorTree, listener: socket.socket
) -> None:
    """As with an MCP server on stdio, which an editor's extension host launches itself."""
    await pair_host(pairings, editor, listener)
    with connect(editor, listener) as host, pairings.connect_extension(host, "/w") as connection:
        known = connection.standing
        assert known.decides
        with connect(editor, listener, "below") as door:
            launchers.launched_door(door)
        with anyio.fail_after(BOUND):
            standing = await connection.changed(known)
        assert (standing.decides, standing.why) == (False, LAUNCHED_DOOR)


async def test_the_number_that_the_person_saw_has_to_be_the_editors(
    pairings: EditorPairings, editor: EditorTree, listener: socket.socket
) -> None:
    with connect(editor, listener) as host, pairings.connect_extension(host, "/w") as connection:
        pairing = connection.standing.pairing
        assert pairing is not None
        with pytest.raises(Conflict):
            await pairings.pair(pairing.id, pairing.number + 1, PERSON)
        with pytest.raises(Conflict):
            await pairings.pair(pairing.id, pairing.number, EDITOR)
        assert not connection.standing.decides


async def test_a_refused_editor_does_not_ask_again_but_can_be_paired(
    pairings: EditorPairings, editor: EditorTree, listener: socket.socket, journal: Journal
) -> None:
    with connect(editor, listener) as host, pairings.connect_extension(host, "/w") as connection:
        pairing = connection.standing.pairing
        assert pairing is not None
        await pairings.refuse(pairing.id, PERSON)
    with connect(editor, listener) as host, pairings.connect_extension(host, "/w") as connection:
        assert not connection.standing.decides
        assert [each.state for each in pairings.current] == ["refused"]
        await pairings.pair(pairing.id, pairing.number, PERSON)
        assert connection.standing.decides
        await pairings.refuse(pairing.id, PERSON)
        assert not connection.standing.decides
    kinds = [entry.event.kind for entry in await journal.since(0)]
    assert kinds == ["EditorRefused", "EditorPaired", "EditorRevoked"]


async def test_a_question_ends_with_the_last_connection_and_a_pairing_with_the_editor(
    pairings: EditorPairings, editor: EditorTree, listener: socket.socket
) -> None:
    with connect(editor, listener) as host, pairings.connect_extension(host, "/w") as connection:
        asked = connection.standing.pairing
    assert asked is not None
    assert pairings.current == []
    with pytest.raises(UnknownEditor):
        await pairings.pair(asked.id, asked.number, PERSON)

    editor_id = await pair_host(pairings, editor, listener)
    assert [each.id for each in pairings.current] == [editor_id]
    editor.end()
    assert pairings.current == []


async def test_more_questions_than_a_person_can_tell_apart_are_not_asked(
    pairings: EditorPairings, listener: socket.socket
) -> None:
    whys: list[str] = []
    with ExitStack() as held:
        for _ in range(MOST_WAITING + 1):
            tree = held.enter_context(EditorTree(listener.getsockname()))
            host = held.enter_context(connect(tree, listener))
            connection = held.enter_context(pairings.connect_extension(host, "/w"))
            whys.append(connection.standing.why)
        assert [why == TOO_MANY for why in whys] == [*[False] * MOST_WAITING, True]
        numbers = {each.number for each in pairings.current}
        assert len(numbers) == MOST_WAITING


async def test_the_next_daemon_knows_the_answers_about_editors_that_still_run(
    journal: Journal, access: Access, launchers: DoorLaunchers, listener: socket.socket
) -> None:
    kept: list[bytes] = []
    pairings = EditorPairings(journal, access, launchers)
    pairings.keep = kept.append
    with EditorTree(listener.getsockname()) as editor:
        editor_id = await pair_host(pairings, editor, listener)
        assert [each.id for each in EditorPairings(journal, access, launchers, kept[-1]).current] == [
            editor_id
        ]
    assert EditorPairings(journal, access, launchers, kept[-1]).current == []
    assert EditorPairings(journal, access, launchers, b'[["x"]]').current == []


async def test_a_sealed_daemon_lets_no_editor_decide(
    pairings: EditorPairings, access: Access, editor: EditorTree, listener: socket.socket
) -> None:
    await pair_host(pairings, editor, listener)
    access.seal("The keeper ended.")
    with connect(editor, listener) as host, pairings.connect_extension(host, "/w") as connection:
        standing = connection.standing
        assert (standing.decides, standing.why) == (False, "The keeper ended.")
