"""Codex refuses and rewrites before a call, and grants in its permission request."""

import json

import pytest

from handrail.clients.codex import TYPING_WARNING, can_be_typed_into
from handrail.clients.hook_event import Edit, Json, Verdict, Work
from handrail.clients.hooks import DIALECTS

CODEX = DIALECTS["codex"]
BASE: Json = {"session_id": "s", "turn_id": "t", "cwd": "/w", "model": "gpt-5", "permission_mode": "default"}
PATCH = "*** Begin Patch\n*** Update File: a.txt\n@@\n one\n-two\n+three\n*** End Patch\n"
EDIT = Edit(path="a.txt", replacements=(("one\ntwo\n", "one\nthree\n"),))


def before(tool: str, input: Json, event: str = "PreToolUse") -> Json:
    return {**BASE, "hook_event_name": event, "tool_name": tool, "tool_input": input, "tool_use_id": "call_1"}


@pytest.mark.parametrize(
    ("tool", "input", "work"),
    [
        ("Bash", {"command": "touch x && ls"}, Work(sort="command", commands=("touch x && ls",))),
        ("Bash", {"command": "bash --norc"}, Work(sort="command", commands=("bash --norc",), warning=TYPING_WARNING)),
        ("apply_patch", {"command": PATCH}, Work(sort="edit", edits=(EDIT,))),
        ("Bash", {"command": f"apply_patch <<'EOF'\n{PATCH}EOF"}, Work(sort="edit", edits=(EDIT,), unreported=True)),
        ("update_plan", {"plan": []}, Work(sort="harmless")),
        ("view_image", {"path": "/w/a.png"}, Work(sort="read", paths=("/w/a.png",))),
        ("mcp__echo__echo", {"text": "hi"}, Work(sort="mcp", server="echo", server_tool="echo")),
        ("mcp__handrail__read_file", {}, Work(sort="mcp", server="handrail", server_tool="read_file", ours=True)),
        ("tool_of_tomorrow", {}, Work(sort="other")),
    ],
)  # fmt: skip
def test_the_work_of_a_built_in_tool_is_known(tool: str, input: Json, work: Work) -> None:
    assert CODEX.read(before(tool, input), {}).work == work


def test_a_patch_that_cannot_be_read_asks() -> None:
    work = CODEX.read(before("apply_patch", {"command": "*** Begin Patch\nnothing"}), {}).work

    assert work is not None
    assert work.sort == "other"
    assert "A patch begins with" in work.warning


@pytest.mark.parametrize(
    ("line", "warns"),
    [
        ("bash", True),
        ("/usr/bin/env python3", True),
        ("python3.12 -q", True),
        ("cd a && node", True),
        ("VAR=1 sudo -u me bash", True),
        ("sudo -i", True),
        ("python -i x.py", True),
        ("psql -h db", True),
        ("ssh host", True),
        ("bash x.sh", False),
        ("bash -lc 'ls'", False),
        ("python -m http.server", False),
        ("node --version", False),
        ("git commit -m 'run bash'", False),
        ("echo 'open", False),
    ],
)
def test_a_program_that_codex_can_type_into_is_recognised(line: str, warns: bool) -> None:
    assert can_be_typed_into(line) is warns


def test_an_allow_before_a_call_prints_nothing_because_codex_calls_it_unsupported() -> None:
    event = CODEX.read(before("Bash", {"command": "ls"}), {})

    assert CODEX.answer(event, Verdict(effect="allow")).stdout == ""


def test_a_changed_input_before_a_call_is_applied() -> None:
    event = CODEX.read(before("Bash", {"command": "ls"}), {})

    answer = CODEX.answer(event, Verdict(effect="allow", input={"command": "ls -l"}))

    output = json.loads(answer.stdout)["hookSpecificOutput"]
    assert (output["permissionDecision"], output["updatedInput"]) == ("allow", {"command": "ls -l"})


def test_a_permission_request_is_granted_without_a_changed_input() -> None:
    event = CODEX.read(before("Bash", {"command": "ls", "description": "why"}, "PermissionRequest"), {})

    same = CODEX.answer(event, Verdict(effect="allow", input=event.input))
    changed = CODEX.answer(event, Verdict(effect="allow", input={"command": "ls -l", "description": "why"}))

    assert json.loads(same.stdout)["hookSpecificOutput"]["decision"] == {"behavior": "allow"}
    refusal = json.loads(changed.stdout)["hookSpecificOutput"]["decision"]
    assert refusal["behavior"] == "deny"
    assert refusal["message"].endswith("ls -l")


def test_a_result_is_plain_text_and_that_of_a_patch_begins_with_its_exit_code() -> None:
    command = {**before("Bash", {"command": "ls"}, "PostToolUse"), "tool_response": "made-here\n"}
    patch = {
        **before("apply_patch", {}, "PostToolUse"),
        "tool_response": "Exit code: 1\nWall time: 0 seconds\nOutput:\n",
    }

    first, second = CODEX.read(command, {}), CODEX.read(patch, {})

    assert (first.output, first.exit_code, first.failed) == ("made-here\n", None, False)
    assert (second.exit_code, second.failed) == (1, True)
