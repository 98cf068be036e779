"""Terminals through the agent host: a call's terminal, and terminals that a client opens."""

from contextlib import suppress
from pathlib import Path

import anyio
import pytest
from tests.support.ahp_client import ROOT, VERSIONS, AhpChat, AhpClient, Obj, ahp_client
from tests.support.daemon_home import BOUND, Home, eventually
from tests.support.person_client import Person
from tests.support.scripted_agent import script
from websockets.asyncio.client import unix_connect
from websockets.exceptions import ConnectionClosed

pytestmark = [pytest.mark.anyio]

AGENT = "handrail-scripted"


def shown(client: AhpClient, uri: str) -> str:
    return "".join(part.get("value", "") for part in client.states[uri]["content"])


def data_of(envelope: Obj) -> str:
    return envelope["action"].get("data", "")


async def run_command(editor: AhpClient, folder: Path, command: str, session: str) -> tuple[AhpChat, str]:
    """Have the agent run a command through our tool; the chat, and the URI of its terminal."""
    step = {"mcp": "execute_command", "arguments": {"command": command}, "as": "m"}
    chat = await editor.begin(AGENT, str(folder), script(step, {"tell": "m"}), session)
    await chat.confirm(await chat.question(), "once")
    content = await editor.until(
        lambda: [one["content"] for one in chat.calls("running") if "content" in one]
    )
    return chat, content[0][0]["resource"]


async def test_continue_in_background_completes_the_call_and_leaves_the_terminal(
    editor: AhpClient, folder: Path, person: Person
) -> None:
    command = "echo begun; sleep 600"
    chat, uri = await run_command(editor, folder, command, "background")
    claim = (await editor.subscribe(uri))["claim"]
    assert claim["toolCallId"] == chat.calls()[0]["toolCallId"]
    await editor.until(lambda: "begun" in shown(editor, uri))
    narrowed = {"kind": "session", "session": chat.session, "chat": chat.uri}
    envelope = await editor.act(uri, "terminal/claimed", claim=narrowed)
    assert "rejectionReason" not in envelope
    await chat.over()
    [call] = chat.calls()
    assert call["status"] == "completed"
    settled = await person.settled(call["_meta"]["handrail/call"])
    assert (settled["status"], settled["terminal_running"]) == ("completed", True)
    assert editor.states[uri]["lifecycle"] == {"status": "running"}
    assert editor.states[uri]["claim"] == narrowed
    await person.post(f"terminals/{uri.partition(':/')[2]}/close")
    await editor.until(lambda: editor.states[uri]["lifecycle"]["status"] == "exited")


async def test_a_person_types_into_the_terminal_of_a_call_which_then_has_the_size_of_the_window(
    editor: AhpClient, folder: Path
) -> None:
    chat, uri = await run_command(editor, folder, "read line; echo got-$line; read more; stty size", "typing")
    before = await editor.subscribe(uri)
    look = await editor.act(uri, "terminal/resized", cols=44, rows=13)
    assert "until you type" in look["rejectionReason"]
    assert (editor.states[uri]["cols"], editor.states[uri]["rows"]) == (before["cols"], before["rows"])
    await editor.act(uri, "terminal/input", data="words\n")
    await editor.until(lambda: "got-words" in shown(editor, uri))
    await editor.until(lambda: (editor.states[uri]["cols"], editor.states[uri]["rows"]) == (44, 13))
    await editor.act(uri, "terminal/input", data="\n")
    await editor.until(lambda: "13 44" in shown(editor, uri))
    await chat.over()
    await editor.until(lambda: editor.states[uri]["lifecycle"] == {"status": "exited", "exitCode": 0})


async def test_a_client_opens_types_resizes_and_closes_a_terminal_of_its_own(
    editor: AhpClient, folder: Path
) -> None:
    uri = "agenthost-terminal:/own-1"
    claim = {"kind": "client", "clientId": editor.client}
    await editor.ask(
        "createTerminal", channel=uri, claim=claim, name="Mine", cwd=folder.as_uri(), cols=70, rows=20
    )
    state = await editor.subscribe(uri)
    assert (state["cols"], state["rows"], state["claim"]) == (70, 20, claim)
    await editor.act(uri, "terminal/input", data="echo $((40+2)) in $PWD; stty size\r")
    await editor.until(lambda: f"42 in {folder}" in shown(editor, uri))
    await editor.until(lambda: "20 70" in shown(editor, uri))
    await editor.act(uri, "terminal/resized", cols=90, rows=30)
    await editor.act(uri, "terminal/input", data="stty size\r")
    await editor.until(lambda: "30 90" in shown(editor, uri))
    listed = await editor.until(
        lambda: [one for one in editor.states[ROOT]["terminals"] if one["resource"] == uri]
    )
    assert listed[0]["lifecycle"] == {"status": "running"}
    await editor.ask("disposeTerminal", channel=uri)
    await editor.until(lambda: editor.states[uri]["lifecycle"]["status"] == "exited")
    await editor.until(lambda: all(one["resource"] != uri for one in editor.states[ROOT]["terminals"]))


async def test_much_output_arrives_whole(editor: AhpClient, folder: Path) -> None:
    chat, uri = await run_command(editor, folder, "read go; seq 200000; echo the-end", "much")
    await editor.subscribe(uri)
    await editor.act(uri, "terminal/input", data="go\n")
    await editor.until(lambda: "the-end" in shown(editor, uri)[-200:])
    await chat.over()
    lines = shown(editor, uri).split("\r\n")
    assert [line for line in lines if line.isdigit()] == [str(n) for n in range(1, 200_001)]


async def test_a_client_that_never_reads_is_disconnected_and_holds_up_nobody(
    home: Home, editor: AhpClient, person: Person, folder: Path
) -> None:
    """It watches a terminal with more output than its queue and its socket hold."""
    _, uri = await run_command(editor, folder, "read go; seq 6000000; echo the-end", "unread")
    await editor.ask("subscribe", channel=uri)
    del editor.states[uri]  # the state of so much output is not of interest
    address = str(home.places.ahp_socket)
    async with unix_connect(address, uri="ws://127.0.0.1:0/", max_size=None) as socket:
        deaf = AhpClient(socket, "deaf")  # its `run`, which receives, is not started
        fields = {"clientId": "deaf", "protocolVersions": VERSIONS, "initialSubscriptions": [ROOT, uri]}
        await deaf.send({"id": 1, "method": "initialize", "params": fields})
        await editor.act(uri, "terminal/input", data="go\n")
        await editor.until(lambda: any("the-end" in data_of(one) for one in editor.envelopes[-20:]))
        assert await editor.ask("ping") == {}

        async def is_alone() -> bool:
            (process,) = await person.get("editors")
            return process["windows"] == 1

        await eventually(is_alone, 10)
        with anyio.fail_after(BOUND), suppress(ConnectionClosed):
            while True:
                await socket.recv()
        assert socket.close_code == 1006  # it did not read that it is disconnected
    async with ahp_client(home, "deaf") as again:
        await again.initialize(ROOT, uri)
        assert shown(again, uri).endswith("the-end\r\n")
