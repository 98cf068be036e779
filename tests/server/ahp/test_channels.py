"""Channels: numbering, subscribers and the replay, by generated histories."""

from hypothesis import given
from hypothesis import strategies as st

from handrail.server.ahp.channels import REPLAYED, REPLAYED_BYTES, Channels, Origin
from handrail.server.ahp.reducers import reduce_terminal


class Box:
    """A subscriber that keeps what it is sent."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def put(self, message: str) -> None:
        self.messages.append(message)

    async def drained(self) -> None:
        return


def terminal(channels: Channels, uri: str) -> None:
    channels.open(uri, {"content": []}, reduce_terminal)


@given(
    st.lists(st.tuples(st.sampled_from(["a", "b"]), st.text("xy", min_size=1, max_size=3)), max_size=40),
    st.data(),
)
def test_a_snapshot_and_the_replay_after_it_give_the_state(
    history: list[tuple[str, str]], data: st.DataObject
) -> None:
    channels = Channels()
    for uri in ("a", "b"):
        terminal(channels, uri)
    cut = data.draw(st.integers(0, len(history)))
    for uri, text in history[:cut]:
        channels.publish(uri, {"type": "terminal/data", "data": text})
    snapshot = channels.snapshot("a")
    for uri, text in history[cut:]:
        channels.publish(uri, {"type": "terminal/data", "data": text})
    replayed = channels.replay(snapshot["fromSeq"], ["a"])
    assert replayed is not None
    state = snapshot["state"]
    for envelope in replayed:
        state = reduce_terminal(state, envelope["action"])
    assert state == channels.state("a")
    assert [one["serverSeq"] for one in replayed] == sorted({one["serverSeq"] for one in replayed})


def test_more_than_the_replay_holds_needs_a_snapshot() -> None:
    channels = Channels()
    terminal(channels, "a")
    begin = channels.seq
    for _ in range(REPLAYED):
        channels.publish("a", {"type": "terminal/data", "data": "x"})
    assert len(channels.replay(begin, ["a"]) or []) == REPLAYED
    channels.publish("a", {"type": "terminal/data", "data": "x"})
    assert channels.replay(begin, ["a"]) is None
    assert channels.replay(channels.seq + 1, ["a"]) is None
    assert channels.replay(channels.seq, ["unknown"]) is None


def test_long_actions_leave_the_replay_earlier() -> None:
    channels = Channels()
    terminal(channels, "a")
    begin, long = channels.seq, "x" * (REPLAYED_BYTES // 4)
    for _ in range(3):
        channels.publish("a", {"type": "terminal/data", "data": long})
    assert len(channels.replay(begin, ["a"]) or []) == 3
    channels.publish("a", {"type": "terminal/data", "data": long})
    assert channels.replay(begin, ["a"]) is None
    assert len(channels.replay(begin + 1, ["a"]) or []) == 3


def test_a_channel_that_was_opened_again_is_not_replayed_from_before() -> None:
    channels = Channels()
    terminal(channels, "a")
    seen = channels.seq
    channels.publish("a", {"type": "terminal/data", "data": "x"})
    channels.close("a")
    terminal(channels, "a")
    assert channels.replay(seen, ["a"]) is None


def test_a_rejection_reaches_its_sender_alone_and_changes_nothing() -> None:
    channels, sender, other = Channels(), Box(), Box()
    terminal(channels, "a")
    channel = channels.get("a")
    assert channel is not None
    channel.subscribers.add(other)
    action = {"type": "terminal/data", "data": "x"}
    channels.reject("a", action, Origin(client="c", number=7), "because", sender)
    assert (len(sender.messages), other.messages) == (1, [])
    assert '"rejectionReason":"because"' in sender.messages[0]
    assert channels.state("a") == {"content": []}
    channels.publish(
        "a", action, Origin(client="c", number=8), sender
    )  # not subscribed, and told all the same
    assert (len(sender.messages), len(other.messages)) == (2, 1)
    channels.leave(other)
    assert channels.unwatched() == ["a"]
