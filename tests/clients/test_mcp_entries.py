"""The MCP servers of each client are read from its own form, and what cannot be taken over is said."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.client_machine import ClientMachine

from handrail.clients.client_facts import Machine, Setup
from handrail.clients.known_clients import find_client
from handrail.clients.launcher_path import Launcher
from handrail.clients.mcp_entries import McpEntry, find_mcp_entries

STDIO = {"command": "npx", "args": ["files"], "env": {"A": "1", "B": "${B}"}}
READ = {"name": "files", "command": ["npx", "files"], "env": {"A": "1"}, "env_pass": ["B"]}
FORMS: list[tuple[str, str, Any, dict[str, Any]]] = [
    ("claude", ".claude.json", {"mcpServers": {"files": {"type": "stdio", **STDIO}}}, READ),
    ("cursor", ".cursor/mcp.json", {"mcpServers": {"files": STDIO}}, READ),
    ("windsurf", ".codeium/windsurf/mcp_config.json", {"mcpServers": {"files": STDIO}}, READ),
    ("gemini", ".gemini/settings.json", {"mcpServers": {"files": {**STDIO, "timeout": 1}}}, READ),
    ("vscode", ".config/Code/User/mcp.json", {"servers": {"files": {"type": "stdio", **STDIO}}}, READ),
    (
        "zed",
        ".config/zed/settings.json",
        {"context_servers": {"files": {"command": {"path": "npx", "args": ["files"]}}}},
        {"name": "files", "command": ["npx", "files"]},
    ),
    (
        "opencode",
        ".config/opencode/opencode.jsonc",
        {
            "mcp": {
                "files": {
                    "type": "local",
                    "command": ["npx", "files"],
                    "environment": {"A": "1", "B": "{env:B}"},
                    "enabled": False,
                }
            }
        },
        {**READ, "enabled": False},
    ),
    (
        "gemini",
        ".gemini/settings.json",
        {"mcpServers": {"Far Away!": {"httpUrl": "https://x.example/mcp", "headers": {"K": "v"}}}},
        {"name": "far-away", "url": "https://x.example/mcp", "headers": {"K": "v"}},
    ),
]
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"command": "x", "env": {"TOKEN": "${input:token}"}}, "TOKEN has a placeholder"),
    ({"command": "x", "args": ["--key", "${OTHER}"]}, "command has a placeholder"),
    ({"type": "sse", "url": "https://x.example/sse"}, "SSE"),
    ({"url": "https://x.example", "bearer_token_env_var": "T"}, "environment variable"),
    ({"args": ["x"]}, "neither a command nor a URL"),
]


def read(machine: ClientMachine, name: str) -> list[McpEntry]:
    setup = Setup(
        machine=Machine(machine.home, {"HOME": str(machine.home), "PATH": ""}, machine.home),
        launcher=Launcher("/bin/handrail"),
    )
    return find_mcp_entries(find_client(name), setup)


def write(machine: ClientMachine, path: str, text: str) -> None:
    file = machine.home / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.mark.parametrize(("name", "path", "content", "expected"), FORMS)
def test_each_form_of_an_entry_is_read(
    tmp_path: Path, name: str, path: str, content: Any, expected: dict[str, Any]
) -> None:
    machine = ClientMachine(tmp_path, name)
    write(machine, path, json.dumps(content))
    (entry,) = read(machine, name)
    assert (dict(entry.section), entry.problem) == (expected, "")


def test_codex_names_variables_that_a_server_gets(tmp_path: Path) -> None:
    machine = ClientMachine(tmp_path, "codex")
    write(machine, ".codex/config.toml", '[mcp_servers.files]\ncommand = "npx"\nenv_vars = ["B"]\n')
    (entry,) = read(machine, "codex")
    assert entry.section == {"name": "files", "command": ["npx"], "env_pass": ["B"]}


def test_handrail_itself_and_other_values_are_left_out(tmp_path: Path) -> None:
    machine = ClientMachine(tmp_path, "cursor")
    ours = {"handrail": STDIO, "again": {"command": "/x/handrail", "args": ["mcp"]}, "odd": 3}
    write(machine, ".cursor/mcp.json", json.dumps({"mcpServers": ours}))
    assert read(machine, "cursor") == []
    assert read(ClientMachine(tmp_path / "none", "goose"), "goose") == []


@pytest.mark.parametrize(("value", "why"), REFUSED)
def test_what_an_entry_of_handrails_cannot_express_is_said(
    tmp_path: Path, value: dict[str, Any], why: str
) -> None:
    machine = ClientMachine(tmp_path, "cursor")
    write(machine, ".cursor/mcp.json", json.dumps({"mcpServers": {"files": value, "!!": STDIO}}))
    entry, nameless = read(machine, "cursor")
    assert entry.section == {}
    assert why in entry.problem
    assert "letters or digits" in nameless.problem
