"""The entries of each client are the documented ones, and reach a launcher with any path."""

import json
import os
import shlex
import signal
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.support.client_machine import ClientMachine

from handrail.clients.claude import HOOKS as CLAUDE_HOOKS
from handrail.clients.client_facts import HostedAgent, is_older, version_key
from handrail.clients.cline import REPORTS
from handrail.clients.copilot import HOOKS as COPILOT_HOOKS
from handrail.clients.cursor import CURSOR_HOOKS, WINDSURF_HOOKS
from handrail.clients.gemini import GEMINI_HOOKS
from handrail.clients.kimi import GOOSE_HOOKS, KIMI_HOOKS
from handrail.clients.known_clients import NAMES, find_client
from handrail.clients.launcher_path import Launcher

ODD = "/opt/it's $HOME/hand rail"


@pytest.fixture
def machine(tmp_path: Path) -> ClientMachine:
    return ClientMachine(tmp_path, *NAMES)


def entries(machine: ClientMachine, name: str, **options: Any) -> dict[tuple[str, ...], Any]:
    """File and pointer → value, as the client gets it."""
    client = find_client(name)
    pieces = client.pieces(machine.setup(client, **options))
    return {(str(piece.path.relative_to(machine.home)), *piece.pointer): piece.value for piece in pieces}


CLOSED = "/bin/handrail hook {} || {{ [ $? -eq 2 ] || echo 'Handrail did not answer; refused' >&2; exit 2; }}"


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        (
            "claude",
            (".claude.json", "mcpServers", "handrail"),
            {"type": "stdio", "command": "/bin/handrail", "args": ["mcp"], "env": {}},
        ),
        (
            "claude",
            (".claude/settings.json", "hooks", "PreToolUse"),
            {
                "matcher": "*",
                "hooks": [
                    {
                        "type": "command",
                        "command": "/bin/handrail",
                        "args": ["hook", "claude"],
                        "timeout": 86400,
                        "onFailure": "block",
                        "statusMessage": "Waiting in Handrail",
                    }
                ],
            },
        ),
        (
            "codex",
            (".codex/config.toml", "mcp_servers", "handrail"),
            {"command": "/bin/handrail", "args": ["mcp"]},
        ),
        (
            "codex",
            (".codex/hooks.json", "hooks", "PreToolUse"),
            {
                "matcher": "*",
                "hooks": [
                    {
                        "type": "command",
                        "command": CLOSED.format("codex"),
                        "timeout": 86400,
                        "statusMessage": "Waiting in Handrail",
                    }
                ],
            },
        ),
        (
            "gemini",
            (".gemini/settings.json", "mcpServers", "handrail"),
            {"command": "/bin/handrail", "args": ["mcp"], "trust": True},
        ),
        (
            "gemini",
            (".gemini/settings.json", "hooks", "BeforeTool"),
            {
                "matcher": "*",
                "hooks": [
                    {
                        "type": "command",
                        "name": "handrail",
                        "command": CLOSED.format("gemini"),
                        "timeout": 86400000,
                    }
                ],
            },
        ),
        (
            "opencode",
            (".config/opencode/opencode.jsonc", "mcp", "handrail"),
            {"type": "local", "command": ["/bin/handrail", "mcp"], "enabled": True},
        ),
        (
            "copilot",
            (".copilot/mcp-config.json", "mcpServers", "handrail"),
            {"tools": ["*"], "type": "local", "command": "/bin/handrail", "args": ["mcp"]},
        ),
        (
            "kimi",
            (".kimi-code/mcp.json", "mcpServers", "handrail"),
            {"command": "/bin/handrail", "args": ["mcp"]},
        ),
        (
            "cline",
            (".cline/data/settings/cline_mcp_settings.json", "mcpServers", "handrail"),
            {"transport": {"type": "stdio", "command": "/bin/handrail", "args": ["mcp"]}},
        ),
        (
            "cursor",
            (".cursor/hooks.json", "hooks", "preToolUse"),
            {
                "command": CLOSED.format("cursor"),
                "timeout": 86400,
                "matcher": "^(?!MCP:)",
                "failClosed": True,
            },
        ),
        (
            "zed",
            (".config/zed/settings.json", "context_servers", "handrail"),
            {"command": "/bin/handrail", "args": ["mcp"], "env": {}},
        ),
        (
            "zed",
            (".config/zed/settings.json", "agent_servers", "Handrail"),
            {"type": "custom", "command": "/bin/handrail", "args": ["agent"], "env": {}},
        ),
        (
            "zed",
            (".config/zed/settings.json", "agent_servers", "Gemini CLI (Handrail)"),
            {"type": "custom", "command": "/bin/gemini", "args": ["--acp"], "env": {}},
        ),
        (
            "jetbrains",
            (".jetbrains/acp.json", "agent_servers", "Gemini CLI (Handrail)"),
            {"command": "/bin/gemini", "args": ["--acp"], "env": {}},
        ),
    ],
)
def test_an_entry_is_the_documented_one(
    machine: ClientMachine, name: str, place: tuple[str, ...], value: object
) -> None:
    agents = (HostedAgent("Gemini CLI", ("/bin/gemini", "--acp")),)
    assert entries(machine, name, launcher=Launcher("/bin/handrail"), agents=agents)[place] == value


def test_vscode_gets_no_server_on_stdio(machine: ClientMachine) -> None:
    """It would launch a door itself, and its extension could no longer decide."""
    assert entries(machine, "vscode", launcher=Launcher("/bin/handrail")) == {}


def test_kimi_gets_no_limit_that_voids_its_hooks_and_copilot_claudes_names(machine: ClientMachine) -> None:
    machine.connect("kimi")
    machine.connect("copilot")
    hooks = machine.json(".copilot/hooks/handrail.json")["hooks"]
    assert {*hooks} == {line.event for line in COPILOT_HOOKS}
    assert hooks["PreToolUse"][0]["timeoutSec"] == hooks["PreToolUse"][0]["timeout"] == 86400
    assert "PermissionRequest" not in {line.event for line in (*KIMI_HOOKS, *COPILOT_HOOKS)}
    config = machine.home / ".kimi-code/config.toml"
    assert max(hook["timeout"] for hook in tomllib.loads(config.read_text())["hooks"]) == 590
    kimi = find_client("kimi")
    assert kimi.overrides(machine.setup(kimi)) == []
    config.write_text(config.read_text() + '\n[[hooks]]\nevent = "Stop"\ncommand = "x"\ntimeout = 601\n')
    assert "Kimi ignores all hooks" in kimi.overrides(machine.setup(kimi))[0]


def test_a_report_of_kimi_outlives_the_signals_that_end_its_hooks(tmp_path: Path) -> None:
    """Kimi sends them to the process group of the hook, while the hook is still starting."""
    started, go_on, report = (tmp_path / name for name in ("started", "go on", "report"))
    os.mkfifo(started)
    os.mkfifo(go_on)
    launcher = tmp_path / "handrail"
    launcher.write_text(f"#!/bin/sh\nexec 3<>'{go_on}'\necho > '{started}'\nread _ <&3\ncat > '{report}'\n")
    launcher.chmod(0o755)
    machine = ClientMachine(tmp_path / "machine", "kimi", launcher=str(launcher))
    machine.connect("kimi")
    hooks = tomllib.loads((machine.home / ".kimi-code/config.toml").read_text())["hooks"]
    (line,) = [hook["command"] for hook in hooks if hook["event"] == "PostToolUse"]
    hook = subprocess.Popen(
        ["/bin/sh", "-c", line], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    assert hook.stdin is not None
    assert hook.stdout is not None
    hook.stdin.write(b"the end of a call")
    hook.stdin.close()
    started.read_text()
    os.killpg(hook.pid, signal.SIGTERM)
    os.killpg(hook.pid, signal.SIGKILL)
    assert hook.wait(timeout=10) == -signal.SIGKILL
    with open(os.open(go_on, os.O_WRONLY | os.O_NONBLOCK), "w") as reader:  # fails if it was killed too
        reader.write("\n")
    assert hook.stdout.read() == b"", "the hook has ended"
    hook.stdout.close()
    assert report.read_text() == "the end of a call"


@pytest.mark.parametrize(
    "events",
    [
        CLAUDE_HOOKS,
        COPILOT_HOOKS,
        CURSOR_HOOKS,
        GEMINI_HOOKS,
        GOOSE_HOOKS,
        KIMI_HOOKS,
        WINDSURF_HOOKS,
    ],
)
def test_the_event_that_decides_comes_first_and_reports_never_block(events: Any) -> None:
    assert events[0].is_gate
    reports = [line for line in events if not line.waits]
    assert all(line.seconds <= 30 for line in reports)


@pytest.mark.parametrize(("timeout", "written"), [(0, 590), (600, 590), (20, 20)])
def test_a_hook_timeout_is_written_and_told_to_the_hook_that_waits(
    machine: ClientMachine, timeout: int, written: int
) -> None:
    machine.connect("kimi", hook_timeout=timeout)
    hooks = tomllib.loads((machine.home / ".kimi-code/config.toml").read_text())["hooks"]
    limits = {hook["event"]: hook["timeout"] for hook in hooks}
    assert (limits["PreToolUse"], limits["PostToolUse"]) == (written, 30)
    told = [hook["event"] for hook in hooks if f"--timeout {timeout}" in hook["command"]]
    assert told == (["PreToolUse"] if timeout else [])


@pytest.mark.parametrize("home", ["", '/srv/it\'s "here"'])
def test_a_path_with_spaces_and_quotes_reaches_the_program(tmp_path: Path, home: str) -> None:
    program = tmp_path / "it's $HOME" / 'hand "rail'
    program.parent.mkdir()
    program.write_text('#!/bin/sh\nprintf "%s|" "$HANDRAIL_HOME" "$@"; exit 3\n')
    program.chmod(0o755)
    launcher = Launcher(str(program), home)

    def run(*command: str) -> tuple[str, str, int]:
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=30, env={"PATH": "/usr/bin:/bin"}
        )
        return done.stdout, done.stderr, done.returncode

    expected = f"{home}|hook|claude|"
    assert run(*launcher.argv("hook", "claude")) == (expected, "", 3)
    assert run("/bin/sh", "-c", launcher.line("hook", "claude")) == (expected, "", 3)
    refusal = "Handrail did not answer; refused\n"
    assert run("/bin/sh", "-c", launcher.closed_line("hook", "claude")) == (expected, refusal, 2)
    assert run("/bin/sh", "-c", launcher.open_line("hook", "claude")) == (expected, "", 0)
    program.write_text('#!/bin/sh\necho "no: rm" >&2; exit 2\n')
    assert run("/bin/sh", "-c", launcher.closed_line("hook", "claude")) == ("", "no: rm\n", 2)
    program.unlink()
    assert run("/bin/sh", "-c", launcher.closed_line("hook", "claude"))[2] == 2


def test_cline_refuses_in_its_own_format_if_handrail_is_gone(machine: ClientMachine) -> None:
    program = machine.home / "hand rail"
    program.write_text("#!/bin/sh\ncat\n")
    program.chmod(0o755)
    machine.connect("cline", launcher=Launcher(str(program)))
    hook = machine.home / ".cline/hooks/PreToolUse"
    assert {file.name for file in hook.parent.iterdir()} == {"PreToolUse", *REPORTS}

    def run(payload: str) -> str:
        done = subprocess.run([hook], check=True, input=payload, capture_output=True, text=True, timeout=30)
        return done.stdout

    assert run('{"a": "$x %s"}') == '{"a": "$x %s"}'
    program.unlink()
    assert json.loads(run("{}")) == {"cancel": True, "errorMessage": "Handrail did not answer; refused"}


def test_variables_move_the_files(machine: ClientMachine) -> None:
    moved = {
        "claude": "CLAUDE_CONFIG_DIR",
        "codex": "CODEX_HOME",
        "qwen": "QWEN_HOME",
        "kimi": "KIMI_CODE_HOME",
        "cline": "CLINE_DIR",
        "copilot": "COPILOT_HOME",
        "gemini": "GEMINI_CLI_HOME",
        "opencode": "XDG_CONFIG_HOME",
    }
    for name, variable in moved.items():
        machine.environ[variable] = str(machine.home / "moved" / name)
        assert {place[0].split("/")[:2] == ["moved", name] for place in entries(machine, name)} == {True}


def test_versions_are_compared_by_their_numbers() -> None:
    assert is_older("2.1.9", "2.1.10")
    assert not is_older("", "2.1.10")
    assert version_key("codex-cli 0.166.0") == [0, 166, 0]


def test_a_launcher_with_odd_characters_is_quoted_for_the_shell() -> None:
    assert shlex.split(Launcher(ODD).line("mcp")) == [ODD, "mcp"]
