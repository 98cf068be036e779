"""The history that an agent replays becomes messages: where they begin and end, and what is kept of them."""

import base64
from pathlib import Path

import pytest
from tests.support.conversation_host import ConversationHost, conversation_host, parts, text

from handrail.agents.conversation import _session_history as session_history
from handrail.agents.conversation._session_history import SessionHistory
from handrail.agents.conversation.recorder import Recorder
from handrail.store.values import Json

pytestmark = pytest.mark.anyio

LONG_AGO = 1_700_000_000_000


def chunk(kind: str, words: str, **more: str) -> Json:
    return {"sessionUpdate": f"{kind}_chunk", "content": {"type": "text", "text": words}, **more}


def history_of(scene: ConversationHost, thread: str, state: dict[str, Json]) -> SessionHistory:
    recorder = Recorder(state.__setitem__, lambda _: "0" * 64, lambda _: None)
    return SessionHistory(scene.threads, thread, "keen", recorder, lambda _: "0" * 64, LONG_AGO)


async def test_prompts_and_answers_alternate_as_they_were_said(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread, state = scene.thread(), dict[str, Json]()
        history = history_of(scene, thread, state)
        mode: Json = {"sessionUpdate": "current_mode_update", "currentModeId": "ask"}
        for update in (
            chunk("user_message", "first, ", messageId="a"),
            chunk("user_message", "whole", messageId="a"),
            chunk("user_message", "unanswered", messageId="b"),
            chunk("agent_thought", "hm"),
            chunk("agent_message", "yes"),
            mode,
            chunk("user_message", "last", messageId="c"),
        ):
            history.update(update)
        history.end()
        messages = await scene.threads.messages(thread)
        assert [(each.role, text(each)) for each in messages] == [
            ("user", "first, whole"),
            ("user", "unanswered"),
            ("assistant", "yes"),
            ("user", "last"),
        ]
        assert {(each.opened_at, each.ended_at, each.stop) for each in messages} == {
            (LONG_AGO, LONG_AGO, "end_turn")
        }
        assert (state["modes"]["current"], history.messages) == ("ask", 4)


async def test_a_picture_in_a_prompt_and_an_open_call_are_kept(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread()
        history = history_of(scene, thread, {})
        picture: Json = {"type": "image", "mimeType": "image/png", "data": base64.b64encode(b"x").decode()}
        history.update({"sessionUpdate": "user_message_chunk", "content": picture})
        call: Json = {"toolCallId": "1", "title": "ls", "status": "in_progress"}
        history.update({"sessionUpdate": "tool_call", **call})
        history.end()
        prompt, answer = await scene.threads.messages(thread)
        assert [part.data["image"] for part in parts(prompt, "image")] == ["0" * 64]
        assert [part.data["status"] for part in parts(answer, "call")] == ["completed"]


async def test_a_history_without_end_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with conversation_host(tmp_path) as scene:
        monkeypatch.setattr(session_history, "MOST_MESSAGES", 4)
        thread = scene.thread()
        history = history_of(scene, thread, {})
        for turn in range(10):
            history.update(chunk("user_message", f"prompt {turn}"))
            history.update(chunk("agent_message", f"answer {turn}"))
        history.end()
        assert [text(each) for each in await scene.threads.messages(thread)] == [
            *("prompt 0", "answer 0"),
            *("prompt 1", "answer 1"),
        ]
