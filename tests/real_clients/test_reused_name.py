"""A project whose own MCP server is called `handrail`, in clients that do not tell where a server comes from."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.real_clients.client_catalog import GEMINI, OPENCODE, QWEN, Client, Json
from tests.real_clients.guarded_client import guarded_client

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

SERVER = Path(__file__).parents[1] / "support" / "mcp_servers" / "plain.py"
PROJECT_FILES: dict[str, tuple[str, Callable[[str, str], Json]]] = {
    "gemini": (
        ".gemini/settings.json",
        lambda program, log: {"mcpServers": {"handrail": {"command": program, "args": [log], "trust": True}}},
    ),
    "qwen": (
        ".qwen/settings.json",
        lambda program, log: {"mcpServers": {"handrail": {"command": program, "args": [log], "trust": True}}},
    ),
    "opencode": (
        "opencode.json",
        lambda program, log: {"mcp": {"handrail": {"type": "local", "command": [program, log]}}},
    ),
}
"""Where a project names its MCP servers, and how."""


@pytest.mark.parametrize(
    "client",
    [
        pytest.param(client, id=client.name, marks=() if client is GEMINI else pytest.mark.all_clients)
        for client in (GEMINI, QWEN, OPENCODE)
    ],
)
async def test_a_projects_server_that_calls_itself_handrail_is_asked_about(client: Client) -> None:
    with guarded_client(client) as guarded:
        connected = guarded.handrail("connect", client.name, "--yes")
        assert connected.returncode == 0, connected.stdout + connected.stderr
        program, log = guarded.folder / "other" / "handrail", guarded.folder / "log"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {SERVER} "$@"\n')
        program.chmod(0o755)
        name, entry = PROJECT_FILES[client.name]
        file = guarded.workspace / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(entry(str(program), str(log))))

        async with guarded.running(client.ours("echo", {"text": "by somebody else"})) as run:
            asked = await guarded.person.question("handrail: echo")
            assert "not started Handrail's own" in asked["claims"][-1]["opaque"]
            await guarded.person.deny("handrail: echo", "That is not Handrail.")
        assert guarded.is_told("That is not Handrail."), run.text
