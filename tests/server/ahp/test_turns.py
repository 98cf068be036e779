"""Turns from messages: the prompt and its answer, whatever happened to them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.server.ahp.turns import ThreadCopy, build_turn, group_messages
from handrail.store.threads.live_thread import Growth, ThreadChanges
from handrail.store.threads.thread_records import MessagePart, MessageRecord
from handrail.store.values import Role, Stop


def message(
    id: str, n: int, role: Role, *texts: str, stop: Stop | None = "end_turn", **more: Any
) -> MessageRecord:
    parts = tuple(MessagePart(n=at, kind="text", text=text, data={}) for at, text in enumerate(texts))
    fields: dict[str, Any] = {"operation": None, "queued": False, "opened_at": n * 1000, **more}
    ended = None if stop is None else n * 1000 + 500
    return MessageRecord(
        id=id, thread="h1", n=n, role=role, agent="scripted", ended_at=ended, stop=stop, parts=parts, **fields
    )


def test_a_turn_is_a_prompt_with_all_that_was_said_until_the_next_one() -> None:
    said = [
        message("m1", 1, "user", "go"),
        message("m2", 2, "assistant", "one"),
        message("m3", 3, "assistant", "two"),
        message("m4", 4, "user", "more"),
        message("m5", 5, "assistant", "three", stop=None),
    ]
    turns = [build_turn(group, {}, group[0].id) for group in group_messages(said)]
    assert [(turn.id, turn.state, len(turn.parts)) for turn in turns] == [
        ("m1", "complete", 2),
        ("m4", "active", 1),
    ]
    assert turns[0].message["text"] == "go"
    assert turns[0].duration == 2500


@pytest.mark.parametrize(
    ("stop", "state"),
    [
        ("end_turn", "complete"),
        ("refusal", "complete"),
        ("steered", "complete"),
        ("cancelled", "cancelled"),
        ("failed", "error"),
        ("interrupted", "error"),
    ],
)
def test_how_an_answer_ended_decides_the_turn(stop: Stop, state: str) -> None:
    turn = build_turn([message("m1", 1, "user", "go"), message("m2", 2, "assistant", stop=stop)], {}, "t")
    assert turn.state == state
    assert bool(turn.error) == (state == "error")


@given(st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=6))
def test_a_copy_grows_as_the_thread_does(pieces: list[str]) -> None:
    copy, text = ThreadCopy(), ""
    head = message("m1", 1, "assistant", stop=None)
    copy.apply(ThreadChanges(rev=1, messages=(head,), growths=(), state={}))
    for rev, piece in enumerate(pieces, 2):
        growth = Growth(message="m1", n=0, kind="text", at=len(text), text=piece, data=None)
        copy.apply(ThreadChanges(rev=rev, messages=(), growths=(growth,), state={}))
        text += piece
    assert copy.said[0].parts[0].text == text
    whole = Growth(message="m1", n=0, kind="text", at=0, text=text, data={})
    copy.apply(ThreadChanges(rev=99, messages=(head,), growths=(whole,), state={}, reset=True))
    assert [part.text for part in copy.said[0].parts] == [text]


def test_a_dropped_prompt_is_gone_and_a_reset_keeps_what_is_older() -> None:
    copy = ThreadCopy()
    copy.load([message("m1", 1, "user", "old"), message("m2", 2, "user", "waits", queued=True)])
    assert [one.id for one in copy.queued] == ["m2"]
    copy.apply(ThreadChanges(rev=2, messages=(), growths=(), state={}, dropped=("m2",)))
    assert copy.queued == []
    newest = message("m9", 9, "user")
    copy.apply(ThreadChanges(rev=3, messages=(newest,), growths=(), state={}, reset=True))
    assert [one.id for one in copy.said] == ["m1", "m9"]
