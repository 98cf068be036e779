"""Running clients and their transcripts, over HTTP and on the command line, with real hooks and a real daemon."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from tests.support import client_transcripts as samples
from tests.support.daemon_home import BOUND, Home, eventually
from tests.support.hook_client import HookClient
from tests.support.person_client import Json, Person, reader
from websockets.asyncio.client import connect as connect_websocket

pytestmark = pytest.mark.anyio


@pytest.fixture
def client(shared_home: Home, workspace: Path) -> Iterator[HookClient]:
    client = HookClient(shared_home, "session-1", workspace)
    yield client
    client.end()


def run(home: Home, *arguments: str) -> str:
    """What a command prints."""
    command = [sys.executable, "-P", "-m", "handrail", *arguments]
    done = subprocess.run(
        command, env=home.environment, capture_output=True, text=True, timeout=BOUND, check=True
    )
    return done.stdout


async def test_a_client_is_listed_with_its_state_from_its_first_hook_until_its_process_ends(
    shared_home: Home, shared_person: Person, client: HookClient, workspace: Path
) -> None:
    async def state() -> tuple[str, ...] | None:
        rows = await shared_person.get("clients")
        return tuple(f"{row['title']} {row['state']}" for row in rows) or None

    await client.report("SessionStart", source="startup")
    assert await state() == ("Claude Code idle",)
    await client.report("UserPromptSubmit", prompt="hello")
    assert await state() == ("Claude Code working",)

    client.send("PreToolUse", tool_name="Bash", tool_input={"command": "rm -rf x"}, tool_use_id="toolu_1")
    approval = await shared_person.question("rm -rf x")
    [row] = await shared_person.get("clients")
    assert (row["state"], row["approvals"], row["folder"]) == ("needs_you", [approval["id"]], str(workspace))
    assert row["key"] == approval["caller"]["key"]
    assert row["pid"] == client.process.pid
    [listed] = json.loads(run(shared_home, "clients", "--json"))
    assert (listed["state"], listed["session"]) == ("needs_you", "session-1")
    await shared_person.answer(approval, "deny")
    await client.hook_ended()

    await client.report("Stop", last_assistant_message="All is done.")
    [row] = await shared_person.get("clients")
    assert (row["state"], row["message"]) == ("idle", "All is done.")
    with reader(shared_home) as bearer:
        [seen] = await Person(shared_home, bearer).get("clients")
    assert seen["message"] == ""

    client.end()
    await eventually(lambda: _is_empty(shared_person))


def states_of(clients: list[Json]) -> list[str]:
    return [row["state"] for row in clients]


async def _is_empty(person: Person) -> bool | None:
    return True if await person.get("clients") == [] else None


async def test_the_live_socket_sends_the_clients_when_they_change(
    shared_home: Home, shared_person: Person, client: HookClient
) -> None:
    seq = (await shared_person.get("state"))["seq"]
    url = f"{shared_home.url.replace('http', 'ws')}/api/live?after={seq}"
    async with connect_websocket(url, additional_headers=shared_person.headers) as socket:
        client.send("UserPromptSubmit", prompt="hello")
        states: list[str] = []
        with anyio.fail_after(BOUND):
            while not states:
                clients = json.loads(await socket.recv())["clients"]
                states = states_of(clients or [])
            assert states == ["working"]
            client.end()
            while states:
                clients = json.loads(await socket.recv())["clients"]
                states = states if clients is None else states_of(clients)


async def test_transcripts_are_listed_read_and_exported(home: Home, person: Person) -> None:
    # A daemon of its own: where a hook has come from this process, it does not count as a person any more.
    samples.write_all(Path(home.environment["HOME"]))

    listed = await person.get("transcripts", folder="/work")
    assert {row["client"] for row in listed} == {"claude", "codex", "gemini", "opencode"}
    detail = await person.get(f"transcripts/claude/{samples.CLAUDE_SESSION}")
    assert [message["role"] for message in detail["said"]] == ["user", "assistant"]
    kinds = [part["kind"] for part in detail["said"][1]["parts"]]
    assert kinds == ["thought", "text", "call", "text"]
    call = detail["said"][1]["parts"][2]["data"]
    assert (call["title"], call["sort"], call["status"]) == ("Bash: pytest -x", "execute", "failed")
    missing = await person.ask("GET", "transcripts/claude/nobody")
    assert (missing.status_code, "There is no transcript" in missing.text) == (404, True)

    assert "Why does the login test fail?" in run(home, "transcripts")
    exported = run(home, "export", f"codex:{samples.CODEX_SESSION[:6]}")
    assert "List the routes" in exported
    assert "There is one." in exported
    thread = await person.post("threads/import", json.loads(run(home, "export", "gemini:7", "--json")))
    assert thread["messages"] == 2


async def test_a_watcher_reads_no_transcript(shared_home: Home) -> None:
    with reader(shared_home) as bearer:
        for path in ("transcripts", f"transcripts/claude/{samples.CLAUDE_SESSION}"):
            assert (await Person(shared_home, bearer).ask("GET", path)).status_code == 403
