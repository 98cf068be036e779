"""Commands that an agent leaves running after a cancel are ended and named; the agent and its helpers are not."""

import re
from pathlib import Path

import pytest
from tests.support.actors import ANN
from tests.support.conversation_host import ConversationHost, conversation_host, notes, text
from tests.support.processes import is_alive
from tests.support.scripted_agent import Obj

from handrail.agents.conversation.thread_prompts import PromptReceipt
from handrail.store.events import CallStopped
from handrail.store.threads.thread_records import MessageRecord

pytestmark = pytest.mark.anyio

HANG: Obj = {"hang": True}


async def spawn(scene: ConversationHost, thread: str, *spawned: Obj) -> tuple[PromptReceipt, list[int]]:
    """A prompt that hangs, once the agent has started these processes."""
    steps = [{"spawn": f"p{n}", **each} for n, each in enumerate(spawned)]
    tells = [{"tell": f"p{n}"} for n in range(len(spawned))]
    prompted = await scene.say(thread, *steps, *tells, {"say": "ready"}, HANG)
    await scene.saying(thread, "ready")
    return prompted, pids(await scene.last(thread))


def pids(message: MessageRecord) -> list[int]:
    return [int(pid) for pid in re.findall(r'"pid": (\d+)', text(message))]


async def noted(scene: ConversationHost, thread: str, operation: str | None) -> list[str]:
    """The notes of the operation's answer, once there is one."""
    found: list[str] = []

    async def look() -> bool:
        said = [each for each in await scene.threads.messages(thread) if each.operation == operation]
        found[:] = [note for each in said if each.role == "assistant" for note in notes(each)]
        return bool(found)

    await scene.until(look)
    return found


def cancel(scene: ConversationHost, prompted: PromptReceipt) -> None:
    assert scene.gate.operations[prompted.operation or ""].cancel(ANN)


async def test_commands_that_outlive_the_cancel_are_ended_and_named(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread()
        orphan: Obj = {"forks": True, "setsid": True}
        prompted, commands = await spawn(scene, thread, {}, {"setsid": True}, orphan, {"ignores_term": True})
        agent = await scene.stage.agent()
        cancel(scene, prompted)
        [note] = await noted(scene, thread, prompted.operation)
        assert note.startswith("scripted left a command running after the cancel. Handrail stopped ")
        assert [pid for pid in commands if f"({pid})" not in note] == []
        assert [pid for pid in commands if is_alive(pid)] == []
        assert text(await scene.ask(thread, {"say": "still here"})) == "still here"
        assert await scene.stage.agent() is agent, "the agent itself is not touched"


async def test_the_receipt_of_the_call_that_ran_lists_them(tmp_path: Path) -> None:
    def asks(id: str, line: str) -> list[Obj]:
        tool_call = {"toolCallId": id, "title": line, "kind": "execute", "rawInput": {"command": line}}
        return [{"tool_call": {**tool_call, "status": "pending"}}, {"ask": {"toolCall": tool_call}}]

    async with conversation_host(tmp_path) as scene:
        thread = scene.thread()
        done: Obj = {"tool_call_update": {"toolCallId": "1", "status": "completed"}}
        spawns: list[Obj] = [{"spawn": "p0"}, {"tell": "p0"}, {"say": "ready"}, HANG]
        prompted = await scene.say(
            thread, *asks("1", "touch a"), done, *asks("2", "touch b; sleep 9"), *spawns
        )
        ended, running = [await allowed(scene, thread) for _ in range(2)]
        await scene.saying(thread, "ready")
        [command] = pids(await scene.last(thread))
        cancel(scene, prompted)
        await noted(scene, thread, prompted.operation)

        [stopped] = await scene.facts(CallStopped)
        assert (stopped.call, ended != running) == (running, True)
        assert [process.pid for process in stopped.receipt.processes_stopped] == [command]
        history = await scene.records.calls.get(running)
        assert history is not None
        assert history.receipt == stopped.receipt
        assert (stopped.receipt.ended_by, stopped.receipt.stopped) == ("agent_work", True)


async def allowed(scene: ConversationHost, thread: str) -> str:
    """Allow the work that is asked about; the id of its call."""
    call = await scene.asked(thread)
    await scene.decide(call, "allow")
    return call.id


async def test_what_ran_before_the_prompt_and_what_the_agent_speaks_to_lives_on(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread()
        [helper] = pids(await scene.ask(thread, {"spawn": "helper"}, {"tell": "helper"}))
        prompted, [tool, server] = await spawn(scene, thread, {}, {"spoken_to": True})
        cancel(scene, prompted)
        stopped, left = await noted(scene, thread, prompted.operation)
        assert f"({tool})" in stopped
        assert left.startswith("Still running, and perhaps a part of scripted itself: ")
        assert f"({server})" in left
        assert (is_alive(helper), is_alive(tool), is_alive(server)) == (True, False, True)


async def test_a_prompt_that_follows_at_once_keeps_what_it_starts(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread()
        prompted, [old] = await spawn(scene, thread, {})
        [new] = pids(await scene.ask(thread, {"spawn": "p"}, {"tell": "p"}))
        [note] = await noted(scene, thread, prompted.operation)
        assert f"({old})" in note
        assert (is_alive(old), is_alive(new)) == (False, True)


async def test_with_two_prompts_in_one_program_nothing_is_ended(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        here, there = scene.thread(), scene.thread()
        _, [other] = await spawn(scene, there, {})
        prompted, [own] = await spawn(scene, here, {})
        cancel(scene, prompted)
        assert (await scene.answer(here, prompted)).stop == "cancelled"
        quiet = scene.thread()
        again, [third] = await spawn(scene, quiet, {})
        cancel(scene, again)
        assert (await scene.answer(quiet, again)).stop == "cancelled"
        assert all(map(is_alive, (other, own, third))), "whose they are cannot be told"
