"""Requests in flight, and the client's handshake for replay to a new daemon.

Builds the replies to requests that a lost daemon did not answer. A request is never sent twice (at most once).
"""

from __future__ import annotations

import json

from handrail.door.jsonrpc_lines import Piece

TYPE_CHECKING = False

if TYPE_CHECKING:
    from handrail.door.jsonrpc_lines import Message


WEIGHT_MAX = 4 << 20
"""Bytes of ids and methods in memory; bounds a client that sends requests and never reads (about 30,000 requests)."""

ASKED_MAX = 1000
"""Open requests of the daemon to the client in memory; bounds a daemon that sends requests without end."""

UNAVAILABLE = -32000
"""JSON-RPC server error. There is no more specific code for "the server behind this pipe is gone"."""


class RequestInFlight:
    """One request that was sent completely and is not answered yet."""

    __slots__ = ("call", "method")

    def __init__(self, method: str) -> None:
        self.method = method
        self.call: str | None = None


class RequestsInFlight:
    """Open requests in both directions, across all connections of this door."""

    def __init__(self) -> None:
        self._open: dict[str, RequestInFlight] = {}
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
        """Record a line that was sent to the daemon completely."""
        for each in piece.messages:
            if each.is_request and each.key and each.method:
                self._remove(each.key)
                self._open[each.key] = RequestInFlight(each.method)
                self._weight += _weight(each.key, each.method)
            elif each.cancels:
                self._remove(each.cancels)
        if piece.starts and len(piece.messages) == 1 and piece.messages[0].method == "initialize":
            self.initialize, self.initialized = piece, None
        self.remember(piece)

    def remember(self, piece: Piece) -> None:
        """Keep `notifications/initialized` for replay: the client sends it once, even if no daemon received it."""
        if self.initialize and any(each.method == "notifications/initialized" for each in piece.messages):
            self.initialized = piece

    @property
    def awaits_answers(self) -> bool:
        """Whether the client owes an answer to this daemon or to a previous one."""
        return bool(self._asked or self._stale)

    def is_stale(self, each: Message) -> bool:
        """Whether this answers a request of a previous daemon; it must not be forwarded to the new one."""
        if not each.is_answer or each.key is None:
            return False
        current = each.key in self._asked
        stale = each.key in self._stale and not current
        (self._asked if current else self._stale).discard(each.key)
        return stale

    # From the daemon

    def heard(self, piece: Piece) -> None:
        """Record a piece that was forwarded from the daemon to the client."""
        for each in piece.messages if piece.ends else ():
            if each.is_answer:
                self._remove(each.key or "")
            elif each.is_request and len(self._asked) < ASKED_MAX:
                self._asked.add(each.key or "")

    def opened(self, key: str, call: str) -> None:
        if key in self._open:
            self._open[key].call = call

    def lost(self) -> tuple[list[bytes], Piece | None]:
        """Clear all open requests of a lost daemon.

        Returns the lines to send to the client, and an unanswered `initialize` to send to the next daemon.
        """
        resend, flight = self.initialize, self._open.get(self.initialize_key or "")
        if flight is None or flight.method != "initialize":
            resend = None
        else:
            self._remove(self.initialize_key or "")
            self.initialize = self.initialized = None
        lines = [interrupted(key, flight, self._modern) for key, flight in self._open.items()]
        lines += [_cancellation(key) for key in self._asked]
        self._stale, self._asked = self._asked, set()
        self._open.clear()
        self._weight = 0
        return lines, resend

    @staticmethod
    def unsent(each: Message, why: str) -> bytes:
        """Build the answer to a request that no daemon received completely."""
        sentence = f"{why} This request was not run; it is safe to send it again."
        return _answer(each.key, error={"code": UNAVAILABLE, "message": sentence})

    @property
    def _modern(self) -> bool:
        """Whether the client uses MCP 2026-07-28: no handshake, and every result carries a `resultType`."""
        return self.initialize is None

    def _remove(self, key: str) -> None:
        flight = self._open.pop(key, None)
        if flight:
            self._weight -= _weight(key, flight.method)


def interrupted(key: str, flight: RequestInFlight, modern: bool) -> bytes:
    """Build the answer to a request that was sent and whose outcome is unknown."""
    gone = "Handrail's daemon went away before it answered this request."
    if flight.method != "tools/call":
        sentence = f"{gone} It was not sent again; send it once more if you still need it."
        return _answer(key, error={"code": UNAVAILABLE, "message": sentence})
    if flight.call:
        sentence = (
            f"{gone} It had become call {flight.call}. A command that ran goes on in its terminal, and a call that "
            "waited for a person still does; anything else was interrupted. Nothing was run again. Before repeating it, "
            f'look: get_call with call_id "{flight.call}" has the record, and wait_for_call waits for its end.'
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


def _cancellation(key: str) -> bytes:
    params = {"requestId": json.loads(key), "reason": "Handrail's daemon, which asked, went away."}
    return _line({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})


def _answer(key: str | None, **outcome: object) -> bytes:
    return _line({"jsonrpc": "2.0", "id": json.loads(key) if key else None, **outcome})


def _line(item: dict[str, object]) -> bytes:
    return json.dumps(item).encode() + b"\n"


def _weight(key: str, method: str) -> int:
    return 100 + len(key) + len(method)
