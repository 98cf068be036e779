"""Work that an agent did without asking becomes a call, once; work that was asked about or is ours does not."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.conversation_host import ConversationHost, check_invariants, conversation_host
from tests.support.scripted_agent import Obj

from handrail.store.events import CallOpened, CallSettled, CallStarted
from handrail.store.values import Caller, Json

pytestmark = pytest.mark.anyio

EDIT: Obj = {
    "toolCallId": "e1",
    "title": "Write notes.txt",
    "kind": "edit",
    "status": "in_progress",
    "locations": [{"path": "notes.txt"}],
    "content": [{"type": "diff", "path": "notes.txt", "oldText": None, "newText": "hello\n"}],
}
RUN: Obj = {"toolCallId": "r1", "title": "ls -la", "kind": "execute", "rawInput": {"command": "ls -la"}}


def ended(tool_call: str, status: str = "completed") -> Obj:
    output = [{"type": "content", "content": {"type": "text", "text": "the output"}}]
    return {"tool_call_update": {"toolCallId": tool_call, "status": status, "content": output}}


async def recorded(scene: ConversationHost, count: int) -> list[tuple[CallOpened, CallStarted, CallSettled]]:
    """The calls of `agent_work`, once so many of them have settled and been shown in the conversation."""
    found: list[Any] = []

    async def look() -> bool:
        opened = {each.call: each for each in await scene.facts(CallOpened) if each.tool == "agent_work"}
        started = {each.call: each for each in await scene.facts(CallStarted)}
        settled = {each.call: each for each in await scene.facts(CallSettled)}
        found[:] = [
            (opened[call], started[call], settled[call])
            for call in opened
            if call in started and call in settled
        ]
        return len(found) >= count

    await scene.until(look)
    assert len(found) == count
    return found


async def test_an_edit_and_a_command_without_a_question_become_one_call_each(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread()
        again = {"tool_call_update": {"toolCallId": "e1", "status": "completed"}}
        await scene.ask(
            thread, {"tool_call": EDIT}, ended("e1"), again, {"tool_call": RUN}, ended("r1", "failed")
        )
        edit, run = await recorded(scene, 2)
        assert [each[1].allowed_by for each in (edit, run)] == ["nobody", "nobody"]
        assert (edit[2].ending, run[2].ending) == ("done", "failed")
        assert (edit[0].assurance, edit[0].caller.thread, run[0].title) == ("advisory", thread, "ls -la")
        assert edit[2].by == "agent scripted"
        preview: Any = edit[2].result and edit[2].result.data["preview"]
        assert preview["kind"] == "diff"
        assert "+hello" in preview["diff"]
        shown = await scene.until_calls(thread, lambda call: call["call"] is not None, count=2)
        assert [each["call"] for each in shown] == [edit[0].call, run[0].call]
        await check_invariants(scene)


async def test_work_that_never_ended_is_recorded_with_its_turn(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread()
        await scene.ask(thread, {"tool_call": EDIT}, {"tool_call": RUN})  # RUN was never begun
        [[opened, _, settled]] = await recorded(scene, 1)
        assert (opened.title, settled.ending) == ("Write notes.txt", "done")


async def test_work_that_was_asked_about_is_not_recorded_again(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread()
        own_id = {"toolCallId": "question-1", "title": "ls -la", "rawInput": {"command": "ls -la"}}
        said = await scene.say(
            thread,
            {"tool_call": EDIT},
            {"ask": {"toolCall": EDIT}},
            ended("e1"),
            {"tool_call": RUN},
            {"ask": {"toolCall": own_id}},
            ended("r1"),
            {"tool_call": {**RUN, "toolCallId": "r2", "title": "make", "rawInput": {"command": "make"}}},
            ended("r2"),
        )
        await scene.decide(await scene.asked(thread), "allow")
        await scene.decide(await scene.asked(thread), "allow")
        await scene.answer(thread, said)
        allowed = [started.allowed_by for _, started, _ in await recorded(scene, 3)]
        assert [each == "nobody" for each in allowed] == [False, False, True]  # only `make`


async def test_work_through_our_files_and_tools_is_not_recorded_again(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread()
        path = str(scene.stage.cwd / "notes.txt")
        ours = {
            "toolCallId": "m1",
            "title": "mcp__handrail__echo",
            "kind": "execute",
            "status": "in_progress",
        }
        said = await scene.say(
            thread,
            {"tool_call": EDIT},
            {"write": {"path": path, "content": "hello\n"}},
            ended("e1"),
            {"tool_call": ours},
            {"say": "calling"},
            {"ask": {"toolCall": {"toolCallId": "q", "title": "go on", "rawInput": {"command": "go on"}}}},
            ended("m1"),
            {"tool_call": {**RUN, "toolCallId": "r2", "title": "make", "rawInput": {"command": "make"}}},
            ended("r2"),
        )
        await scene.decide(await scene.asked(thread, "write_file"), "allow")
        await scene.saying(thread, "calling")
        question = await scene.asked(thread, "agent_work")
        await scene.call(thread, "echo", {"text": "hi"})
        await scene.decide(question, "allow")
        await scene.answer(thread, said)
        titles = [opened.title for opened, _, _ in await recorded(scene, 2)]
        assert titles == ["go on", "make"]


async def test_work_that_a_hook_of_the_agent_reported_is_not_recorded_again(tmp_path: Path) -> None:
    """The agent is connected by hooks too, under a session id of its own, and its hook reports `ls -la`."""
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread()
        said = await scene.say(
            thread,
            *({"tool_call": RUN}, {"say": "hooked"}),
            {"ask": {"toolCall": {"toolCallId": "q", "title": "go on", "rawInput": {"command": "go on"}}}},
            ended("r1"),
            {"tool_call": {**RUN, "toolCallId": "r2"}},
            ended("r2"),
        )
        question = await scene.asked(thread, "agent_work")
        reported: Json = {"client": "claude", "tool": "Bash", "input": {"command": "ls -la"}, "hosted": True}
        caller = Caller(door="hook", client="claude", key="claude s1", workspace=None)
        scene.stage.journal.append(
            CallOpened(
                call="c-hook",
                tool="client_work",
                title="ls -la",
                input=reported,
                caller=caller,
                assurance="advisory",
            )
        )
        await scene.decide(question, "allow")
        await scene.answer(thread, said)
        unasked = [
            opened.title for opened, started, _ in await recorded(scene, 2) if started.allowed_by == "nobody"
        ]
        assert unasked == ["ls -la"], "the second one only: one report is about one tool call"
