"""`kill -9` in the middle of an answer takes at most the last 200 ms of it."""

import random

import pytest
from tests.support.sample_events import JournalFiles, endless_writer
from tests.support.thread_store import thread_store

from handrail.store.integrity import verify

pytestmark = pytest.mark.anyio

KILLS = 8


def spoken_until_killed(kept: JournalFiles, words: int) -> list[tuple[str, str, float]]:
    """Run the writer and kill it after so many words; each one it told us of, with its time."""
    child = endless_writer("text", kept)
    assert child.stdout is not None
    with child.stdout as told:
        lines = [told.readline() for _ in range(words)]
        child.kill()
        lines += told.read().splitlines(keepends=True)
    child.wait(timeout=10)
    said = [line.decode().split() for line in lines if line.endswith(b"\n")]
    return [(thread, word, float(at)) for thread, word, at in said]


@pytest.mark.serial
@pytest.mark.timeout(180)
async def test_a_killed_daemon_loses_at_most_the_last_200_ms_of_what_was_said(kept: JournalFiles) -> None:
    chance = random.Random(7)
    for _ in range(KILLS):
        said = spoken_until_killed(kept, chance.randint(1, 900))
        async with thread_store(kept) as talk:
            messages = await talk.threads.messages(said[0][0])
            kept_words = "".join(part.text for message in messages for part in message.parts).split()
            assert kept_words[: len(said)] == [word for _, word, _ in said][: len(kept_words)], "in order"
            lost = said[len(kept_words) :]
            assert not lost or lost[-1][2] - lost[0][2] <= 0.2
            assert [message.stop for message in messages] == ["end_turn"] * (len(messages) - 1) + [
                "interrupted"
            ]
        assert verify(kept.path, kept.head).ok
