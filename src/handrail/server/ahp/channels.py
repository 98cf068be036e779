"""Channels: the state of each URI, the numbering of actions, who is subscribed, and the replay of missed actions.

A channel's state changes only by `publish`, through its reducer, so that a snapshot and the actions after it always give
the same state. Does not know what the states mean.
"""

import time
from collections import deque
from dataclasses import field
from typing import Protocol

from handrail.lazy_dataclass import dataclass
from handrail.server.ahp.ahp_wire import ROOT, Obj, notification
from handrail.server.ahp.reducers import Reducer

REPLAYED, REPLAYED_BYTES = 1000, 8 * 1024 * 1024
"""Actions kept for clients that reconnect, and their size. One that missed more gets snapshots."""


class Subscriber(Protocol):
    """A connection that receives messages. `put` never blocks."""

    def put(self, message: str) -> None: ...

    async def drained(self) -> None:
        """Wait until few messages are unsent, for a bounded time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The client and its number of the action."""

    client: str
    number: int


@dataclass(slots=True)
class Channel:
    """One URI with its state."""

    state: Obj
    reduce: Reducer
    since: int
    """The sequence number at which the state was loaded; earlier actions are not in the replay."""
    subscribers: set[Subscriber] = field(default_factory=set[Subscriber])


class Channels:
    """All channels of the host."""

    def __init__(self) -> None:
        self.seq = time.time_ns() // 1_000_000
        """The newest number. Begins with the time, so that no number of an earlier daemon is used again."""
        self._channels: dict[str, Channel] = {}
        self._replay: deque[tuple[int, str, Obj, int]] = deque()
        self._replay_bytes = 0
        self._notices: deque[tuple[int, str]] = deque(maxlen=REPLAYED)
        self._floor = self.seq
        """Actions up to this number are no longer in the replay."""

    def open(self, uri: str, state: Obj, reduce: Reducer) -> Channel:
        channel = self._channels[uri] = Channel(state, reduce, self.seq)
        return channel

    def close(self, uri: str) -> None:
        self._channels.pop(uri, None)

    def get(self, uri: str) -> Channel | None:
        return self._channels.get(uri)

    def state(self, uri: str) -> Obj:
        """The state of an open channel. Raises LookupError."""
        try:
            return self._channels[uri].state
        except KeyError:
            raise LookupError(f"There is no channel {uri}.") from None

    def snapshot(self, uri: str) -> Obj:
        """The snapshot of an open channel, as it is sent."""
        return {"resource": uri, "state": self.state(uri), "fromSeq": self.seq}

    def publish(
        self, uri: str, action: Obj, origin: Origin | None = None, sender: Subscriber | None = None
    ) -> None:
        """Apply an action, and send it to all subscribers and its sender. Ignored if the channel is not open."""
        channel = self._channels.get(uri)
        if channel is None:
            return
        channel.state = channel.reduce(channel.state, action)
        self.seq += 1
        envelope = _envelope(uri, action, self.seq, origin)
        message = notification("action", envelope)
        self._keep(uri, envelope, len(message))
        for subscriber in {*channel.subscribers, *(() if sender is None else (sender,))}:
            subscriber.put(message)

    def _keep(self, uri: str, envelope: Obj, size: int) -> None:
        """Keep an action for the replay, in place of the oldest ones if there are too many."""
        self._replay.append((self.seq, uri, envelope, size))
        self._replay_bytes += size
        while len(self._replay) > REPLAYED or self._replay_bytes > REPLAYED_BYTES:
            self._floor, _, _, freed = self._replay.popleft()
            self._replay_bytes -= freed

    def reject(self, uri: str, action: Obj, origin: Origin, reason: str, to: Subscriber) -> None:
        """Inform a client that its action was not applied."""
        envelope = _envelope(uri, action, self.seq, origin)
        to.put(notification("action", {**envelope, "rejectionReason": reason}))

    def tell(self, uri: str, action: Obj, to: Subscriber) -> None:
        """Send an action to one client alone. The state does not change, so no snapshot has it."""
        to.put(notification("action", _envelope(uri, action, self.seq, None)))

    def echo(self, uri: str, action: Obj, origin: Origin, to: Subscriber) -> None:
        """Acknowledge an action that changes no state here."""
        to.put(notification("action", _envelope(uri, action, self.seq, origin)))

    def notify(self, method: str, params: Obj) -> None:
        """Send a notification about sessions to all subscribers of the root."""
        message = notification(method, {"channel": ROOT, **params})
        self._notices.append((self.seq, message))
        root = self._channels.get(ROOT)
        for subscriber in () if root is None else tuple(root.subscribers):
            subscriber.put(message)

    def unwatched(self) -> list[str]:
        """The open channels without subscribers."""
        return [uri for uri, channel in self._channels.items() if not channel.subscribers]

    def leave(self, subscriber: Subscriber) -> None:
        """Remove a subscriber from every channel."""
        for channel in self._channels.values():
            channel.subscribers.discard(subscriber)

    def replay(self, after: int, uris: list[str]) -> list[Obj] | None:
        """The actions after a number; None if some may be missing."""
        channels = [self._channels.get(uri) for uri in uris]
        has_all = all(channel is not None and channel.since <= after for channel in channels)
        if not has_all or not self._floor <= after <= self.seq:
            return None
        return [envelope for seq, uri, envelope, _ in self._replay if seq > after and uri in uris]

    def notices(self, after: int) -> list[str]:
        """The notifications since a number: a replay has only actions."""
        return [message for seq, message in self._notices if seq >= after]


def _envelope(uri: str, action: Obj, seq: int, origin: Origin | None) -> Obj:
    envelope: Obj = {"channel": uri, "action": action, "serverSeq": seq}
    if origin is not None:
        envelope["origin"] = {"clientId": origin.client, "clientSeq": origin.number}
    return envelope
