"""Claude Code over HTTP, which can start no daemon: after a `kill -9` the keeper starts one, and the next call works."""

import json

import pytest
from tests.real_clients.client_catalog import CLAUDE
from tests.real_clients.guarded_client import TURN_SECONDS, guarded_client
from tests.support.daemon_home import until
from tests.support.model_server.script import Turn

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]


async def test_after_the_daemon_was_killed_the_next_call_over_http_works() -> None:
    with guarded_client(CLAUDE, "[daemon]\nrestart = true\n") as guarded:
        created = guarded.handrail("credential", "--workspace", str(guarded.workspace), "--json")
        row = json.loads(created.stdout)
        headers = {"Authorization": f"Bearer {row['bearer']}"}
        servers = {"handrail": {"type": "http", "url": row["url"], "headers": headers}}
        config = guarded.folder / "mcp.json"
        config.write_text(json.dumps({"mcpServers": servers}))
        arguments = ("--mcp-config", str(config), "--allowedTools", "mcp__handrail__read_file")

        (guarded.workspace / "before.txt").write_text("read before\n")
        (guarded.workspace / "after.txt").write_text("read after\n")
        before = CLAUDE.ours("read_file", {"path": "before.txt"})
        after = CLAUDE.ours("read_file", {"path": "after.txt"})
        held = Turn(after.say, after.tool, after.input, hold="the daemon is gone")
        async with guarded.running(before, held, arguments=arguments) as run:
            await until(lambda: guarded.is_told("read before"), TURN_SECONDS)
            killed = guarded.home.kill()
            guarded.model.let_go(held.hold)
        assert guarded.is_told("read after"), run.text
        assert guarded.home.pid != killed
