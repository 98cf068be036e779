"""The reason of a denial reaches an agent whose protocol has no place for it: with its next prompt, or at once.

It is derived from what is stored, so it outlives the daemon.
"""

from pathlib import Path

import pytest
from tests.support.actors import ANN
from tests.support.conversation_host import ConversationHost, conversation_host, notes, text
from tests.support.scripted_agent import Obj

from handrail.gate import person_actions
from handrail.gate.approval import Answer

pytestmark = pytest.mark.anyio

RUN: Obj = {"toolCallId": "1", "kind": "execute", "title": "Test", "rawInput": {"command": "make test"}}


async def deny(scene: ConversationHost, thread: str, reason: str) -> None:
    call = await scene.asked(thread)
    assert call.approval is not None
    answer = Answer(kind="deny", by=ANN, reason=reason)
    await person_actions.answer(scene.gate, call.approval, answer, call.approval.digest)


async def test_the_next_prompt_carries_the_reason_once(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread()
        prompted = await scene.say(thread, {"ask": {"toolCall": RUN}}, {"say": "as you like"})
        await deny(scene, thread, "use the\nstaging database")
        await scene.answer(thread, prompted)
        answer = await scene.ask(thread, {"tell_prompt": True})
        said = "“make test” was denied by ann: use the staging database"
        assert "was denied by ann: use the staging database" in text(answer)
        assert notes(answer) == [f"scripted was told: {said}"]
        later = await scene.ask(thread, {"tell_prompt": True})
        assert ("was denied" in text(later), notes(later)) == (False, [])


async def test_a_denial_without_a_reason_adds_nothing_to_the_next_prompt(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread()
        prompted = await scene.say(thread, {"ask": {"toolCall": RUN}})
        await deny(scene, thread, "")
        await scene.answer(thread, prompted)
        assert notes(await scene.ask(thread, {"say": "yes"})) == []


async def test_the_reason_is_kept_for_an_agent_that_failed_before_it_read_it(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread()
        prompted = await scene.say(thread, {"ask": {"toolCall": RUN}})
        await deny(scene, thread, "not now")
        await scene.answer(thread, prompted)
        failed = await scene.ask(thread, {"fail": {"code": -32603, "message": "no"}})
        assert failed.stop == "failed"
        assert "not now" in text(await scene.ask(thread, {"tell_prompt": True}))


async def test_an_agent_that_wants_it_at_once_is_prompted_when_its_turn_ends(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        name = scene.stage.add("eager")
        spec = scene.stage.specs[name]
        scene.stage.specs[name] = spec.model_copy(update={"prompt_after_denial": True})
        thread = scene.thread(agent=name)
        await scene.say(thread, {"ask": {"toolCall": RUN}}, {"say": "well"})
        await deny(scene, thread, "not now")
        words = "You said: Go on with what was not denied, or say what you need."
        messages = await scene.until_said(thread, words)
        assert [message.role for message in messages] == ["user", "assistant"] * 2
        assert notes(messages[-1]) == ["eager was told: “make test” was denied by ann: not now"]


async def test_after_a_cancel_nobody_is_prompted_by_itself(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        name = scene.stage.add("eager")
        spec = scene.stage.specs[name]
        scene.stage.specs[name] = spec.model_copy(update={"prompt_after_denial": True})
        thread = scene.thread(agent=name)
        prompted = await scene.say(thread, {"ask": {"toolCall": RUN}}, {"say": "well"}, {"hang": True})
        await deny(scene, thread, "not now")
        await scene.saying(thread, "well")
        assert scene.gate.operations[prompted.operation or ""].cancel(ANN)
        assert (await scene.answer(thread, prompted)).stop == "cancelled"
        assert len(await scene.threads.messages(thread)) == 2


async def test_the_reason_outlives_the_daemon_and_is_told_once(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread()
        prompted = await scene.say(thread, {"ask": {"toolCall": RUN}}, {"say": "well"})
        await deny(scene, thread, "not now")
        await scene.answer(thread, prompted)
    async with conversation_host(tmp_path) as scene:
        answer = await scene.ask(thread, {"tell_prompt": True})
        assert "was denied by ann: not now" in text(answer)
        assert "scripted was told: “make test” was denied by ann: not now" in notes(answer)
    async with conversation_host(tmp_path) as scene:
        answer = await scene.ask(thread, {"say": "ok"})
        assert not [words for words in notes(answer) if "was told" in words]


async def test_the_reason_of_a_turn_that_the_daemon_interrupted_is_told(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread()
        first = await scene.say(thread, {"ask": {"toolCall": RUN}}, {"say": "well"})
        await deny(scene, thread, "told before")
        await scene.answer(thread, first)
        again = {**RUN, "toolCallId": "2"}
        await scene.say(thread, {"ask": {"toolCall": again}}, {"say": "going on"}, {"hang": True})
        await deny(scene, thread, "not now")
        await scene.saying(thread, "going on")
    async with conversation_host(tmp_path) as scene:
        told = text(await scene.ask(thread, {"tell_prompt": True}))
        assert ("not now" in told, "told before" in told) == (True, False)


async def test_an_agent_is_not_told_what_was_denied_to_another_one(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread()
        prompted = await scene.say(thread, {"ask": {"toolCall": RUN}})
        await deny(scene, thread, "not now")
        await scene.answer(thread, prompted)
        other = scene.stage.add("other")
        assert "not now" not in text(await scene.ask(thread, {"tell_prompt": True}, agent=other))
        assert "not now" in text(await scene.ask(thread, {"tell_prompt": True}))
