"""Connections to the agent host: who may decide, reconnecting, and clients that misbehave."""

import json
import os
import socket
import stat
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import anyio
import pytest
from tests.support.ahp_client import AHP, ROOT, AhpClient, AhpError, ahp_client, pair, tcp_client
from tests.support.daemon_home import BOUND, Home, free_port, running_daemon
from tests.support.person_client import Person, person_of
from tests.support.scripted_agent import script
from tests.support.thread_client import SCRIPTED
from websockets.asyncio.client import unix_connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

pytestmark = [pytest.mark.anyio]

AGENT = "handrail-scripted"
RUN = {"terminal": {"command": "seq", "args": ["3"]}, "as": "t"}
TOKEN = "0123456789abcdef0123"


def test_the_socket_is_private(home: Home) -> None:
    path = home.places.ahp_socket
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


async def test_an_editor_that_is_not_paired_watches_and_is_told_how_to_be_paired(folder: Path) -> None:
    with running_daemon(SCRIPTED + AHP) as home:
        person = person_of(home)
        async with ahp_client(home) as client:
            await client.initialize()
            [editor] = await person.get("editors")
            assert (editor["state"], editor["pid"]) == ("waiting", os.getpid())
            chat = await client.begin(AGENT, str(folder), script(RUN, {"say": "done"}))
            call = await chat.question()
            reason = (await chat.confirm(call, "once"))["rejectionReason"]
            assert str(editor["number"]) in reason
            await client.until(lambda: str(editor["number"]) in chat.text)
            async with ahp_client(home, "other") as other:  # no other window shows this number
                await other.initialize()
                assert str(editor["number"]) not in (await other.open(chat.session)).text
            assert chat.calls()[0]["status"] == "pending-confirmation"
            with pytest.raises(AhpError) as refused:
                await client.ask("createTerminal", channel="agenthost-terminal:/x", claim={"kind": "client"})
            assert str(editor["number"]) in str(refused.value)
            await pair(person)
            assert "rejectionReason" not in await chat.confirm(call, "once")
            await chat.over()
            await person.ask("POST", f"editors/{editor['id']}/refuse")
            await chat.prompt(script({"terminal": {"command": "seq", "args": ["4"]}}))
            assert "only watch" in (await chat.confirm(await chat.question(), "once"))["rejectionReason"]


async def test_over_tcp_a_client_watches_and_prompts_but_never_decides(folder: Path) -> None:
    port = free_port()
    with running_daemon(SCRIPTED + AHP + f'port = {port}\ntoken = "{TOKEN}"\n') as home:
        person = person_of(home)
        async with ahp_client(home) as paired:
            await paired.initialize()
            await pair(person)  # this very process: over TCP that makes no difference
            async with tcp_client(port, TOKEN) as client:
                await client.initialize()
                chat = await client.begin(AGENT, str(folder), script(RUN, {"say": "done"}))
                reason = (await chat.confirm(await chat.question(), "once"))["rejectionReason"]
                assert "Decide on Handrail's page" in reason
                await person.allow("seq")
                await chat.over()
        with pytest.raises(InvalidStatus):
            async with tcp_client(port, "wrong-token"):
                pass


async def test_a_page_of_a_browser_is_refused(home: Home) -> None:
    with pytest.raises(InvalidStatus):
        async with unix_connect(str(home.places.ahp_socket), uri="ws://x/", origin="http://evil.example"):
            pass


CONNECT = """
import socket, sys
sock = socket.socket(socket.AF_UNIX)
sock.connect(PATH)
key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
lines = ["GET / HTTP/1.1", "Host: x", "Upgrade: websocket", "Connection: Upgrade", key, "Sec-WebSocket-Version: 13"]
sock.sendall(("\\r\\n".join(lines) + "\\r\\n\\r\\n").encode())
print(sock.recv(4096).decode())
"""


async def test_what_an_agent_starts_is_refused(home: Home, person: Person, folder: Path) -> None:
    """A process below an agent's command connects: it carries the keeper's mark."""
    program = folder / "connect.py"
    program.write_text(f"PATH = {str(home.places.ahp_socket)!r}\n{CONNECT}")
    step = {"terminal": {"command": sys.executable, "args": ["connect.py"]}, "as": "t"}
    thread = await person.post("threads", {"agent": "scripted", "workspace": str(folder)})
    steps = (step, {"wait_for_exit": "$t.terminalId"}, {"output": "$t.terminalId", "as": "o"}, {"tell": "o"})
    await person.post(f"threads/{thread['id']}/prompt", {"text": script(*steps)})
    call = await person.allow("connect.py")
    await person.settled(call)
    result = await person.call(call)
    assert "403 Forbidden" in result["result"]["text"]
    # The same program, started by a person, gets in.
    done = await anyio.run_process([sys.executable, str(program)], stderr=subprocess.DEVNULL)
    assert b"101 Switching Protocols" in done.stdout


async def test_a_client_that_reconnects_gets_what_it_missed(
    home: Home, editor: AhpClient, folder: Path
) -> None:
    chat = await editor.begin(AGENT, str(folder), script({"say": "one"}), "reconnect")
    await chat.over()
    seen, uris = editor.seq, [ROOT, chat.session, chat.uri]
    async with ahp_client(home, "second") as second:
        await second.initialize()
        other = await second.open(chat.session)
        await other.prompt(script({"say": "two"}))
        await other.over()
        expected = second.states[chat.uri]
    async with ahp_client(home) as again:
        result = await again.ask(
            "reconnect", clientId="test-client", lastSeenServerSeq=seen, subscriptions=uris
        )
        assert result["type"] == "replay"
        state = editor.states[chat.uri]  # the first connection was subscribed all the time
        assert state == expected
        replayed = [one["action"]["type"] for one in result["actions"] if one["channel"] == chat.uri]
        assert replayed[0] == "chat/turnStarted"
        assert replayed[-1] == "chat/turnComplete"
        with pytest.raises(AhpError) as refused:
            await again.ask("reconnect", clientId="stranger", lastSeenServerSeq=seen, subscriptions=uris)
        assert refused.value.code == -32008
        old = await again.ask("reconnect", clientId="test-client", lastSeenServerSeq=1, subscriptions=uris)
        assert old["type"] == "snapshot"
        assert {one["resource"] for one in old["snapshots"]} == set(uris)


async def test_after_a_kill_of_the_daemon_the_same_sessions_and_turns_are_there(folder: Path) -> None:
    with running_daemon(SCRIPTED + AHP) as home:
        async with ahp_client(home) as client:
            await client.initialize()
            chat = await client.begin(AGENT, str(folder), script({"say": "before"}))
            await chat.over()
            before = chat.state["turns"]
        home.kill()
        home.up()
        async with ahp_client(home) as again:
            with pytest.raises(AhpError) as refused:
                await again.ask(
                    "reconnect",
                    clientId="test-client",
                    lastSeenServerSeq=client.seq,
                    subscriptions=[chat.uri],
                )
            assert refused.value.code == -32008
            await again.initialize(ROOT, chat.session, chat.uri)
            assert [turn["id"] for turn in again.states[chat.uri]["turns"]] == [turn["id"] for turn in before]
            assert [one["resource"] for one in await again.sessions()] == [chat.session]


async def test_garbage_is_answered_and_in_the_end_disconnected(home: Home) -> None:
    async with ahp_client(home) as client:
        await client.initialize()
        await client.socket.send("not json")
        await client.socket.send(b"\xff\x00")
        await client.socket.send(json.dumps([1, 2]))
        await client.socket.send(json.dumps({"jsonrpc": "2.0", "method": "dispatchAction", "params": 7}))
        assert await client.ask("ping") == {}
        with pytest.raises(AhpError) as refused:
            await client.ask("subscribe", channel=17)
        assert refused.value.code == -32602
        with suppress(ConnectionClosed):
            for _ in range(100):
                await client.socket.send("garbage")
        with anyio.fail_after(BOUND):
            await client.socket.wait_closed()
        assert (client.socket.close_code, client.socket.close_reason) == (
            1008,
            "Too many messages were malformed.",
        )


async def test_a_client_that_floods_and_never_reads_does_not_hold_up_others(
    home: Home, editor: AhpClient
) -> None:
    """Its requests pile up in its own socket; another client is answered meanwhile."""
    with socket.socket(socket.AF_UNIX) as flood:
        flood.connect(str(home.places.ahp_socket))
        flood.sendall(
            b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        flood.setblocking(False)
        ping = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "listSessions", "params": {}}).encode()
        frame = bytes([0x81, 0x80 | len(ping), 0, 0, 0, 0]) + ping
        sent = 0
        with suppress(BlockingIOError):
            for _ in range(200_000):
                sent += flood.send(frame)
        assert sent > 0
        with anyio.fail_after(BOUND):
            assert await editor.ask("ping") == {}
            await editor.sessions()


async def test_a_version_that_handrail_does_not_speak_is_refused(home: Home) -> None:
    async with ahp_client(home) as client:
        with pytest.raises(AhpError) as refused:
            await client.ask("initialize", protocolVersions=["0.1.0"], clientId="old")
        assert refused.value.code == -32005
        with pytest.raises(AhpError):
            await client.ask("listSessions")
