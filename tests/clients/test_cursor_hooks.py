"""Cursor answers with a permission, Windsurf with an exit status."""

import json

import pytest

from handrail.clients.hook_event import Edit, HookKind, Json, Verdict, Work
from handrail.clients.hooks import DIALECTS

CURSOR, WINDSURF = DIALECTS["cursor"], DIALECTS["windsurf"]
BASE: Json = {
    "conversation_id": "c1",
    "generation_id": "g1",
    "workspace_roots": ["/w"],
    "cursor_version": "2.0",
}
LAUNCHER = "/home/ada/.local/bin/handrail mcp"


def cursor(event: str, **fields: Json | str) -> Json:
    return {**BASE, "hook_event_name": event, **fields}


@pytest.mark.parametrize(
    ("payload", "work"),
    [
        (cursor("preToolUse", tool_name="Shell", tool_input={"command": "ls", "working_directory": "/w/sub"}),
         Work(sort="command", commands=("ls",), cwd="/w/sub")),
        (cursor("beforeShellExecution", command="ls"), Work(sort="command", commands=("ls",))),
        (cursor("beforeReadFile", file_path="/w/a", content="x"), Work(sort="read", paths=("/w/a",))),
        (cursor("preToolUse", tool_name="Write", tool_input={"file_path": "/w/a", "content": "x"}),
         Work(sort="edit", edits=(Edit(path="/w/a", content="x"),))),
        (cursor("preToolUse", tool_name="Write", tool_input={"file_path": "/w/a", "edits": [{"old_string": "1", "new_string": "2"}]}),
         Work(sort="edit", edits=(Edit(path="/w/a", replacements=(("1", "2"),)),))),
        (cursor("preToolUse", tool_name="Delete", tool_input={"file_path": "/w/a"}),
         Work(sort="edit", edits=(Edit(path="/w/a", delete=True),))),
        (cursor("preToolUse", tool_name="MCP:read_file", tool_input={}), Work(sort="mcp", server_tool="read_file")),
        (cursor("beforeMCPExecution", tool_name="read_file", tool_input="{}", command=LAUNCHER),
         Work(sort="mcp", server="handrail", server_tool="read_file", ours=True)),
        (cursor("beforeMCPExecution", tool_name="Shell", tool_input='{"x": 1}', command="/w/handrail mcp"),
         Work(sort="mcp", server="/w/handrail mcp", server_tool="Shell")),
        (cursor("preToolUse", tool_name="Tomorrow", tool_input={}), Work(sort="other")),
    ],
)  # fmt: skip
def test_the_work_of_cursors_tools_is_known(payload: Json, work: Work) -> None:
    event = CURSOR.read(payload, {})

    assert (event.kind, event.session, event.cwd, event.work) == ("before", "c1", "/w", work)


def test_cursor_tells_the_result_in_fields_of_its_own() -> None:
    shell: Json = {"command": "ls"}
    done = CURSOR.read(
        cursor("postToolUse", tool_name="Shell", tool_input=shell, tool_output='{"out": "x"}'), {}
    )
    failed = CURSOR.read(
        cursor("postToolUseFailure", tool_name="Shell", tool_input=shell, error_message="no"), {}
    )

    assert (done.kind, done.output, done.failed) == ("after", '{"out": "x"}', False)
    assert (failed.kind, failed.output, failed.failed) == ("after", "no", True)


def test_cursors_answer_is_a_permission_with_the_reason_for_both_readers() -> None:
    event = CURSOR.read(cursor("preToolUse", tool_name="Shell", tool_input={"command": "ls"}), {})

    deny = json.loads(CURSOR.answer(event, Verdict(effect="deny", reason="No.")).stdout)
    allow = json.loads(CURSOR.answer(event, Verdict(effect="allow", input={"command": "id"})).stdout)

    assert deny == {"permission": "deny", "user_message": "No.", "agent_message": "No."}
    assert allow == {"permission": "allow", "updated_input": {"command": "id"}}


def windsurf(action: str, info: Json) -> Json:
    return {"agent_action_name": action, "trajectory_id": "t1", "execution_id": "e1", "tool_info": info}


@pytest.mark.parametrize(
    ("action", "info", "work"),
    [
        ("pre_run_command", {"command_line": "ls", "cwd": "/w"}, Work(sort="command", commands=("ls",), cwd="/w")),
        ("pre_write_code", {"file_path": "/w/a", "edits": [{"old_string": "1", "new_string": "2"}]},
         Work(sort="edit", edits=(Edit(path="/w/a", replacements=(("1", "2"),)),))),
        ("pre_write_code", {"file_path": "/w/a", "edits": [{"old_string": "", "new_string": "x"}]},
         Work(sort="edit", edits=(Edit(path="/w/a", content="x"),))),
        ("pre_read_code", {"file_path": "/w/a"}, Work(sort="read", paths=("/w/a",))),
        ("pre_mcp_tool_use", {"mcp_server_name": "handrail", "mcp_tool_name": "read_file", "mcp_tool_arguments": {}},
         Work(sort="mcp", server="handrail", server_tool="read_file", ours=True)),
    ],
)  # fmt: skip
def test_the_work_of_windsurfs_actions_is_known(action: str, info: Json, work: Work) -> None:
    event = WINDSURF.read(windsurf(action, info), {})

    assert (event.kind, event.session, event.work) == ("before", "t1", work)


@pytest.mark.parametrize(
    ("action", "kind"),
    [
        ("post_run_command", "after"),
        ("pre_user_prompt", "prompted"),
        ("post_cascade_response", "stopped"),
        ("new", "ignored"),
    ],
)
def test_windsurfs_other_actions_have_a_kind(action: str, kind: HookKind) -> None:
    assert WINDSURF.read(windsurf(action, {}), {}).kind == kind


def test_windsurf_is_blocked_by_an_exit_status() -> None:
    event = WINDSURF.read(windsurf("pre_run_command", {"command_line": "ls"}), {})

    answer = WINDSURF.answer(event, Verdict(effect="deny", reason="No."))

    assert (answer.status, answer.stderr, answer.stdout) == (2, "No.\n", "")
    assert WINDSURF.answer(event, Verdict(effect="allow")).status == 0
