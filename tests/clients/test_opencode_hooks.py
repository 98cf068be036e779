"""The contract between Handrail and its plugin in opencode."""

import json

import pytest

from handrail.clients.hook_event import Edit, HookKind, Json, Verdict, Work
from handrail.clients.hooks import DIALECTS

OPENCODE = DIALECTS["opencode"]
BASE: Json = {"session": "ses_1", "call": "call_1", "cwd": "/w"}


def before(tool: str, args: Json) -> Json:
    return {**BASE, "event": "tool.execute.before", "tool": tool, "args": args}


@pytest.mark.parametrize(
    ("tool", "args", "work"),
    [
        ("bash", {"command": "ls", "workdir": "/w/sub"}, Work(sort="command", commands=("ls",), cwd="/w/sub")),
        ("write", {"filePath": "/w/a", "content": "x"}, Work(sort="edit", edits=(Edit(path="/w/a", content="x"),))),
        ("edit", {"filePath": "/w/a", "oldString": "1", "newString": "2", "replaceAll": True},
         Work(sort="edit", edits=(Edit(path="/w/a", replacements=(("1", "2"),), replace_all=True),))),
        ("apply_patch", {"patchText": "*** Begin Patch\n*** Delete File: a\n*** End Patch"},
         Work(sort="edit", edits=(Edit(path="a", delete=True),))),
        ("read", {"filePath": "/w/a"}, Work(sort="read", paths=("/w/a",))),
        ("grep", {"pattern": "x"}, Work(sort="read")),
        ("webfetch", {"url": "https://a.org"}, Work(sort="fetch", urls=("https://a.org",))),
        ("todowrite", {"todos": []}, Work(sort="harmless")),
        ("task", {"description": "d", "prompt": "p", "subagent_type": "general"}, Work(sort="harmless")),
        ("handrail_execute_command", {}, Work(sort="mcp", server="handrail", server_tool="execute_command", ours=True)),
        ("echo_echo", {"text": "hi"}, Work(sort="mcp", server="echo", server_tool="echo")),
        ("execute", {"code": "1"}, Work(sort="other")),
    ],
)  # fmt: skip
def test_the_work_of_a_built_in_tool_is_known(tool: str, args: Json, work: Work) -> None:
    event = OPENCODE.read(before(tool, args), {})

    assert (event.kind, event.session, event.cwd, event.call) == ("before", "ses_1", "/w", "call_1")
    assert event.work == work


def test_a_result_is_its_output_and_the_exit_code_of_its_metadata() -> None:
    more: Json = {"event": "tool.execute.after", "output": "no\n", "metadata": {"output": "no\n", "exit": 2}}

    event = OPENCODE.read({**before("bash", {"command": "x"}), **more}, {})

    assert (event.kind, event.output, event.exit_code, event.failed) == ("after", "no\n", 2, True)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("session.created", "session_started"),
        ("session.idle", "stopped"),
        ("session.deleted", "session_ended"),
        ("chat.message", "prompted"),
        ("permission.asked", "notified"),
        ("file.edited", "ignored"),
    ],
)
def test_the_other_events_have_a_kind(name: str, kind: HookKind) -> None:
    assert OPENCODE.read({**BASE, "event": name}, {}).kind == kind


@pytest.mark.parametrize(
    ("verdict", "answer"),
    [
        (Verdict(effect="pass"), {"effect": "pass", "reason": "", "input": None}),
        (Verdict(effect="allow"), {"effect": "allow", "reason": "", "input": None}),
        (
            Verdict(effect="allow", input={"command": "y"}),
            {"effect": "allow", "reason": "", "input": {"command": "y"}},
        ),
        (Verdict(effect="deny", reason="No."), {"effect": "deny", "reason": "No.", "input": None}),
    ],
)
def test_the_plugin_always_gets_an_answer_before_a_call(verdict: Verdict, answer: Json) -> None:
    event = OPENCODE.read(before("bash", {"command": "x"}), {})

    assert json.loads(OPENCODE.answer(event, verdict).stdout) == answer
