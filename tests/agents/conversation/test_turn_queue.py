"""The floor: whose turn it is on a thread, and who waits."""

from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.actors import ANN

from handrail.agents.conversation.turn_queue import Turn, TurnQueue
from handrail.gate.operation import Operation
from handrail.store.actor import actor_from_text
from handrail.store.threads.message import Message
from handrail.store.values import Caller, Stop

WHO = Caller(door="acp", client="ann", key="h1", workspace=None, thread="h1")
pytestmark = pytest.mark.anyio
_rev = count(1)


def turn(name: str) -> Turn:
    message = Message(
        lambda _: next(_rev), lambda _: None, id=name, thread="h1", n=1, role="user", agent="ann"
    )
    return Turn(caller=WHO, pieces=(), by=actor_from_text(name), message=message)


def begin(floor: TurnQueue, stop: Stop | None = None) -> Turn | None:
    """Take the next turn and begin its work."""
    floor.turn = floor.next(stop)
    if floor.turn is not None:
        floor.turn.operation = Operation(f"o-{name(floor.turn)}", WHO, lambda _: None)
    return floor.turn


def name(turn: Turn | None) -> str | None:
    return None if turn is None or turn.message is None else turn.message.id


async def test_the_newest_goes_next_and_those_before_it_know() -> None:
    floor = TurnQueue()
    first, second, third = turn("1"), turn("2"), turn("3")
    floor.press(first)
    assert begin(floor) is first
    floor.press(second)
    assert (second.replaced, first.operation and str(first.operation.cancelled_by)) == ("o-1", "2")
    floor.press(third)
    assert (str(second.replaced_by), third.replaced) == ("3", None), "nothing was left for it to cancel"
    assert begin(floor, "cancelled") is second
    assert begin(floor, "cancelled") is third
    assert third.replaced_by is None


async def test_queued_turns_go_after_a_good_end_and_are_held_after_a_bad_one() -> None:
    floor = TurnQueue()
    for each in map(turn, "abc"):
        floor.queue(each)
    assert name(begin(floor)) == "a"
    assert name(begin(floor, "end_turn")) == "b"
    assert begin(floor, "failed") is None
    floor.press(turn("x"))
    floor.queue(turn("y"))
    assert name(begin(floor)) == "x"
    assert name(begin(floor, "end_turn")) == "y"
    assert begin(floor, "end_turn") is None, "what is held waits for a word"
    floor.queue(turn("z"))
    floor.release()
    assert [name(begin(floor, "end_turn")) for _ in range(3)] == ["c", "z", None]


async def test_who_waits_can_leave_the_line_once() -> None:
    floor = TurnQueue()
    floor.press(turn("now"))
    floor.queue(turn("queued"))
    floor.hold(turn("held"))
    for each in ("now", "queued", "held"):
        assert name(floor.take_out(each)) == each
        assert floor.take_out(each) is None
    assert floor.next(None) is None


async def test_a_closed_floor_lets_everybody_go() -> None:
    floor = TurnQueue()
    floor.press(turn("running"))
    running = begin(floor)
    floor.press(turn("now"))
    floor.queue(turn("queued"))
    floor.hold(turn("held"))
    assert [name(each) for each in floor.close(ANN)] == ["now", "queued", "held"]
    assert running is not None
    assert running.operation is not None
    assert running.operation.ended
    assert floor.next(None) is None


VERBS = st.sampled_from(["press", "queue", "end well", "end badly", "release", "take out"])


@settings(deadline=None)
@given(st.lists(VERBS, max_size=40))
async def test_every_turn_is_taken_once_or_waits_and_none_is_lost(verbs: list[str]) -> None:
    floor, names = TurnQueue(), count()
    came: list[str] = []
    gone: list[str | None] = []
    for verb in verbs:
        match verb:
            case "press" | "queue":
                came.append(str(next(names)))
                (floor.press if verb == "press" else floor.queue)(turn(came[-1]))
            case "release":
                floor.release()
            case "take out" if came:
                out = floor.take_out(came[len(came) // 2])
                gone += [] if out is None else [name(out)]
            case "end well" | "end badly":
                after = begin(floor, "end_turn" if verb == "end well" else "cancelled")
                gone += [] if after is None else [name(after)]
            case _:
                continue
    left = [name(each) for each in floor.close(ANN)]
    assert sorted(filter(None, [*gone, *left])) == sorted(came)
