"""A session that its agent cannot go on with after a cancel is replaced, and the person is told."""

from pathlib import Path

import pytest
from tests.support.actors import ANN
from tests.support.conversation_host import ConversationHost, conversation_host, notes, parts, text
from tests.support.scripted_agent import Obj

from handrail.store.events import SessionBound

pytestmark = pytest.mark.anyio

REFUSES: Obj = {"fail": {"code": 400, "message": "The model refuses this session"}}


async def cancelled(scene: ConversationHost, thread: str) -> None:
    prompted = await scene.say(thread, {"say": "I begin"}, {"hang": True})
    await scene.saying(thread, "I begin")
    assert scene.gate.operations[prompted.operation or ""].cancel(ANN)
    assert (await scene.answer(thread, prompted)).stop == "cancelled"


async def test_a_refusal_after_a_cancel_gives_the_agent_a_new_session_and_a_summary(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread()
        await cancelled(scene, thread)
        answer = await scene.ask(thread, {**REFUSES, "after_cancel": True}, {"say": "Here I am."})
        assert (answer.stop, text(answer), parts(answer, "error")) == ("end_turn", "Here I am.", [])
        replaced, summary = notes(answer)
        assert replaced.startswith(
            "scripted could not go on after the cancel, so it was given a new session."
        )
        assert "The model refuses this session" in replaced
        assert summary == "scripted was sent a summary of 2 messages."
        sessions = [fact.session for fact in await scene.facts(SessionBound)]
        assert len(set(sessions)) == 2


async def test_any_other_refusal_is_told_and_the_session_stays(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread()
        assert (await scene.ask(thread, REFUSES)).stop == "failed"
        await cancelled(scene, thread)
        spoken = await scene.ask(thread, {"say": "Well,"}, REFUSES)
        assert (spoken.stop, text(spoken)) == ("failed", "Well,"), "what it has begun is not begun again"
        assert len({fact.session for fact in await scene.facts(SessionBound)}) == 1


async def test_a_new_session_that_is_refused_too_is_not_replaced(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread()
        await cancelled(scene, thread)
        answer = await scene.ask(thread, REFUSES)
        assert (answer.stop, len(parts(answer, "error"))) == ("failed", 1)
        assert len({fact.session for fact in await scene.facts(SessionBound)}) == 2
