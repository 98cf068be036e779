"""Steering: a message for an agent that works goes to it at once, if it takes messages in mid-turn."""

from pathlib import Path

import anyio
import pytest
from tests.support.actors import ANN
from tests.support.conversation_host import (
    ConversationHost,
    calls,
    check_invariants,
    conversation_host,
    text,
)
from tests.support.scripted_agent import Obj

from handrail.store.events import MessageEnded, PromptSent

pytestmark = pytest.mark.anyio

WAIT: tuple[Obj, ...] = ({"say": "at work. "}, {"take_steering": "x"}, {"say": "now: "}, {"tell": "x"})


async def begin(scene: ConversationHost, *steps: Obj, **manners: bool) -> tuple[str, str]:
    """A thread whose agent works; returns the thread and the operation."""
    name = scene.stage.add("helm", **{"steers": True, **manners})  # pyright: ignore[reportArgumentType]
    thread = scene.thread(agent=name)
    prompted = await scene.say(thread, *(steps or WAIT))
    await scene.saying(thread, "at work. ")
    assert prompted.operation is not None
    return thread, prompted.operation


async def test_the_agent_gets_the_message_while_it_works(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread, operation = await begin(scene)
        receipt = await scene.tell(thread, "use tabs", steer=True)
        assert (receipt.steered, receipt.operation, receipt.replaced) == (True, operation, None)
        messages = await scene.until_said(thread, 'now: "use tabs"')
        assert [(each.role, each.stop, each.operation) for each in messages] == [
            ("user", "end_turn", operation),
            ("assistant", "steered", operation),
            ("user", "end_turn", operation),
            ("assistant", "end_turn", operation),
        ]
        assert [text(each) for each in messages[1:]] == ["at work. ", "use tabs", 'now: "use tabs"']
        (sent,) = [each for each in await scene.facts(PromptSent) if each.message == receipt.message]
        assert sent.operation == operation
        await check_invariants(scene)


async def test_the_agent_is_not_told_of_the_steered_messages_again(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread, _ = await begin(scene)
        await scene.tell(thread, "use tabs", steer=True)
        await scene.until_said(thread, 'now: "use tabs"')
        later = await scene.ask(thread, {"tell_prompt": True})
        assert "was said in this conversation before" not in text(later)


async def test_a_call_that_is_open_when_it_is_steered_ends_where_it_began(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        call: Obj = {"toolCallId": "1", "title": "Look", "kind": "read", "status": "in_progress"}
        done: Obj = {"toolCallId": "1", "status": "completed"}
        after: Obj = {**call, "toolCallId": "2", "title": "Look again", "status": "completed"}
        thread, _ = await begin(
            scene,
            *({"say": "at work. "}, {"tool_call": call}, {"take_steering": "x"}),
            *({"tool_call_update": done}, {"tool_call": after}, {"say": "ok"}),
        )
        await scene.until_calls(thread, lambda shown: shown["status"] == "in_progress")
        await scene.tell(thread, "use tabs", steer=True)
        messages = await scene.until_said(thread, "ok")
        shown = [[(each["title"], each["status"]) for each in calls(message)] for message in messages]
        assert shown == [[], [("Look", "completed")], [], [("Look again", "completed")]]


async def test_an_agent_that_cannot_be_steered_gets_it_after_its_turn(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        steps: tuple[Obj, ...] = ({"say": "at work. "}, {"ask": {"toolCall": {"toolCallId": "1"}}})
        thread, operation = await begin(scene, *steps, steers=False)
        receipt = await scene.tell(thread, "use tabs", steer=True)
        assert (receipt.steered, receipt.operation, receipt.replaced) == (False, None, None)
        assert [each.id for each in scene.threads.queued(thread)] == [receipt.message]
        assert scene.prompts.running(thread) == operation
        await scene.decide(await scene.asked(thread), "allow")
        await scene.until_said(thread, "You said: use tabs")


async def test_a_message_that_comes_just_after_the_turn_is_a_prompt_of_its_own(tmp_path: Path) -> None:
    """The agent has answered its prompt, and Handrail has not read that yet: the agent refuses the message."""
    async with conversation_host(tmp_path) as scene:
        refusal = '{"jsonrpc":"2.0","id":ID,"result":{"outcome":"promptRequired","reason":"noRunningTurn"}}'
        name = scene.stage.add("late", steers=True, answers={"_session/steering": refusal})
        thread = scene.thread(agent=name)
        await scene.say(thread, {"say": "at work. "}, {"ask": {"toolCall": {"toolCallId": "1"}}})
        call = await scene.asked(thread)
        receipt = await scene.tell(thread, "use tabs", steer=True)
        assert not receipt.steered
        await scene.decide(call, "allow")
        messages = await scene.until_said(thread, "You said: use tabs")
        assert [each.role for each in messages] == ["user", "assistant"] * 2


async def test_a_queued_message_can_be_given_to_the_agent_while_it_works(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread, operation = await begin(scene)
        first = await scene.tell(thread, "use tabs", queue=True)
        second = await scene.tell(thread, "then test", queue=True)
        receipt = await scene.prompts.steer_now(thread, first.message)
        assert (receipt.steered, receipt.operation) == (True, operation)
        messages = await scene.until_said(thread, "You said: then test")
        assert [text(each) for each in messages if each.role == "user"][1:] == ["use tabs", "then test"]
        assert second.operation is None


async def test_a_queued_message_that_the_agent_does_not_take_keeps_its_place(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        steps: tuple[Obj, ...] = ({"say": "at work. "}, {"ask": {"toolCall": {"toolCallId": "1"}}})
        thread, _ = await begin(scene, *steps, steers=False)
        first = await scene.tell(thread, "use tabs", queue=True)
        await scene.tell(thread, "then test", queue=True)
        assert not (await scene.prompts.steer_now(thread, first.message)).steered
        await scene.decide(await scene.asked(thread), "allow")
        messages = await scene.until_said(thread, "You said: then test")
        assert [text(each) for each in messages if each.role == "user"][1:] == ["use tabs", "then test"]


async def test_a_cancel_after_steering_ends_the_part_that_goes_on(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread, operation = await begin(scene, *WAIT, {"hang": True})
        await scene.tell(thread, "use tabs", steer=True)
        await scene.saying(thread, 'now: "use tabs"')
        assert scene.gate.operations[operation].cancel(ANN)
        messages = await scene.until_said(thread, 'now: "use tabs"')
        assert [each.stop for each in messages] == ["end_turn", "steered", "end_turn", "cancelled"]
        ended = [each.stop for each in await scene.facts(MessageEnded)]
        assert ended.count("cancelled") == 1
        await check_invariants(scene)


async def test_an_agent_that_dies_while_it_is_steered_loses_no_message(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        broken = '{"jsonrpc":"2.0","id":ID,"error":{"code":-32603,"message":"no"}}'
        name = scene.stage.add("frail", steers=True, answers={"_session/steering": broken})
        thread = scene.thread(agent=name)
        await scene.say(thread, {"say": "at work. "}, {"hang": True})
        await scene.saying(thread, "at work. ")
        receipt = await scene.tell(thread, "use tabs", steer=True)
        assert (receipt.steered, [each.id for each in scene.threads.queued(thread)]) == (
            False,
            [receipt.message],
        )


async def test_the_thread_shows_whether_its_agent_can_be_steered(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread, _ = await begin(scene)
        state = (await scene.threads.snapshot(thread, 1)).state
        assert state["agent"] == {"name": "helm", "steers": True}
        plain = scene.thread()
        await scene.ask(plain, {"say": "ok"})
        assert (await scene.threads.snapshot(plain, 1)).state["agent"]["steers"] is False


async def test_with_nothing_running_a_steering_message_is_a_prompt(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread(agent=scene.stage.add("helm", steers=True))
        receipt = await scene.tell(thread, "hello", steer=True)
        assert (receipt.steered, receipt.operation is None) == (False, False)
        with anyio.fail_after(30):
            await scene.until_said(thread, "You said: hello")
