"""Conversations: begun, spoken in, read, followed and deleted."""

import anyio
import anyio.lowlevel
import pytest
from tests.store.conftest import Kept
from tests.store.thread.talk import Reader, reading, talking

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])]


async def test_what_is_said_is_read_at_once_and_again_after_a_restart(kept: Kept) -> None:
    async with talking(kept) as talk:
        thread = talk.open()
        talk.say(thread, "Hello")
        answer = talk.threads.open_message(thread, "assistant", agent="demo", operation="o1")
        thought = answer.add("thought", "Let me")
        thought.grow(" think")
        call = answer.add("call", data={"id": "1", "status": "pending"})
        call.put({"id": "1", "status": "completed"})
        text = answer.add("text")
        for word in ("Hi", ", ", "you"):
            text.grow(word)
        before = await talk.threads.snapshot(thread)
        assert [[part.text for part in one.parts] for one in before.messages] == [
            ["Hello"],
            ["Let me think", "", "Hi, you"],
        ]
        assert before.messages[1].stop is None
        answer.end("end_turn")
        said = await talk.threads.messages(thread)
    async with talking(kept) as talk:
        after = await talk.threads.snapshot(thread)
        assert [(one.id, one.n, one.role, one.parts) for one in after.messages] == [
            (one.id, one.n, one.role, one.parts) for one in said
        ]
        assert after.messages[1].stop == "end_turn"
        assert after.messages[1].parts[1].data == {"id": "1", "status": "completed"}
        assert not after.more


async def test_a_reader_sees_text_grow_from_where_it_has_it(kept: Kept) -> None:
    async with talking(kept) as talk:
        thread = talk.open()
        reader = Reader()
        reader.load(await talk.threads.snapshot(thread))
        async with reading(talk, thread, reader):
            answer = talk.threads.open_message(thread, "assistant", agent="demo")
            text = answer.add("text", "One")
            await reader.until(lambda: reader.texts == {(answer.id, 0): "One"})
            text.grow(" two")
            text.grow(" three")
            await reader.until(lambda: reader.texts == {(answer.id, 0): "One two three"})
            assert [(one.at, one.text) for flow in reader.flows for one in flow.growths] == [
                (0, "One"),
                (3, " two three"),
            ]
            answer.end("end_turn")
            await reader.until(lambda: reader.stops == {answer.id: "end_turn"})


async def test_what_flows_is_on_disk_soon_though_nobody_asks(kept: Kept) -> None:
    async with talking(kept) as talk:
        thread = talk.open()
        answer = talk.threads.open_message(thread, "assistant")
        answer.add("text", "so far").grow(" so good")
        with anyio.fail_after(5):
            while not (found := await talk.records.open_messages()) or not found[0].parts:
                await anyio.lowlevel.checkpoint()
        assert found[0].parts[0].text == "so far so good"
