"""`handrail servers`: added without a restart, tried, imported from a client, used by an agent, removed."""

import json
import os
import signal
import sys
import tomllib
from pathlib import Path

import pytest
from tests.support.cli_home import Agent, Home, wait_for

pytestmark = pytest.mark.e2e
SERVER = Path(__file__).parents[2] / "support" / "mcp_servers" / "relayed.py"
CONFIG = """\
# mine
default_policy = "ask"  # stays

[[rules]]
effect = "deny"
command = "git push"
"""


def command(folder: Path) -> list[str]:
    folder.mkdir(exist_ok=True)
    return [sys.executable, "-I", str(SERVER), str(folder)]


def test_a_server_is_added_tried_used_and_removed_without_a_restart(alone: Home, tmp_path: Path) -> None:
    config = alone.path / "config.toml"
    config.write_text(CONFIG)
    config.chmod(0o640)
    alone.up()
    assert "handrail servers add" in alone.ok("servers").err
    pid = alone.ok("status", "--json").json["pid"]

    added = alone.ok("servers", "add", "git", "--env", "SECRET=s3cret", "--", *command(tmp_path / "git"))
    alone.ok("servers", "add", "other", "--env-pass", "HOME", "--", *command(tmp_path / "other"))
    assert "No restart" in added.out
    text = config.read_text()
    assert text.startswith(CONFIG)
    assert [each["name"] for each in tomllib.loads(text)["servers"]] == ["git", "other"]
    assert config.stat().st_mode & 0o777 == 0o640

    tried = alone.ok("servers", "test", "git").out
    assert "✓ works" in tried
    assert "git__echo" in tried
    (row, _) = alone.ok("servers", "--json").json
    assert (row["state"], row["variables"], row["clients"]) == ("idle", ["SECRET"], [])
    assert "s3cret" not in alone.ok("servers", "--json").out
    with Agent(alone) as agent:
        asked = agent.call("git__echo", text="hello")
        (approval,) = alone.asked(anywhere=True)
        assert alone.ok("servers", "--json").json[0]["state"] == "running"
        alone.ok("approve", approval["id"])
        assert "hello" in str(agent.answer(asked))
    assert alone.ok("servers", "--json").json[0]["calls_hour"] == 1

    added = alone.ok("rules", "add", "allow", "--tool", "git__echo", "--argument", "text=hel*").out
    assert "git__echo with text = `hel*`" in added
    assert "would have decided 1 of your last 1 question" in added
    tested = [
        alone.ok("rules", "test", "--tool", "git__echo", "--input", json.dumps({"text": text}), "--json").json
        for text in ("help", "other", ["help"])
    ]
    assert [each["effect"] for each in tested] == ["allow", "ask", "ask"]
    (rule, *_) = [each for each in alone.ok("rules", "--json").json if each["arguments"]]
    edited = alone.ok("rules", "edit", rule["id"], "--effect", "deny", "--json").json
    assert edited["arguments"] == [["text", "hel*"]]
    of_another = alone.ok("rules", "add", "allow", "--server", "other").out
    assert "matches 0 of the last" in of_another

    restarted = alone.ok("restart").out
    assert "Taken up" not in restarted, "the entries were accepted when they were added"
    assert alone.ok("status", "--json").json["pid"] != pid
    assert "not accepted" not in alone.ok("servers").out

    alone.ok("servers", "remove", "git")
    assert [row["name"] for row in alone.ok("servers", "--json").json] == ["other"]
    text = config.read_text()
    assert text.startswith(CONFIG)
    assert "s3cret" not in text
    alone.ok("servers", "remove", "other")
    assert config.read_text() == CONFIG


def test_a_change_by_somebody_else_is_not_accepted_with_an_added_server(alone: Home, tmp_path: Path) -> None:
    config = alone.path / "config.toml"
    alone.up()
    config.write_text('default_policy = "allow"\n')
    alone.ok("servers", "add", "git", "--", *command(tmp_path / "git"))
    os.kill(alone.ok("status", "--json").json["pid"], signal.SIGKILL)  # the keeper starts another one
    held = wait_for(lambda: alone.run("rules", "accept").out or None, "the changes that are held back")
    assert "default_policy" in held
    assert "git" not in held
    assert "! not accepted" in alone.ok("servers").out
    assert "accept" in alone.run("servers", "add", "more", "--", "true").err


def test_what_fails_is_said_and_nothing_is_changed(handrail: Home, tmp_path: Path) -> None:
    handrail.ok("servers", "add", "bad", "--", "sh", "-c", "echo no key given >&2; exit 3")
    failed = handrail.run("servers", "test", "bad")
    assert failed.code == 1
    assert "exit code 3" in failed.out
    assert "no key given" in failed.out
    assert "no key given" in handrail.ok("servers", "logs", "bad").out
    shown = handrail.ok("servers")
    assert "! failed" in shown.out
    assert "\nbad could not be started: it ended" in f"\n{shown.err}"
    assert handrail.ok("servers", "restart", "bad").out.startswith("No process of bad runs any more.")
    again = handrail.run("servers", "add", "bad", "--", "true")
    assert (again.code, "already" in again.err) == (1, True)
    named = handrail.run("servers", "add", "Bad Name", "--", "true")
    assert (named.code, named.err.startswith("The name of a server is")) == (1, True)
    assert handrail.run("servers", "add", "empty").code == 2
    assert "NAME=TEXT" in handrail.run("servers", "add", "x", "--env", "KEY", "--", "true").err
    assert handrail.run("servers", "test", "nothing").code == 1
    handrail.ok("servers", "remove", "bad")


def test_the_servers_of_a_client_are_imported(handrail: Home, tmp_path: Path) -> None:
    entries = {
        "Files Server": {"command": "npx", "args": ["-y", "files"], "env": {"ROOT": "/srv", "KEY": "${KEY}"}},
        "held": {"command": "x", "args": ["${input:token}"]},
        "handrail": {"command": "handrail", "args": ["mcp"]},
    }
    folder = handrail.workspace / ".cursor"
    folder.mkdir()
    file = folder / "mcp.json"
    file.write_text(json.dumps({"mcpServers": entries}))
    before = file.read_bytes()
    scope = ("--scope", "project")

    shown = handrail.ok("servers", "import", "cursor", *scope, "--dry-run").out
    assert "${input:token}" in shown
    assert "files-server" in shown
    assert handrail.ok("servers", "--json").json == []
    (added,) = handrail.ok("servers", "import", "cursor", *scope, "--json").json
    again = handrail.ok("servers", "import", "cursor", *scope, "--yes").out

    assert (added["name"], added["target"]) == ("files-server", "npx -y files")
    assert (added["variables"], added["passed"]) == (["ROOT"], ["KEY"])
    assert "is there" in again
    assert file.read_bytes() == before
    assert handrail.run("servers", "import", "gemini", *scope).code == 1
    handrail.ok("servers", "remove", "files-server")
