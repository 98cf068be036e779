"""Running clients: their hooks say what they do, and their sessions end with their processes."""

import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from tests.support.keeper_terminals import KeeperTerminals, running_keeper, until

from handrail.clients.hook_event import HookEvent, HookKind
from handrail.clients.open_work import ClientProcess
from handrail.keeper import lineage
from handrail.server import client_sessions
from handrail.server.client_sessions import KEPT_BYTES, ClientNotice, ClientSessions

pytestmark = pytest.mark.anyio


@pytest.fixture
async def world(home: Path) -> AsyncGenerator[tuple[KeeperTerminals, ClientSessions]]:
    """Terminals of a keeper, and the sessions of clients, which are followed."""
    async with running_keeper(home) as kept, anyio.create_task_group() as group:
        sessions = ClientSessions(kept.terminals)
        group.start_soon(sessions.run)
        await anyio.wait_all_tasks_blocked()
        yield kept, sessions
        group.cancel_scope.cancel()


def event(kind: HookKind, session: str = "s1", message: str = "") -> HookEvent:
    return HookEvent(kind=kind, session=session, cwd="/work/shop", message=message)


def process_of(pid: int) -> ClientProcess:
    place = lineage.read_stat(pid)
    assert place is not None
    return ClientProcess(pid=pid, start=place.start, name=place.name)


def start_client() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)


@pytest.mark.parametrize(
    ("kinds", "activity"),
    [
        (["session_started"], "idle"),
        (["prompted"], "working"),
        (["session_started", "prompted", "before", "after"], "working"),
        (["before"], "working"),
        (["prompted", "notified"], "asks"),
        (["prompted", "notified", "after"], "working"),
        (["prompted", "stopped"], "idle"),
        (["prompted", "stopped", "notified"], "idle"),
        (["prompted", "ignored"], "working"),
    ],
)
async def test_the_activity_follows_from_the_hooks(
    world: tuple[KeeperTerminals, ClientSessions], kinds: list[HookKind], activity: str
) -> None:
    _, sessions = world
    for kind in kinds:
        sessions.observe("claude", event(kind))
    assert [(one.key, one.activity, one.folder) for one in sessions.current] == [
        ("claude s1", activity, "/work/shop")
    ]


@pytest.mark.parametrize("kinds", [["ignored"], ["session_started", "session_ended"], ["session_ended"]])
async def test_no_session_runs_that_never_began_or_has_ended(
    world: tuple[KeeperTerminals, ClientSessions], kinds: list[HookKind]
) -> None:
    _, sessions = world
    for kind in kinds:
        sessions.observe("claude", event(kind))
    assert sessions.current == []


async def test_the_end_of_a_subagent_does_not_end_the_turn(
    world: tuple[KeeperTerminals, ClientSessions],
) -> None:
    _, sessions = world
    sessions.observe("claude", event("prompted"))
    sessions.observe("claude", replace(event("stopped"), subagent="a1"))
    assert sessions.current[0].activity == "working"


async def test_a_session_ends_with_the_process_of_its_client(
    world: tuple[KeeperTerminals, ClientSessions],
) -> None:
    _, sessions = world
    with start_client() as child:
        sessions.observe("codex", event("prompted"), process_of(child.pid))
        sessions.observe("codex", event("prompted", session="s2"), process_of(child.pid))
        sessions.observe("claude", event("prompted"), process_of(os.getpid()))
        bell = sessions.bell
        assert len(sessions.current) == 3
        child.kill()
    with anyio.fail_after(30):
        await bell.wait()
    await until(lambda: [one.key for one in sessions.current] == ["claude s1"])


async def test_the_next_daemon_knows_the_sessions_that_still_run_but_not_what_was_said(
    world: tuple[KeeperTerminals, ClientSessions],
) -> None:
    kept, sessions = world
    blobs = list[bytes]()
    sessions.keep = blobs.append
    with start_client() as child:
        sessions.observe("codex", event("prompted"), process_of(child.pid))
        sessions.observe("claude", event("prompted"), process_of(os.getpid()))
        sessions.observe("claude", event("stopped", message="a secret"), process_of(os.getpid()))
        before = len(blobs)
        for kind in ("prompted", "before", "after", "before", "after"):
            sessions.observe("codex", event(kind), process_of(child.pid))
        assert len(blobs) == before, "what goes on in a turn is not stored"
        child.kill()
    assert b"secret" not in blobs[-1]
    assert b"codex" in blobs[-1]

    later = ClientSessions(kept.terminals, blobs[-1])
    async with anyio.create_task_group() as group:
        group.start_soon(later.run)
        await until(lambda: [one.key for one in later.current] == ["claude s1"])
        group.cancel_scope.cancel()
    (known,) = later.current
    (same,) = (one for one in sessions.current if one.client == "claude")
    assert known == replace(same, message="", heard_at=known.heard_at)


async def test_sessions_that_another_version_stored_are_no_problem(
    world: tuple[KeeperTerminals, ClientSessions],
) -> None:
    kept, _ = world
    for blob in (b"{", b"{}", b"[1]", b'[{"process": null, "unknown": 1}]'):
        later = ClientSessions(kept.terminals, blob)
        async with anyio.create_task_group() as group:
            group.start_soon(later.run)
            await anyio.wait_all_tasks_blocked()
            assert later.current == []
            group.cancel_scope.cancel()


async def test_a_session_in_a_terminal_of_ours_names_it(
    world: tuple[KeeperTerminals, ClientSessions],
) -> None:
    kept, sessions = world
    terminal = await kept.sh("sleep 600 & wait")
    sessions.observe("claude", event("prompted"), process_of(terminal.pid))
    session = sessions.current[0]
    assert session.terminal == terminal.id
    assert session.tty.startswith("pts/")


async def test_an_agent_that_handrail_hosts_is_not_listed(
    world: tuple[KeeperTerminals, ClientSessions],
) -> None:
    kept, sessions = world
    terminal, descriptors = await kept.terminals.open_pipes(
        ("sleep", "600"), "/", {"PATH": os.environ["PATH"]}
    )
    try:
        sessions.observe("claude", event("prompted"), process_of(terminal.pid))
        assert sessions.current == []
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


async def test_a_long_turn_and_a_notification_are_announced_and_a_short_turn_is_not(
    world: tuple[KeeperTerminals, ClientSessions], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, sessions = world
    notices: list[ClientNotice] = []
    sessions.on_notice.append(notices.append)

    sessions.observe("claude", event("prompted"))
    sessions.observe("claude", event("stopped", message="short"))
    monkeypatch.setattr(client_sessions, "LONG_TURN_SECONDS", 0.0)
    sessions.observe("claude", event("prompted"))
    sessions.observe("claude", event("notified", message="May I?"))
    sessions.observe("claude", event("stopped", message="long"))

    assert [(one.sort, one.title, one.message) for one in notices] == [
        ("notified", "Claude Code", "May I?"),
        ("stopped", "Claude Code", "long"),
    ]


async def test_a_client_that_invents_sessions_fills_a_bounded_list(
    world: tuple[KeeperTerminals, ClientSessions], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_sessions, "SESSIONS_MAX", 5)
    _, sessions = world
    for n in range(20):
        sessions.observe("claude", event("prompted", session=f"s{n}"))
    assert len(sessions.current) == 5


async def test_what_the_keeper_stores_is_bounded(world: tuple[KeeperTerminals, ClientSessions]) -> None:
    _, sessions = world
    sizes = list[int]()
    sessions.keep = lambda blob: sizes.append(len(blob))
    for n in range(60):
        sessions.observe("claude", replace(event("prompted", session=f"s{n}"), cwd="/" + "x" * 500))
    assert len(sessions.current) == 60
    assert KEPT_BYTES // 2 < max(sizes) <= KEPT_BYTES
