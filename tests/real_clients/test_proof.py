"""`handrail connect CLIENT --prove` with the real programs: the call arrives, and nothing is left of the proof."""

import json
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from tests.real_clients.client_catalog import ALL, CLAUDE, Client
from tests.real_clients.guarded_client import TURN_SECONDS, GuardedClient, guarded_client
from tests.support.pty_session import PtySession

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

PARAMETERS = [
    pytest.param(client, id=client.name, marks=() if client is CLAUDE else pytest.mark.all_clients)
    for client in ALL
]


@pytest.mark.parametrize("client", PARAMETERS)
async def test_the_shell_call_reaches_the_inbox_and_nothing_is_left_of_the_proof(
    client: Client, tmp_path: Path
) -> None:
    with guarded_client(client) as guarded:
        before = guarded.files()
        done = guarded.handrail("connect", client.name, "--prove", "--json", TMPDIR=str(tmp_path))
        assert done.returncode == 0, done.stdout + done.stderr
        proof = json.loads(done.stdout)
        assert (proof["client"], proof["verdict"], proof["ran"]) == (client.name, "waiting", False)
        assert proof["title"].startswith("touch proof-")
        (call,) = await guarded.calls()
        assert (call["id"], call["caller"]["client"]) == (proof["call_id"], client.name)
        assert call["status"] == proof["outcome"] == "denied"
        assert await guarded.person.get("approvals", open=True) == []
        assert guarded.files().items() >= before.items()
        assert _traces(guarded, tmp_path) == []


@pytest.mark.all_clients
async def test_at_a_terminal_the_person_can_answer_the_question() -> None:
    with guarded_client(CLAUDE) as guarded:
        argv = [str(guarded.launcher), "connect", "claude", "--prove"]
        with PtySession(argv, guarded.environment, guarded.workspace) as session:
            asked = await guarded.person.question("touch proof-")
            session.sees(b"Answer it there")
            (await guarded.person.answer(asked, "allow")).raise_for_status()
            assert await anyio.to_thread.run_sync(session.process.wait, TURN_SECONDS) == 0
            session.sees(b"the command ran")


def _traces(guarded: GuardedClient, scratch: Path) -> list[str]:
    """Folders and processes that a proof left, and files of the user that name our hook."""
    mark = f"HANDRAIL_PROOF={scratch}".encode()
    processes = [path for path in Path("/proc").glob("[0-9]*/environ") if mark in _read(path)]
    files = [name for name, data in guarded.files().items() if b"handrail" in data and b"hook" in data]
    return [*map(str, (*scratch.glob("handrail-*"), *processes)), *files]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it has ended meanwhile
        return b""
