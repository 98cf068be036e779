"""Gemini CLI has events and answers of its own; Qwen Code has Gemini's tools and Claude's format."""

import json

import pytest

from handrail.clients.hook_event import Edit, Json, Verdict, Work
from handrail.clients.hooks import DIALECTS

GEMINI, QWEN = DIALECTS["gemini"], DIALECTS["qwen"]
BASE: Json = {
    "session_id": "d4c2",
    "transcript_path": "/h/.gemini/chat.jsonl",
    "cwd": "/w",
    "timestamp": "2026-11-18",
}
LAUNCHER = "/home/ada/.local/bin/handrail"


def gemini(tool: str, input: Json, event: str = "BeforeTool", **more: Json | str) -> Json:
    return {**BASE, "hook_event_name": event, "tool_name": tool, "tool_input": input, **more}


def qwen(tool: str, input: Json, event: str = "PreToolUse", **more: Json | str) -> Json:
    return {**gemini(tool, input, event, **more), "permission_mode": "yolo", "tool_use_id": "toolu_1"}


@pytest.mark.parametrize(
    ("tool", "input", "work"),
    [
        ("run_shell_command", {"command": "ls", "dir_path": "sub"}, Work(sort="command", commands=("ls",), cwd="sub")),
        ("write_file", {"file_path": "/w/a", "content": "x"}, Work(sort="edit", edits=(Edit(path="/w/a", content="x"),))),
        ("replace", {"file_path": "/w/a", "instruction": "i", "old_string": "1", "new_string": "2", "allow_multiple": True},
         Work(sort="edit", edits=(Edit(path="/w/a", replacements=(("1", "2"),), replace_all=True),))),
        ("read_file", {"file_path": "/w/a"}, Work(sort="read", paths=("/w/a",))),
        ("read_many_files", {"include": ["a/*.py", "b"]}, Work(sort="read", paths=("a/*.py", "b"))),
        ("list_directory", {"dir_path": "/w"}, Work(sort="read", paths=("/w",))),
        ("web_fetch", {"prompt": "Read https://a.org/x and http://127.0.0.1:80, please"},
         Work(sort="fetch", urls=("https://a.org/x", "http://127.0.0.1:80"))),
        ("google_web_search", {"query": "q"}, Work(sort="fetch")),
        ("write_todos", {"todos": []}, Work(sort="harmless")),
        ("save_memory", {"fact": "f"}, Work(sort="other", warning="The agent reads its memory in every later conversation.")),
        ("tool_of_tomorrow", {}, Work(sort="other")),
    ],
)  # fmt: skip
def test_the_work_of_geminis_tools_is_known(tool: str, input: Json, work: Work) -> None:
    assert GEMINI.read(gemini(tool, input), {}).work == work


def test_a_fetch_without_an_address_asks() -> None:
    work = GEMINI.read(gemini("web_fetch", {"prompt": "Read it"}), {}).work

    assert work is not None
    assert work.sort == "other"


@pytest.mark.parametrize(
    ("command", "server", "ours"),
    [
        (LAUNCHER, "handrail", True),
        (LAUNCHER, "other", False),
        ("/w/bin/handrail", "handrail", False),
        ("handrail", "handrail", False),
        ("/usr/bin/node", "handrail", False),
    ],
)
def test_our_server_is_known_by_its_name_and_by_a_program_outside_of_the_project(
    command: str, server: str, ours: bool
) -> None:
    context: Json = {"server_name": server, "tool_name": "read_file", "command": command, "args": ["mcp"]}
    work = GEMINI.read(gemini(f"mcp_{server}_read_file", {}, mcp_context=context), {}).work

    assert work == Work(sort="mcp", server=server, server_tool="read_file", ours=ours)


def test_a_name_alone_does_not_make_a_tool_ours_because_it_is_ambiguous() -> None:
    work = GEMINI.read(gemini("mcp_handrail_evil_tool", {}), {}).work

    assert work == Work(sort="mcp", server="handrail", server_tool="evil_tool", ours=False)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("<untrusted_context>\nOutput: made-here\nProcess Group PGID: 29998\n</untrusted_context>", 0),
        ("<untrusted_context>\nOutput: no\nExit Code: 2\nProcess Group PGID: 1\n</untrusted_context>", 2),
        ("Command moved to background (PID: 7).", None),
        ("Output: x\nSignal: 9", None),
    ],
)
def test_the_exit_code_of_a_command_is_read_from_its_result(text: str, code: int | None) -> None:
    response: Json = {"llmContent": text, "returnDisplay": "shown"}
    event = GEMINI.read(
        gemini("run_shell_command", {"command": "x"}, "AfterTool", tool_response=response), {}
    )

    assert (event.kind, event.exit_code, event.failed) == ("after", code, code == 2)
    assert "untrusted_context" not in event.output


def test_the_end_of_a_turn_carries_its_last_words() -> None:
    event = GEMINI.read({**BASE, "hook_event_name": "AfterAgent", "prompt_response": "Done. "}, {})

    assert (event.kind, event.message) == ("stopped", "Done. ")


COMMAND = GEMINI.read(gemini("run_shell_command", {"command": "ls", "description": "d"}), {})


def test_geminis_answer_is_a_decision_because_it_ignores_claudes_form() -> None:
    deny = json.loads(GEMINI.answer(COMMAND, Verdict(effect="deny", reason="No.")).stdout)
    allow = json.loads(GEMINI.answer(COMMAND, Verdict(effect="allow")).stdout)
    edited: Json = {"command": "ls -l", "description": "d"}
    rewrite = json.loads(GEMINI.answer(COMMAND, Verdict(effect="allow", input=edited)).stdout)

    assert deny == {"decision": "deny", "reason": "No."}
    assert allow == {"decision": "allow"}
    assert (rewrite["decision"], rewrite["hookSpecificOutput"]["tool_input"]) == ("allow", edited)


def test_a_changed_input_without_a_field_is_refused_because_gemini_merges_it() -> None:
    answer = json.loads(GEMINI.answer(COMMAND, Verdict(effect="allow", input={"command": "ls -l"})).stdout)

    assert answer["decision"] == "deny"
    assert '{"command": "ls -l"}' in answer["reason"]


@pytest.mark.parametrize(
    ("tool", "input", "work"),
    [
        ("run_shell_command", {"command": "ls", "is_background": False, "directory": "/w/sub"},
         Work(sort="command", commands=("ls",), cwd="/w/sub")),
        ("edit", {"file_path": "/w/a", "old_string": "1", "new_string": "2"},
         Work(sort="edit", edits=(Edit(path="/w/a", replacements=(("1", "2"),)),))),
        ("web_fetch", {"url": "https://a.org", "prompt": "p"}, Work(sort="fetch", urls=("https://a.org",))),
        ("todo_write", {"todos": []}, Work(sort="harmless")),
        ("tool_call", {"name": "run_shell_command", "arguments": {"command": "ls"}}, Work(sort="command", commands=("ls",))),
        ("tool_call", {"name": "tool_call", "arguments": {"name": "tool_call"}}, Work(sort="other")),
        ("tool_call", {"arguments": {}}, Work(sort="other")),
        ("exec", {"code": "1"}, Work(sort="other")),
        ("mcp__handrail__read_file", {}, Work(sort="mcp", server="handrail", server_tool="read_file", ours=True)),
    ],
)  # fmt: skip
def test_the_work_of_qwens_tools_is_known(tool: str, input: Json, work: Work) -> None:
    assert QWEN.read(qwen(tool, input), {}).work == work


def test_qwen_names_the_exit_code_of_every_command() -> None:
    text = "Command: ls /nope\nDirectory: (root)\nOutput: no\nError: (none)\nExit Code: 2\nSignal: (none)"
    response: Json = {"llmContent": text, "returnDisplay": "no"}
    event = QWEN.read(
        qwen("run_shell_command", {"command": "ls /nope"}, "PostToolUse", tool_response=response), {}
    )

    assert (event.exit_code, event.failed, event.call) == (2, True, "toolu_1")


def test_a_changed_input_for_qwen_is_refused_with_the_words_to_use_instead() -> None:
    event = QWEN.read(qwen("run_shell_command", {"command": "ls", "is_background": False}), {})

    edited: Json = {"command": "ls -l", "is_background": False}
    output = json.loads(QWEN.answer(event, Verdict(effect="allow", input=edited)).stdout)[
        "hookSpecificOutput"
    ]

    assert output["permissionDecision"] == "deny"
    assert output["permissionDecisionReason"].endswith(" ls -l")
    assert QWEN.edits
