"""`handrail connect` moves a client's MCP servers behind Handrail, and `handrail disconnect` moves them back."""

import json
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.cli_home import Screen
from tests.support.client_desk import Desk

pytestmark = pytest.mark.e2e
SERVER = Path(__file__).parents[2] / "support" / "mcp_servers" / "relayed.py"
TEXT = """\
{
  // mine
  "theme": "dark",
  "mcpServers": {
    "git": {"command": %s, "args": %s, "env": {"API_KEY": "s3cret-99", "ROOT": "/srv"}}, // for work
    "far": {"httpUrl": "https://far.example/mcp", "headers": {"Authorization": "Bearer b34rer"}},
    "asks": {"command": "x", "args": ["${input:token}"]},
  },
}
"""


@pytest.fixture(autouse=True)
def leaves_nothing(desk: Desk) -> Iterator[None]:
    """The common daemon has no server and no secret after a test."""
    yield
    for name in names(desk):
        desk.run("servers", "remove", name)
    for name in secrets(desk):
        desk.run("servers", "secret", "remove", name)


def write(desk: Desk, tmp_path: Path, path: str = ".gemini/settings.json") -> Path:
    file = desk.machine.home / path
    file.parent.mkdir(parents=True, exist_ok=True)
    arguments = ["-I", str(SERVER), str(tmp_path)]
    file.write_text(TEXT % (json.dumps(sys.executable), json.dumps(arguments)))
    file.chmod(0o640)
    return file


def names(desk: Desk) -> list[str]:
    return [row["name"] for row in desk.ok("servers", "--json").json]


def config(desk: Desk) -> str:
    file = desk.handrail.path / "config.toml"
    return file.read_text() if file.exists() else ""


def secrets(desk: Desk) -> list[str]:
    file = desk.handrail.path / "secrets.json"
    return sorted(json.loads(file.read_text())) if file.exists() else []


def test_servers_are_moved_with_their_secrets_and_back_with_every_byte(desk: Desk, tmp_path: Path) -> None:
    desk.machine.install("gemini")
    file = write(desk, tmp_path)
    before, settings = desk.machine.snapshot(), config(desk)

    kept = desk.ok("connect", "gemini", "--yes")
    assert "2 MCP servers by itself (git, far)" in kept.err
    assert "handrail connect gemini --servers move" in kept.err
    assert names(desk) == []
    assert '"far": ' in kept.out
    assert "b34rer" not in kept.out

    shown = desk.ok("connect", "gemini", "--servers", "move", "--dry-run")
    assert names(desk) == []
    moved = desk.ok("connect", "gemini", "--servers", "move", "--yes")
    for out in (shown.out, moved.out):
        assert '-    "git": ' in out
        assert "API_KEY" in out
        assert "s3cret-99" not in out
        assert "b34rer" not in out
    assert "asks stays with Gemini CLI: command has a placeholder" in moved.err

    assert names(desk) == ["far", "git"]
    first, second = tomllib.loads(config(desk))["servers"]
    assert (first["secrets"], first["env"]) == (["API_KEY"], {"ROOT": "/srv"})
    assert second["headers"] == {"Authorization": "Bearer {secret:FAR_AUTHORIZATION}"}
    assert "s3cret-99" not in config(desk)
    assert secrets(desk) == ["API_KEY", "FAR_AUTHORIZATION"]
    text = file.read_text()
    assert "// mine" in text
    assert '"git"' not in text
    assert '"asks"' in text
    assert "✓ works" in desk.ok("servers", "test", "git").out
    assert "nothing to change" in desk.ok("connect", "gemini", "--yes", "--servers", "keep").out
    assert desk.states()["gemini"]["state"] == "connected"

    done = desk.ok("connect", "gemini", "--undo", "--yes")
    assert (
        "To be removed from Handrail: git, far, with the stored secrets API_KEY, FAR_AUTHORIZATION"
        in done.err
    )
    assert "s3cret-99" not in done.out
    assert desk.machine.snapshot() == before
    assert config(desk) == settings
    assert (names(desk), secrets(desk)) == ([], [])


def test_a_server_that_two_clients_had_stays_until_both_are_disconnected(desk: Desk, tmp_path: Path) -> None:
    for name, path in (("gemini", ".gemini/settings.json"), ("qwen", ".qwen/settings.json")):
        desk.machine.install(name)
        write(desk, tmp_path, path)
        desk.ok("connect", name, "--servers", "move", "--yes")
    assert names(desk) == ["far", "git"]

    first = desk.ok("disconnect", "gemini", "--yes")
    assert "git stays behind Handrail: it was moved from qwen, too." in first.err
    assert names(desk) == ["far", "git"]
    desk.ok("disconnect", "qwen", "--yes")
    assert (names(desk), secrets(desk)) == ([], [])


def test_a_server_that_was_edited_since_stays_behind_handrail_and_that_is_said(
    desk: Desk, tmp_path: Path
) -> None:
    desk.machine.install("gemini")
    file = write(desk, tmp_path)
    before = file.read_bytes()
    desk.ok("connect", "gemini", "--servers", "move", "--yes")
    desk.ok("servers", "remove", "git")
    desk.ok("servers", "add", "git", "--", "other")

    done = desk.ok("disconnect", "gemini", "--yes")

    assert "git stays behind Handrail: its entry in config.toml was changed since." in done.err
    assert names(desk) == ["git"]
    assert file.read_bytes() == before


def test_a_move_that_fails_leaves_everything_as_it_was(desk: Desk, tmp_path: Path) -> None:
    desk.machine.install("claude")
    entry = {"command": "x", "env": {"API_KEY": "s3cret-99"}}
    (desk.machine.home / ".claude.json").write_text(json.dumps({"mcpServers": {"git": entry}}))
    desk.ok("connect", "claude", "--yes")
    program = desk.machine.bin / "claude"
    program.write_text('#!/bin/sh\n[ "$1" = --version ] && echo 2.1.325 && exit\necho is busy >&2; exit 1\n')
    before, settings = desk.machine.snapshot(), config(desk)

    done = desk.run("connect", "claude", "--servers", "move", "--yes")

    assert done.code == 1
    assert "failed with status 1: is busy" in done.err
    assert "No server was moved." in done.err
    assert desk.machine.snapshot() == before
    assert (config(desk), names(desk), secrets(desk)) == (settings, [], [])
    assert desk.states()["claude"]["state"] == "connected"
    desk.machine.install("claude")


def test_at_a_terminal_the_move_is_asked_about_after_the_connection(desk: Desk, tmp_path: Path) -> None:
    desk.machine.install("gemini")
    write(desk, tmp_path)
    with Screen(desk.handrail, "connect", "gemini") as screen:
        screen.shows("Write this for Gemini CLI?")
        screen.press("y", "Move these 2 behind Handrail?")
        screen.press("n", "They stay as they are.")
    assert (desk.states()["gemini"]["state"], names(desk)) == ("connected", [])
    with Screen(desk.handrail, "connect", "gemini") as screen:
        screen.shows("Move these 2 behind Handrail?")
        screen.press("y", "✓ moved")
    assert names(desk) == ["far", "git"]


@pytest.mark.parametrize("arguments", [("--all",), ("gemini", "--no-mcp"), ("claude", "--locked")])
def test_a_move_needs_one_client_with_handrails_server(desk: Desk, arguments: tuple[str, ...]) -> None:
    done = desk.run("connect", *arguments, "--servers", "move")
    assert done.code == 2
    assert "one client" in done.err


def test_servers_of_vscode_are_moved_without_an_entry_of_ours(desk: Desk, tmp_path: Path) -> None:
    file = desk.machine.home / ".config/Code/User/mcp.json"
    entry: dict[str, Any] = {"command": sys.executable, "args": ["-I", str(SERVER), str(tmp_path)]}
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"servers": {"git": entry}}))
    before = desk.machine.snapshot()
    code = desk.machine.bin / "code"
    code.write_text("#!/bin/sh\nexit 0\n")
    code.chmod(0o755)

    desk.ok("connect", "vscode", "--servers", "move", "--yes")
    assert json.loads(file.read_text()) == {"servers": {}}
    assert names(desk) == ["git"]
    desk.ok("disconnect", "vscode", "--yes")
    assert desk.machine.snapshot() == before
    assert names(desk) == []
