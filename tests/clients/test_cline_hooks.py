"""Cline ignores exit codes: a command is refused by an input that fails with the reason, other tools by a cancel."""

import json
import subprocess

import pytest

from handrail.clients.hook_event import Edit, HookKind, Json, Verdict, Work
from handrail.clients.hooks import DIALECTS

CLINE = DIALECTS["cline"]
BASE: Json = {"taskId": "conv_1", "workspaceRoots": ["/w"], "agent_id": "agent_2", "parent_agent_id": None}


def before(tool: str, input: object) -> Json:
    call = {"id": "call_4", "name": tool, "input": input}
    return {**BASE, "hookName": "tool_call", "tool_call": call}  # pyright: ignore[reportReturnType]


@pytest.mark.parametrize(
    ("tool", "input", "work"),
    [
        ("run_commands", {"commands": ["ls", "id"]}, Work(sort="command", commands=("ls", "id"))),
        ("run_commands", {"commands": "ls"}, Work(sort="command", commands=("ls",))),
        ("run_commands", ["ls", "id"], Work(sort="command", commands=("ls", "id"))),
        ("run_commands", "ls", Work(sort="command", commands=("ls",))),
        ("run_commands", {"command": "ls"}, Work(sort="command", commands=("ls",))),
        ("run_commands", {"cmd": "ls"}, Work(sort="command", commands=("ls",))),
        ("run_commands", {"command": "rm", "args": ["a b"]}, Work(sort="command", commands=("rm 'a b'",))),
        ("run_commands", {"commands": [{"command": "rm", "args": ["a b"]}]}, Work(sort="command", commands=("rm 'a b'",))),
        ("editor", {"path": "/w/a", "new_text": "x"}, Work(sort="edit", edits=(Edit(path="/w/a", content="x"),))),
        ("editor", {"path": "/w/a", "old_text": "1", "new_text": "2"},
         Work(sort="edit", edits=(Edit(path="/w/a", replacements=(("1", "2"),)),))),
        ("editor", {"path": "/w/a", "new_text": "x", "insert_line": 3},
         Work(sort="edit", edits=(Edit(path="/w/a"),), warning="Cline would insert text into the file: x")),
        ("apply_patch", "*** Begin Patch\n*** Delete File: a\n*** End Patch", Work(sort="edit", edits=(Edit(path="a", delete=True),))),
        ("replace_in_file", {"path": "a", "diff": "------- SEARCH\n1\n=======\n2\n+++++++ REPLACE\n"},
         Work(sort="edit", edits=(Edit(path="a", replacements=(("1\n", "2\n"),)),))),
        ("read_files", {"files": [{"path": "/w/a"}, "/w/b"]}, Work(sort="read", paths=("/w/a", "/w/b"))),
        ("read_files", "/w/a", Work(sort="read", paths=("/w/a",))),
        ("fetch_web_content", {"requests": [{"url": "https://a.org", "prompt": "p"}]}, Work(sort="fetch", urls=("https://a.org",))),
        ("submit_and_exit", {"summary": "s", "verified": True}, Work(sort="harmless")),
        ("handrail__read_file", {}, Work(sort="mcp", server="handrail", server_tool="read_file", ours=True)),
        ("tomorrow", {}, Work(sort="other")),
    ],
)  # fmt: skip
def test_the_work_of_a_built_in_tool_is_known_in_all_shapes_of_its_input(
    tool: str, input: object, work: Work
) -> None:
    event = CLINE.read(before(tool, input), {})

    assert (event.kind, event.session, event.cwd, event.call) == ("before", "conv_1", "/w", "call_4")
    assert event.work == work


def test_a_command_without_words_asks() -> None:
    work = CLINE.read(before("run_commands", {"commands": [7]}), {}).work

    assert work is not None
    assert work.sort == "other"


def test_a_result_tells_the_exit_code_in_its_error() -> None:
    result = "[Command exited with code 2]\n\n[stderr]\nno\n"
    output: Json = {
        "query": "ls /nope",
        "result": result,
        "error": "Command exited with code 2",
        "success": False,
    }
    record: Json = {
        "id": "call_4",
        "name": "run_commands",
        "input": {"commands": ["ls /nope"]},
        "output": [output],
    }

    event = CLINE.read({**BASE, "hookName": "tool_result", "tool_result": record}, {})

    assert (event.kind, event.output, event.exit_code, event.failed) == ("after", result, 2, True)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("agent_start", "session_started"),
        ("prompt_submit", "prompted"),
        ("agent_end", "stopped"),
        ("pre_compact", "ignored"),
    ],
)
def test_the_other_events_have_a_kind(name: str, kind: HookKind) -> None:
    assert CLINE.read({**BASE, "hookName": name}, {}).kind == kind


def test_a_refused_command_prints_the_reason_and_fails_whatever_characters_it_has() -> None:
    reason = 'No: it\'s $(touch OWNED) `touch OWNED` "x" \\ % ; \n& line 2'
    event = CLINE.read(before("run_commands", {"commands": ["ls"]}), {})

    (line,) = json.loads(CLINE.answer(event, Verdict(effect="deny", reason=reason)).stdout)["overrideInput"][
        "commands"
    ]
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=30, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"{reason}\n")


@pytest.mark.parametrize(
    ("tool", "input", "override"),
    [
        (
            "editor",
            {"path": "/w/a", "new_text": "x"},
            {"path": "\0No: a\N{FRACTION SLASH}..\N{FRACTION SLASH}b", "new_text": ""},
        ),
        (
            "read_files",
            {"files": [{"path": "/w/a"}]},
            {"files": [{"path": "\0No: a\N{FRACTION SLASH}..\N{FRACTION SLASH}b"}]},
        ),
    ],
)
def test_a_refused_file_is_replaced_by_a_path_that_cannot_exist_and_tells_the_reason(
    tool: str, input: Json, override: Json
) -> None:
    event = CLINE.read(before(tool, input), {})

    answer = json.loads(CLINE.answer(event, Verdict(effect="deny", reason="No: a/../b")).stdout)

    assert answer == {"overrideInput": override}


def test_another_tool_is_refused_by_a_cancel() -> None:
    event = CLINE.read(before("echo__echo", {"text": "x"}), {})

    answer = json.loads(CLINE.answer(event, Verdict(effect="deny", reason="No.")).stdout)

    assert answer == {"cancel": True, "errorMessage": "No."}


@pytest.mark.parametrize(
    ("before_input", "edited"), [({"commands": ["ls"]}, {"commands": ["id"]}), (["ls"], {"value": ["id"]})]
)
def test_a_changed_input_overrides_in_the_shape_that_cline_sent(before_input: object, edited: Json) -> None:
    event = CLINE.read(before("run_commands", before_input), {})

    answer = json.loads(CLINE.answer(event, Verdict(effect="allow", input=edited)).stdout)

    assert answer == {"overrideInput": edited.get("value", edited)}
