"""What the client still waits for, and what a new daemon has to be told again.

Owns the ids in flight, the client's handshake and the words for a request that will not be answered otherwise.
Does not know sockets or processes, and never decides to send a request again: at most once.
"""

from __future__ import annotations

import json

from handrail.door.jsonrpc_lines import Piece

TYPE_CHECKING = False

if TYPE_CHECKING:
    from handrail.door.jsonrpc_lines import Message


WEIGHT_MAX = 4 << 20
"""Bytes of ids and methods remembered; bounds a client that asks and never reads (some 30,000 requests)."""

ASKED_MAX = 1000
"""Questions of the daemon to the client that are remembered; bounds a daemon that only asks."""

UNAVAILABLE = -32000
"""JSON-RPC: a server's own error. No better code exists for "the server behind this pipe is gone"."""


class Flight:
    """One request that was sent whole and is not answered yet."""

    __slots__ = ("call", "method")

    def __init__(self, method: str) -> None:
        self.method = method
        self.call: str | None = None


class Flights:
    """Who waits for whom, over every connection this door makes."""

    def __init__(self) -> None:
        self._open: dict[str, Flight] = {}
        self._weight = 0
        self._asked: set[str] = set()
        self._stale: set[str] = set()
        self.initialize: Piece | None = None
        self.initialized: Piece | None = None

    def __len__(self) -> int:
        return len(self._open)

    @property
    def initialize_key(self) -> str | None:
        return self.initialize.messages[0].key if self.initialize else None

    @property
    def full(self) -> bool:
        return self._weight >= WEIGHT_MAX

    # From the client

    def sent(self, piece: Piece) -> None:
        """The line of this piece has been handed to the daemon to its end."""
        for each in piece.messages:
            if each.is_request and each.key and each.method:
                self._take_off(each.key)
                self._open[each.key] = Flight(each.method)
                self._weight += _weight(each.key, each.method)
            elif each.cancels:
                self._take_off(each.cancels)
        if piece.starts and len(piece.messages) == 1 and piece.messages[0].method == "initialize":
            self.initialize, self.initialized = piece, None
        self.remember(piece)

    def remember(self, piece: Piece) -> None:
        """Keep the end of the handshake, which the client says once, whether or not a daemon heard it."""
        if self.initialize and any(each.method == "notifications/initialized" for each in piece.messages):
            self.initialized = piece

    @property
    def awaits_answers(self) -> bool:
        """A daemon has asked the client something, this one or one that is gone."""
        return bool(self._asked or self._stale)

    def is_stale(self, each: Message) -> bool:
        """An answer to a question of a daemon that is gone: the new one never asked, it must not hear it."""
        if not each.is_answer or each.key is None:
            return False
        current = each.key in self._asked
        stale = each.key in self._stale and not current
        (self._asked if current else self._stale).discard(each.key)
        return stale

    # From the daemon

    def heard(self, piece: Piece) -> None:
        """A piece of what the daemon said that goes on to the client."""
        for each in piece.messages if piece.ends else ():
            if each.is_answer:
                self._take_off(each.key or "")
            elif each.is_request and len(self._asked) < ASKED_MAX:
                self._asked.add(each.key or "")

    def opened(self, key: str, call: str) -> None:
        if key in self._open:
            self._open[key].call = call

    def lost(self) -> tuple[list[bytes], Piece | None]:
        """The daemon is gone: last words for all it owes, and an `initialize` that is to be said again."""
        again, flight = self.initialize, self._open.get(self.initialize_key or "")
        if flight is None or flight.method != "initialize":
            again = None
        else:
            self._take_off(self.initialize_key or "")
            self.initialize = self.initialized = None
        words = [interrupted(key, flight, self._modern) for key, flight in self._open.items()]
        words += [_withdrawn(key) for key in self._asked]
        self._stale, self._asked = self._asked, set()
        self._open.clear()
        self._weight = 0
        return words, again

    @staticmethod
    def unsent(each: Message, why: str) -> bytes:
        """The answer to a request that no daemon got to the end of."""
        sentence = f"{why} This request was not run; it is safe to send it again."
        return _answer(each.key, error={"code": UNAVAILABLE, "message": sentence})

    @property
    def _modern(self) -> bool:
        """The 2026-07-28 generation has no handshake and wants every result to say that it is complete."""
        return self.initialize is None

    def _take_off(self, key: str) -> None:
        flight = self._open.pop(key, None)
        if flight:
            self._weight -= _weight(key, flight.method)


def interrupted(key: str, flight: Flight, modern: bool) -> bytes:
    """The answer to a request that was sent and whose end nobody can tell."""
    gone = "Handrail's daemon went away before it answered this request."
    if flight.method != "tools/call":
        sentence = f"{gone} It was not sent again; send it once more if you still need it."
        return _answer(key, error={"code": UNAVAILABLE, "message": sentence})
    if flight.call:
        sentence = (
            f"{gone} It had become call {flight.call}. If it ran, it was interrupted and not run again; if it "
            "waited for a person, it still does. Before repeating it, look: get_call with call_id "
            f'"{flight.call}" has the record.'
        )
    else:
        sentence = (
            f"{gone} It may have begun; no call id was given yet, and nothing was run again. "
            "Before repeating it, look in list_calls for what is on record; get_call shows one of them."
        )
    return _answer(key, result=_failed_call(sentence, flight.call, modern))


def _failed_call(sentence: str, call: str | None, modern: bool) -> dict[str, object]:
    structured = {"status": "interrupted", "message": sentence}
    if call:
        structured["call_id"] = call
    result: dict[str, object] = {"resultType": "complete"} if modern else {}
    content = [{"type": "text", "text": sentence}]
    return {**result, "content": content, "structuredContent": structured, "isError": True}


def _withdrawn(key: str) -> bytes:
    params = {"requestId": json.loads(key), "reason": "Handrail's daemon, which asked, went away."}
    return _line({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})


def _answer(key: str | None, **outcome: object) -> bytes:
    return _line({"jsonrpc": "2.0", "id": json.loads(key) if key else None, **outcome})


def _line(item: dict[str, object]) -> bytes:
    return json.dumps(item).encode() + b"\n"


def _weight(key: str, method: str) -> int:
    return 100 + len(key) + len(method)
