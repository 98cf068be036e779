"""Session updates: the messages of the Agent Client Protocol that an operation sends to its host.

`SessionUpdates` converts each report to ACP; `UpdateQueue` queues and sends the messages in order.
"""

import base64
import json
from collections import deque
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol, cast

import anyio

from handrail.own_agent.acp_stdio import Disconnected
from handrail.own_agent.activity import ActivityUpdate
from handrail.own_agent.host import Answer
from handrail.own_agent.tools.agent_tool import CallDisplay, Json, PlanEntry, Result


class Connection(Protocol):
    """The connection to the host."""

    async def notify(self, method: str, params: Json) -> None:
        """Send a notification; returns once it is written. Raises Disconnected."""
        ...

    async def ask(self, method: str, params: Json) -> Any:
        """Send a request and wait for its result. If the caller is cancelled, the host is notified. Raises
        Disconnected, RequestError."""
        ...


class _QueuedMessage:
    """A queued message. `words` is set for text that may still grow."""

    def __init__(self, method: str, params: Json, words: list[str] | None = None) -> None:
        self.method, self.params, self.words = method, params, words


class UpdateQueue:
    """The queue of messages of one session."""

    def __init__(self, wire: Connection, session: str) -> None:
        self._wire, self._session = wire, session
        self._waiting: deque[_QueuedMessage] = deque()
        self._replaced: dict[str, _QueuedMessage] = {}
        """Queued messages that a newer one of the same id may replace."""
        self._bell = anyio.Event()
        self._idle = anyio.Event()
        self._idle.set()
        self._over = False

    async def run(self) -> None:
        """Send queued messages until the host disconnects."""
        try:
            while True:
                await self._bell.wait()
                self._bell = anyio.Event()
                while self._waiting:
                    await self._send(self._next())
                self._idle.set()
        except Disconnected:
            pass
        finally:
            self.end()

    def end(self) -> None:
        """Drop all queued messages: the host has disconnected."""
        self._over = True
        self._waiting.clear()
        self._replaced.clear()
        self._idle.set()

    async def flushed(self) -> None:
        """Wait until the queue is empty, or the host has disconnected."""
        await self._idle.wait()

    def text(self, kind: str, words: str) -> None:
        """Queue a piece of text, merged with the last message if possible. `kind` is the type of session
        update."""
        if not words:
            return
        last = self._waiting[-1] if self._waiting else None
        if last is not None and last.words is not None and last.method == kind:
            last.words.append(words)
        else:
            self._put(_QueuedMessage(kind, {}, [words]))

    def update(self, update: Json) -> None:
        self.notify("session/update", {"update": update})

    def latest(self, id: str, update: Json) -> None:
        """Queue an update that replaces the last one of this id if that is still queued."""
        message = _QueuedMessage("session/update", {"sessionId": self._session, "update": update})
        if id in self._replaced:
            self._replaced[id].params = message.params
        else:
            self._replaced[id] = message
            self._put(message)

    def notify(self, method: str, params: Json) -> None:
        self._put(_QueuedMessage(method, {"sessionId": self._session, **params}))

    async def ask(self, method: str, params: Json) -> Any:
        """Send a request after all queued messages are sent, and wait for its result."""
        await self.flushed()
        return await self._wire.ask(method, {"sessionId": self._session, **params})

    def _put(self, message: _QueuedMessage) -> None:
        if self._over:
            return
        self._waiting.append(message)
        self._idle = anyio.Event() if self._idle.is_set() else self._idle
        self._bell.set()

    def _next(self) -> _QueuedMessage:
        message = self._waiting.popleft()
        self._replaced = {of: waits for of, waits in self._replaced.items() if waits is not message}
        return message

    async def _send(self, message: _QueuedMessage) -> None:
        if message.words is None:
            await self._wire.notify(message.method, message.params)
        else:
            content: Json = {"type": "text", "text": "".join(message.words)}
            update: Json = {"sessionUpdate": message.method, "content": content}
            await self._wire.notify("session/update", {"sessionId": self._session, "update": update})


PERMISSION: list[Json] = [
    {"optionId": "allowed", "name": "Allow once", "kind": "allow_once"},
    {"optionId": "always", "name": "Allow for this session", "kind": "allow_always"},
    {"optionId": "denied", "name": "Deny", "kind": "reject_once"},
]
PICTURES_MAX = 12 << 20
INPUT_MAX = 4 << 20
"""Bytes of pictures in one result, and characters of one call's input, that are sent: a host may kill a
program whose messages are too large."""
SHOWN_MAX = 100_000
"""Characters of one result that are sent for display; the tool keeps the whole."""


class SessionUpdates:
    """Reports of one session to its host, as ACP messages (see host.py)."""

    def __init__(
        self,
        wire: Connection,
        session: str,
        cwd: Path,
        *,
        ours: bool = False,
        on_call: Callable[[str, CallDisplay], None] | None = None,
    ) -> None:
        """`ours`: the host is Handrail, which accepts activities and has its own display of notes and diffs.
        `on_call` gets the display of each call."""
        self._delivery = UpdateQueue(wire, session)
        self._cwd, self._ours, self._on_call = cwd, ours, on_call
        self._drafts: dict[str, list[Json]] = {}
        """Diffs of running calls, for hosts that cannot see them otherwise."""

    async def deliver(self) -> None:
        """Send queued messages; run it as a task."""
        await self._delivery.run()

    def end(self) -> None:
        """Drop all queued messages: the host has disconnected."""
        self._delivery.end()

    async def flushed(self) -> None:
        """Wait until the queue is empty, or the host has disconnected."""
        await self._delivery.flushed()

    # Reports

    def text(self, words: str) -> None:
        self._delivery.text("agent_message_chunk", words)

    def thought(self, words: str) -> None:
        self._delivery.text("agent_thought_chunk", words)

    def prompt(self, content: Json) -> None:
        """Send an earlier prompt, when a conversation is replayed."""
        self.update({"sessionUpdate": "user_message_chunk", "content": content})

    def note(self, sentence: str) -> None:
        note: Json = {"handrail": {"note": True}}
        content: Json = {"type": "text", "text": sentence if self._ours else f"\n\n{sentence}\n\n"}
        self.update({"sessionUpdate": "agent_message_chunk", "content": content, "_meta": note})

    def call_started(self, id: str, tool: str, shown: CallDisplay, input: Json) -> None:
        if self._on_call is not None:
            self._on_call(id, shown)
        visible = _shown_input(input)
        self._drafts[id] = [] if self._ours else build_diffs(tool, visible, self._cwd)
        self.update(
            {
                "sessionUpdate": "tool_call",
                "toolCallId": id,
                "title": shown.title,
                "kind": shown.kind,
                "status": "in_progress",
                "locations": self._locations(shown),
                "rawInput": visible,
                "_meta": {"toolName": tool},
                **({"content": self._drafts[id]} if self._drafts[id] else {}),
            }
        )

    def call_heard(self, id: str, words: str) -> None:
        content = [*self._drafts.get(id, ()), _piece(words)]
        update: Json = {"sessionUpdate": "tool_call_update", "toolCallId": id, "content": content}
        self._delivery.latest(id, update)

    def call_ended(self, id: str, result: Result) -> None:
        self.update(
            {
                "sessionUpdate": "tool_call_update",
                "toolCallId": id,
                "status": "failed" if result.failed else "completed",
                # ACP has no "cancelled" status; hosts that know this extension show it.
                **({"_meta": {"handrail": {"status": "cancelled"}}} if result.ended == "cancelled" else {}),
                "content": [*self._drafts.pop(id, ()), *_contents(result)],
                **({"rawOutput": result.raw} if result.raw else {}),
            }
        )

    def plan(self, entries: Sequence[PlanEntry]) -> None:
        listed = [
            {"content": each.content, "status": each.status, "priority": each.priority} for each in entries
        ]
        self.update({"sessionUpdate": "plan", "entries": listed})

    def usage(self, used: int, size: int | None, cost: Decimal | None) -> None:
        update: Json = {"sessionUpdate": "usage_update", "used": used, "size": size or 0}
        if cost is not None:
            update["cost"] = {"amount": float(cost), "currency": "USD"}
        self.update(update)

    def title(self, title: str) -> None:
        self.update({"sessionUpdate": "session_info_update", "title": title})

    def activity(self, told: ActivityUpdate) -> None:
        if self._ours:
            activity: Json = {
                "id": told.id,
                "parent": told.parent,
                "sort": told.sort,
                "title": told.title,
                "toolCallId": told.tool_call,
                "how": told.how,
                "detail": told.detail,
            }
            self._delivery.notify("_handrail/activity", {"activity": activity})

    def update(self, update: Json) -> None:
        """Send any session update."""
        self._delivery.update(update)

    async def ask(self, id: str, shown: CallDisplay, input: Json) -> Answer:
        call: Json = {
            "toolCallId": id,
            "title": shown.title,
            "kind": shown.kind,
            "locations": self._locations(shown),
            "rawInput": _shown_input(input),
        }
        params: Json = {"toolCall": call, "options": PERMISSION}
        return _answer(await self._delivery.ask("session/request_permission", params))

    def _locations(self, shown: CallDisplay) -> list[Json]:
        return [{"path": str(self._cwd / path)} for path in shown.paths]


def _contents(result: Result) -> list[Json]:
    pieces, room = [_piece(result.text)] if result.text else [], PICTURES_MAX
    for each in result.images:
        room -= len(each.data)
        fits = room >= 0
        pieces.append(_picture(each.media_type, each.data) if fits else _piece("[one more picture]"))
    return pieces


def _shown_input(input: Json) -> Json:
    length = len(json.dumps(input))
    return input if length <= INPUT_MAX else {"…": f"{length:,} characters, too many to be shown"}


def _piece(words: str) -> Json:
    shown = words if len(words) <= SHOWN_MAX else f"{words[:SHOWN_MAX]}\n… {len(words) - SHOWN_MAX} more"
    return {"type": "content", "content": {"type": "text", "text": shown}}


def _picture(kind: str, data: bytes) -> Json:
    image: Json = {"type": "image", "mimeType": kind, "data": base64.b64encode(data).decode()}
    return {"type": "content", "content": image}


def _answer(response: Any) -> Answer:
    outcome = cast("Json", response).get("outcome") if isinstance(response, dict) else None
    chosen = cast("Json", outcome) if isinstance(outcome, dict) else {}
    if chosen.get("outcome") != "selected":
        return "cancelled"
    option_id = chosen.get("optionId")
    return cast("Answer", option_id) if option_id in ("allowed", "always") else "denied"


def build_diffs(tool: str, input: Json, cwd: Path) -> list[Json]:
    """The diff of a call that writes a file, in ACP form; empty for other tools or invalid input."""
    match tool, input:
        case "write_file", {"path": str(path), "content": str(new)}:
            return [_diff(cwd / path, None, new)]
        case "edit_file", {"path": str(path), "old_string": str(old), "new_string": str(new)}:
            return [_diff(cwd / path, old, new)]
        case _:
            return []


def _diff(path: Path, old: str | None, new: str) -> Json:
    return {"type": "diff", "path": str(path), "newText": new, **({} if old is None else {"oldText": old})}
