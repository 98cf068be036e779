import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic_ai.messages import BinaryContent

from handrail.own_agent.acp_stdio import Disconnected
from handrail.own_agent.activity import ActivityUpdate
from handrail.own_agent.tools.agent_tool import CallDisplay, Json, PlanEntry, Result
from handrail.own_agent.updates import SHOWN_MAX, SessionUpdates
from handrail.terminal.jsonrpc_messages import MESSAGE_MAX


class Heard:
    """Everything that came, in order. It takes its time where `slow` is set, until `go` is called."""

    def __init__(self, answer: Callable[[Json], Awaitable[Any]] | None = None) -> None:
        self.told: list[tuple[str, Json]] = []
        self.asked: list[Json] = []
        self._answer = answer
        self._may = anyio.Event()
        self._may.set()

    def hold(self) -> None:
        self._may = anyio.Event()

    def go(self) -> None:
        self._may.set()

    @property
    def updates(self) -> list[Json]:
        return [params["update"] for method, params in self.told if method == "session/update"]

    async def notify(self, method: str, params: Json) -> None:
        self.told.append((method, params))
        await self._may.wait()

    async def ask(self, method: str, params: Json) -> Any:
        self.told.append((method, params))
        self.asked.append(params)
        assert self._answer is not None
        return await self._answer(params)


pytestmark = pytest.mark.anyio
BOUND = 5.0


def speech_to(heard: Heard, *, ours: bool = False) -> SessionUpdates:
    return SessionUpdates(heard, "s1", Path("/project"), ours=ours)


async def test_what_is_said_is_heard_in_order() -> None:
    heard = Heard()
    speech = speech_to(heard)
    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as group:
            group.start_soon(speech.deliver)
            speech.text("One. ")
            speech.call_started(
                "c1",
                "read_file",
                CallDisplay(title="Read a.py", kind="read", paths=("a.py",)),
                {"path": "a.py"},
            )
            speech.call_ended("c1", Result(text="1 x"))
            speech.text("Two.")
            await speech.flushed()
            group.cancel_scope.cancel()

    assert [each["sessionUpdate"] for each in heard.updates] == [
        "agent_message_chunk",
        "tool_call",
        "tool_call_update",
        "agent_message_chunk",
    ]
    started, ended = heard.updates[1], heard.updates[2]
    assert started["locations"] == [{"path": "/project/a.py"}]
    assert started["_meta"] == {"toolName": "read_file"}
    assert started["rawInput"] == {"path": "a.py"}
    assert (ended["status"], ended["content"][0]["content"]["text"]) == ("completed", "1 x")


async def test_pieces_of_text_that_wait_together_travel_as_one() -> None:
    heard = Heard()
    heard.hold()
    speech = speech_to(heard)
    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as group:
            group.start_soon(speech.deliver)
            speech.text("a")
            await anyio.wait_all_tasks_blocked()
            for word in "bcd":
                speech.text(word)
            speech.thought("hm")
            speech.text("e")
            heard.go()
            await speech.flushed()
            group.cancel_scope.cancel()

    assert [each["content"]["text"] for each in heard.updates] == ["a", "bcd", "hm", "e"]


async def test_notes_are_told_from_the_models_own_words_and_never_merged_with_them() -> None:
    heard = Heard()
    heard.hold()
    speech = speech_to(heard)
    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as group:
            speech.text("a")
            speech.note("Stopped after 3 steps.")
            speech.text("b")
            heard.go()
            group.start_soon(speech.deliver)
            await speech.flushed()
            group.cancel_scope.cancel()

    assert [each.get("_meta") for each in heard.updates] == [None, {"handrail": {"note": True}}, None]
    assert heard.updates[1]["content"]["text"] == "\n\nStopped after 3 steps.\n\n"


async def test_of_what_is_heard_of_a_call_only_the_last_word_travels() -> None:
    heard = Heard()
    heard.hold()
    speech = speech_to(heard)
    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as group:
            group.start_soon(speech.deliver)
            speech.call_heard("a", "1")
            await anyio.wait_all_tasks_blocked()
            for words in ("12", "123"):
                speech.call_heard("a", words)
                speech.call_heard("b", words)
            speech.call_ended("a", Result(text="done"))
            heard.go()
            await speech.flushed()
            speech.call_heard("b", "1234")
            await speech.flushed()
            group.cancel_scope.cancel()

    said = [(each["toolCallId"], each["content"][0]["content"]["text"]) for each in heard.updates]
    assert said == [("a", "1"), ("a", "123"), ("b", "123"), ("a", "done"), ("b", "1234")]


async def test_what_was_cancelled_is_failed_to_the_protocol_and_cancelled_to_who_knows_the_word() -> None:
    heard = Heard()
    speech = speech_to(heard)
    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as group:
            group.start_soon(speech.deliver)
            speech.call_ended("a", Result(text="no", failed=True, ended="cancelled"))
            speech.call_ended("b", Result(text="no", failed=True, ended="failed"))
            await speech.flushed()
            group.cancel_scope.cancel()

    told = [(each["status"], each.get("_meta")) for each in heard.updates]
    assert told == [("failed", {"handrail": {"status": "cancelled"}}), ("failed", None)]


@pytest.mark.parametrize("ours", [True, False])
async def test_an_editor_is_shown_what_a_call_would_write(ours: bool) -> None:
    heard = Heard()
    speech = speech_to(heard, ours=ours)
    asked = {"path": "a.py", "old_string": "x", "new_string": "y"}
    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as group:
            group.start_soon(speech.deliver)
            speech.call_started("c1", "edit_file", CallDisplay(title="Edit a.py", kind="edit"), asked)
            speech.call_ended("c1", Result(text="Edited."))
            await speech.flushed()
            group.cancel_scope.cancel()

    diff = {"type": "diff", "path": "/project/a.py", "oldText": "x", "newText": "y"}
    text = {"type": "content", "content": {"type": "text", "text": "Edited."}}
    started, ended = heard.updates
    assert started.get("content") == (None if ours else [diff])
    assert ended["content"] == ([text] if ours else [diff, text])


@pytest.mark.parametrize("wanted", [True, False])
async def test_activities_are_told_to_those_alone_who_want_them(wanted: bool) -> None:
    heard = Heard()
    speech = speech_to(heard, ours=wanted)
    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as group:
            group.start_soon(speech.deliver)
            speech.activity(ActivityUpdate(id="x", parent="p", sort="call", title="Read", tool_call="c1"))
            await speech.flushed()
            group.cancel_scope.cancel()

    told: list[Json] = [params["activity"] for method, params in heard.told if method == "_handrail/activity"]
    expected = {
        "id": "x",
        "parent": "p",
        "sort": "call",
        "title": "Read",
        "toolCallId": "c1",
        "how": None,
        "detail": "",
    }
    assert told == ([expected] if wanted else [])


@pytest.mark.parametrize(
    ("outcome", "answer"),
    [
        ({"outcome": "selected", "optionId": "allowed"}, "allowed"),
        ({"outcome": "selected", "optionId": "always"}, "always"),
        ({"outcome": "selected", "optionId": "denied"}, "denied"),
        ({"outcome": "selected", "optionId": "whatever"}, "denied"),
        ({"outcome": "cancelled"}, "cancelled"),
        (None, "cancelled"),
    ],
)
async def test_only_a_plain_yes_allows_a_call(outcome: Json | None, answer: str) -> None:
    async def answered(asked: Json) -> Json:
        return {"outcome": outcome}

    heard = Heard(answered)
    speech = speech_to(heard)
    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as group:
            group.start_soon(speech.deliver)
            speech.call_started("c1", "other__tool", CallDisplay(title="Tool"), {})
            assert await speech.ask("c1", CallDisplay(title="Tool"), {}) == answer
            group.cancel_scope.cancel()

    assert [method for method, _ in heard.told] == ["session/update", "session/request_permission"]


async def test_usage_without_a_known_window_is_still_told() -> None:
    heard = Heard()
    speech = speech_to(heard)
    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as group:
            group.start_soon(speech.deliver)
            speech.usage(12, None, None)
            speech.plan([PlanEntry(content="Look", status="in_progress")])
            await speech.flushed()
            group.cancel_scope.cancel()

    assert heard.updates[0] == {"sessionUpdate": "usage_update", "used": 12, "size": 0}
    assert heard.updates[1]["entries"] == [{"content": "Look", "status": "in_progress", "priority": "medium"}]


async def test_a_long_result_is_shown_to_people_up_to_a_bound() -> None:
    heard = Heard()
    speech = speech_to(heard)
    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as group:
            group.start_soon(speech.deliver)
            speech.call_ended("c1", Result(text="x" * (SHOWN_MAX + 5)))
            await speech.flushed()
            group.cancel_scope.cancel()

    shown = heard.updates[0]["content"][0]["content"]["text"]
    assert shown.endswith("\n… 5 more")


async def test_nobody_waits_for_words_that_nobody_hears() -> None:
    class Deaf(Heard):
        async def notify(self, method: str, params: Json) -> None:
            raise Disconnected

    speech = speech_to(Deaf())
    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as group:
            group.start_soon(speech.deliver)
            speech.text("a")
            await speech.flushed()
            speech.text("b")
            await speech.flushed()


async def test_no_message_is_so_long_that_a_host_would_end_us_for_it() -> None:
    heard, picture = Heard(), BinaryContent(b"x" * (5 << 20), media_type="image/png")
    speech = speech_to(heard)
    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as group:
            group.start_soon(speech.deliver)
            speech.call_started(
                "c1", "write_file", CallDisplay(title="W"), {"path": "a", "content": "x" * (40 << 20)}
            )
            speech.call_ended("c1", Result(text="See", images=(picture,) * 10))
            await speech.flushed()
            group.cancel_scope.cancel()

    assert max(len(json.dumps(each)) for each in heard.updates) < MESSAGE_MAX
    kinds = [piece["content"]["type"] for piece in heard.updates[-1]["content"]]
    assert kinds == ["text", "image", "image", *["text"] * 8]
