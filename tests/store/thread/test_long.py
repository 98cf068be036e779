"""A conversation of 5,000 messages opens at once, whatever else there is."""

import time

import anyio
import pytest
from tests.store.conftest import Kept
from tests.store.thread.talk import Talk, talking

from handrail.store.thread.record import MessageRecord, PartRecord

pytestmark = pytest.mark.anyio

LONG = 5_000


def said(number: int) -> MessageRecord:
    texts = (f"A thought about {number}. " * 5, f"Message {number} says this and that. " * 20)
    return MessageRecord(
        id="",
        thread="",
        n=0,
        role="assistant" if number % 2 else "user",
        agent="demo",
        operation=None,
        queued=False,
        opened_at=number,
        ended_at=number + 1,
        stop="end_turn",
        parts=(
            PartRecord(n=0, kind="thought", text=texts[0], data={}),
            PartRecord(n=1, kind="text", text=texts[1], data={}),
            PartRecord(n=2, kind="call", text="", data={"id": str(number), "title": "Read a.py"}),
        ),
    )


async def a_long_talk(talk: Talk) -> str:
    thread = talk.open("Long")
    with anyio.fail_after(120):
        await talk.threads.retell(thread, (said(number) for number in range(LONG)))
    return thread


@pytest.mark.timeout(180)
async def test_opening_a_thread_of_five_thousand_messages_takes_well_under_100_ms(kept: Kept) -> None:
    async with talking(kept) as talk:
        thread = await a_long_talk(talk)
    async with talking(kept) as talk:
        times: dict[str, float] = {}
        for name, read in (
            ("snapshot", lambda: talk.threads.snapshot(thread)),
            ("page", lambda: talk.threads.page(thread, LONG // 2)),
            ("list", talk.records.threads),
            ("all", lambda: talk.threads.messages(thread)),
        ):
            took: list[float] = []
            for _ in range(5):
                began = time.perf_counter()
                await read()
                took.append((time.perf_counter() - began) * 1000)
            times[name] = min(took)
        print({name: f"{took:.1f} ms" for name, took in times.items()})
        assert times["snapshot"] < 50
        assert times["page"] < 50
        assert times["list"] < 50
        assert times["all"] < 1000
        assert len(await talk.threads.messages(thread)) == LONG
        assert (await talk.threads.snapshot(thread)).messages[-1].n == LONG
        began = time.perf_counter()
        await talk.threads.delete(thread, "ann")
        print(f"deleted in {(time.perf_counter() - began) * 1000:.0f} ms")
