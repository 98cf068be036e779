"""A trial of an MCP server starts a process of its own, says what failed, and leaves nothing behind."""

import json
import sys
from pathlib import Path

import anyio
from anyio.abc import SocketAttribute
from tests.support.daemon_home import running_daemon
from tests.support.person_client import person_of

SERVER = Path(__file__).parents[1] / "support" / "mcp_servers" / "relayed.py"


async def test_a_trial_lists_the_tools_and_ends_its_process(tmp_path: Path) -> None:
    (tmp_path / "good").mkdir()
    good = [sys.executable, "-I", str(SERVER), str(tmp_path / "good")]
    bad = ["sh", "-c", "echo no key >&2; echo Welcome $KEY; sleep 60 & exec sleep 60"]
    config = "".join(
        f'[[servers]]\nname = "{name}"\ncommand = {json.dumps(command)}\nstart_seconds = 1\n'
        for name, command in (("good", good), ("bad", bad))
    )
    config += 'env = { KEY = "{secret:KEY}" }\n'
    with running_daemon(config) as home:
        person = person_of(home)
        (await person.ask("PUT", "secrets/KEY", {"value": "s3cret-value"})).raise_for_status()
        tried, failed = await person.post("servers/good/test"), await person.post("servers/bad/test")
        running = [each["clients"] for each in await person.get("servers")]
        (started,) = (tmp_path / "good" / "log").read_text().splitlines()
        is_left = await anyio.Path("/proc", started.split()[1]).exists()

    assert (tried["problem"], tried["server"]["is_listed"], running) == ("", True, [[], []])
    assert "good__echo" in [tool["name"] for tool in tried["server"]["tools"]]
    assert not is_left
    assert "did not answer within 1 s" in failed["problem"]
    assert "It sent a line that is no MCP message: 'Welcome [secret]'." in failed["problem"]
    assert failed["lines"] == ["no key"]


async def test_a_trial_says_in_plain_words_why_a_server_cannot_be_reached(tmp_path: Path) -> None:
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as closed:
        port = closed.extra(SocketAttribute.local_port)
    commands = {"exits": ["sh", "-c", "exit 3"], "lost": ["no-such-program"]}
    config = f'[[servers]]\nname = "far"\nurl = "http://127.0.0.1:{port}/mcp"\n' + "".join(
        f'[[servers]]\nname = "{name}"\ncommand = {json.dumps(command)}\n'
        for name, command in commands.items()
    )
    with running_daemon(config) as home:
        person = person_of(home)
        far, exits, lost = [
            (await person.post(f"servers/{name}/test"))["problem"] for name in ("far", "exits", "lost")
        ]

    assert far == (
        "far could not be reached, or broke off: connection refused, so nothing listens at its address."
    )
    assert exits == "exits could not be started: it ended by itself with exit code 3."
    assert lost.startswith(
        "lost could not be started. There is no program no-such-program on the PATH it gets."
    )
