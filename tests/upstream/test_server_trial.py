"""A trial of an MCP server starts a process of its own, says what failed, and leaves nothing behind."""

import json
import sys
from pathlib import Path

import anyio
from tests.support.daemon_home import running_daemon
from tests.support.person_client import person_of

SERVER = Path(__file__).parents[1] / "support" / "mcp_servers" / "relayed.py"


async def test_a_trial_lists_the_tools_and_ends_its_process(tmp_path: Path) -> None:
    (tmp_path / "good").mkdir()
    good = [sys.executable, "-I", str(SERVER), str(tmp_path / "good")]
    bad = ["sh", "-c", "echo no key >&2; sleep 60 & exec sleep 60"]
    config = "".join(
        f'[[servers]]\nname = "{name}"\ncommand = {json.dumps(command)}\nstart_seconds = 1\n'
        for name, command in (("good", good), ("bad", bad))
    )
    with running_daemon(config) as home:
        person = person_of(home)
        tried, failed = await person.post("servers/good/test"), await person.post("servers/bad/test")
        running = [each["clients"] for each in await person.get("servers")]
        (started,) = (tmp_path / "good" / "log").read_text().splitlines()
        is_left = await anyio.Path("/proc", started.split()[1]).exists()

    assert (tried["problem"], tried["server"]["is_listed"], running) == ("", True, [[], []])
    assert "good__echo" in [tool["name"] for tool in tried["server"]["tools"]]
    assert not is_left
    assert "did not answer within 1 s" in failed["problem"]
    assert failed["lines"] == ["no key"]
