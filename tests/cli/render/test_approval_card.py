"""An approval in full, from what will run."""

from typing import Any, cast

import pytest

from handrail.cli.render.approval_card import is_told_later, show_approval, show_edit

ASKED: dict[str, Any] = {
    "id": "a1",
    "tool": "execute_command",
    "risk": "high",
    "reasons": ["runs a command outside the workspace"],
    "why": "No rule allows it, so you are asked.",
    "caller": {"client": "claude", "workspace": "/home/me/api"},
    "input": {"path": "x"},
    "description": "Run a command.\n\nAt length.",
    "usual": {"median_ms": 40_000, "p95_ms": 60_000, "of": 12},
    "trusted": True,
    "client_gone": False,
    "claims": [],
    "verdicts": [],
}


def shown(preview: dict[str, Any] | None, capsys: pytest.CaptureFixture[str]) -> str:
    approval: Any = {**ASKED, "preview": preview}
    show_approval(approval)
    return capsys.readouterr().out


def command(text: str, environment: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"kind": "command", "command": text, "cwd": "/home/me", "environment": environment}


def test_a_command_is_whole_with_its_place_risk_and_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    long = "echo " + "x" * 500
    out = shown(command(f"{long}\nrm -rf y", ("TOKEN",)), capsys)
    assert out.startswith("execute_command · HIGH · claude ▸ api · a1\n")
    assert "Why high: runs a command outside the workspace" in out
    assert f"  {long}\n  rm -rf y\n" in out
    assert "  in /home/me\n" in out
    assert "  with TOKEN set" in out
    assert "⚠" not in out


def test_what_hides_in_a_command_is_spelled_out_and_flagged(capsys: pytest.CaptureFixture[str]) -> None:
    out = shown(command("ls\x0brm\u2028-rf\r"), capsys)
    assert "ls\\vrm\\u{2028}-rf\\r" in out
    assert "⚠ Contains hidden characters" in out


def test_a_diff_is_shown_line_by_line_and_no_odd_line_break_hides_in_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    diff = {
        "kind": "diff",
        "path": "/home/me/api/a.py",
        "diff": "@@ -1 +1 @@\n-one\n+two\u2028three\n",
        "added": 1,
        "removed": 1,
        "creates": False,
        "deletes": False,
        "notes": ["The file becomes executable."],
    }
    out = shown(diff, capsys)
    assert "changes /home/me/api/a.py  +1 \N{MINUS SIGN}1\n" in out
    assert "  -one\n  +two\\u{2028}three\n" in out
    assert "The file becomes executable." in out


def test_a_path_or_a_bare_input_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert "  /etc/passwd\n" in shown({"kind": "path", "path": "/etc/passwd"}, capsys)
    assert "  path: x\n" in shown(None, capsys)


def test_an_input_without_a_preview_is_json_and_the_agents_words_are_apart(
    capsys: pytest.CaptureFixture[str],
) -> None:
    work: dict[str, Any] = {
        "title": "Bash",
        "input": {"a": None, "b": "ü"},
        "locations": [],
        "before": None,
        "explanation": "Running: ls",
    }
    show_approval(cast("Any", {**ASKED, "tool": "agent_work", "input": work, "preview": None}))
    out = capsys.readouterr().out
    assert 'input: {"a": null, "b": "ü"}' in out
    assert "Agent says: “Running: ls”" in out
    assert "locations" not in out
    assert "None" not in out

    issue = {"title": "Broken", "comment": "What the server gets."}
    show_approval(cast("Any", {**ASKED, "tool": "github__create_issue", "input": issue, "preview": None}))
    out = capsys.readouterr().out
    assert "  comment: What the server gets.\n" in out
    assert "Agent says" not in out


@pytest.mark.parametrize(
    ("tool", "door", "client", "later"),
    [
        ("agent_work", "acp", "codex", True),
        ("agent_work", "acp", "handrail", False),
        ("write_file", "acp", "codex", False),
        ("execute_command", "stdio", "codex", False),
    ],
)
def test_an_agent_whose_protocol_has_no_place_for_a_reason_reads_it_later(
    tool: str, door: str, client: str, later: bool
) -> None:
    approval: Any = {**ASKED, "tool": tool, "caller": {"door": door, "client": client, "workspace": None}}
    assert is_told_later(approval) is later


def test_what_would_be_typed_stands_with_its_terminal_owner_program_and_place(
    capsys: pytest.CaptureFixture[str],
) -> None:
    typing: dict[str, Any] = {
        "kind": "input",
        "terminal": "t1",
        "name": "my shell",
        "text": "cd /\rrm -rf x\x1b[201~\r",
        "keys": ["enter"],
        "cwd": "/home/me",
        "foreground": "bash",
        "owner": "a person",
    }
    out = shown(typing, capsys)
    assert "  cd /⏎\n  rm -rf x\\e[201~ ⏎\n" in out
    assert "  keys enter\n" in out
    assert "  typed into my shell (t1) of a person\n" in out
    assert "  read by bash, in /home/me\n" in out
    assert "⚠ Contains hidden characters" in out


@pytest.mark.parametrize(
    ("preview", "input", "line"),
    [
        (None, {"path": "edited"}, "  path: edited\n"),
        (
            {"kind": "form", "message": "Who?", "schema": {"properties": {"name": {"type": "string"}}}},
            {"values": {"name": "edited"}},
            "  name (string): edited\n",
        ),
    ],
)
def test_an_edit_is_shown_with_the_edited_input(
    preview: Any, input: Any, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    approval: Any = ASKED
    edit: Any = {
        "risk": "low",
        "reasons": [],
        "effect": "ask",
        "why": "",
        "claims": [],
        "verdicts": [],
        "tells": "The input was edited.",
        "preview": preview,
    }
    show_edit(approval, edit, input)
    out = capsys.readouterr().out
    assert line in out
    assert "path: x" not in out
