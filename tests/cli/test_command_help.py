"""Help starts with examples and groups the commands; a mistake on the command line exits with 2."""

import re
import subprocess
import sys

import pytest
from tests.support.cli_home import BOUND

from handrail.cli.command_line import run

COMMANDS = [
    "up",
    "down",
    "pair",
    "restart",
    "open",
    "status",
    "doctor",
    "config",
    "mcp",
    "calls",
    "cancel",
    "complete",
    "approvals",
    "approve",
    "deny",
    "pause",
    "resume",
    "rules",
    "servers",
    "trust",
    "undo",
    "terminals",
    "terminal",
    "shell",
    "agent",
    "agents",
    "chat",
    "keys",
    "threads",
    "thread",
    "transcripts",
    "clients",
    "editors",
    "export",
    "import",
    "search",
    "connect",
    "disconnect",
    "credential",
    "credentials",
    "demo",
]

HEADINGS = {
    "Run": "up",
    "Decide": "calls",
    "Terminals": "terminals",
    "Agents": "agents",
    "Rules": "rules",
    "Servers": "servers",
    "Clients": "connect",
    "Diagnose": "doctor",
}
"""Each heading of the overview with its first command, in order."""

INNER = [
    ["credentials", "revoke"],
    *(["keys", name] for name in ("set", "remove")),
    *(["thread", name] for name in ("rename", "delete")),
    *(["rules", name] for name in ("add", "remove", "disable", "enable", "move", "edit", "test")),
    *(["servers", name] for name in ("add", "remove", "import", "restart", "test", "logs")),
    *(["terminal", name] for name in ("read", "send", "search", "close")),
]


def test_the_commands_are_these_and_no_others(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Examples:\n  handrail up ")
    assert sorted(_commands_in(shown)) == sorted(COMMANDS)


def test_the_overview_lists_each_command_once_under_a_heading(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    shown = capsys.readouterr().out
    found = re.findall(r"^(\w+):$", shown, re.MULTILINE)
    assert found == ["Examples", "Options", *HEADINGS]
    sections = re.split(r"^\w+:$", _overview(shown), flags=re.MULTILINE)[1:]
    listed = [name for section in sections for name in _commands_in(section)]
    assert sorted(listed) == sorted(set(listed)) == sorted(COMMANDS)
    assert [_commands_in(section)[0] for section in sections] == list(HEADINGS.values())


def test_the_overview_fits_80_columns_and_cuts_no_description(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["--help"]) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    assert [line for line in _overview(shown).splitlines() if line.endswith("...")] == []


@pytest.mark.parametrize(
    "group", sorted({command for command, _ in INNER} | {"agents", "editors", "sign-ins"})
)
def test_a_group_cuts_no_description(
    group: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run([group, "--help"]) == 0
    _, options_and_commands = capsys.readouterr().out.split("\nOptions:\n")
    assert "..." not in options_and_commands


def _overview(shown: str) -> str:
    """The part of the help that lists the commands."""
    return shown[shown.index("\nRun:\n") :]


def _commands_in(shown: str) -> list[str]:
    return re.findall(r"^  ([a-z]+) +\S", shown[shown.find("\nRun:\n") + 1 :], re.MULTILINE)


@pytest.mark.parametrize("command", [*([name] for name in COMMANDS), *INNER])
def test_help_starts_with_examples(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*command, "--help"]) == 0
    first = " ".join(["handrail", *command])
    assert capsys.readouterr().out.startswith(f"Examples:\n  {first}")


@pytest.mark.parametrize(
    "wrong",
    [
        ["nonsense"],
        ["cancel"],
        ["up", "--port", "many"],
        ["calls", "--limit", "0"],
        ["calls", "-f", "--tool", "read_file"],
        ["approve", "--yes", "a1"],
        ["approve", "a1", "--session", "--always"],
        ["approve", "a1", "--pattern", "git"],
        ["approve", "a1", "--session", "--scope", "user"],
        ["approve", "a1", "--always", "--scope", "session"],
        ["approve", "a1", "--always", "--expires", "soon"],
        ["approve", "a1", "--input", "{"],
        ["approve", "a1", "--input", "[]"],
        ["approve", "a1", "--input", "{}", "--content", "x"],
        ["approve", "a1", "--input", "{}", "--always"],
        ["rules", "add"],
        ["rules", "add", "forbid", "git push"],
        ["rules", "add", "allow", "git push", "--expires", "7"],
        ["rules", "test"],
        ["rules", "test", "git push", "--tool", "write_file"],
        ["rules", "test", "git push", "--input", "{}"],
        ["rules", "remove"],
        ["trust", "--list", "--undo"],
        ["undo"],
        ["shell", "--no-such-option"],
        ["shell", "--undo"],
        ["terminal", "send", "t1"],
        ["keys", "set"],
        ["keys", "set", "nobody"],
        ["keys", "remove", "OPENAI_BASE_URL"],
        ["terminal", "read", "t1", "--screen", "--raw"],
        ["terminal", "read", "t1", "--lines", "3", "--after", "4"],
    ],
)
def test_a_mistake_in_the_command_line_ends_with_2(
    wrong: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(wrong) == 2
    assert "Usage: handrail" in capsys.readouterr().err


@pytest.mark.parametrize(("argument", "code"), [("--help", 0), ("--nonsense", 2)])
def test_our_own_agent_is_described_by_itself(argument: str, code: int) -> None:
    command = [sys.executable, "-m", "handrail", "agent", argument]
    done = subprocess.run(command, capture_output=True, text=True, timeout=BOUND, check=False)
    assert done.returncode == code
    said = done.stdout if code == 0 else done.stderr
    assert said.startswith(
        "Examples:\n  handrail agent " if code == 0 else "handrail agent takes no '--nonsense'"
    )


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", capsys.readouterr().out)


def test_no_command_at_all_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    run([])
    shown = capsys.readouterr()
    assert (shown.out + shown.err).startswith("Examples:")
