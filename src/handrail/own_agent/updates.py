"""What an operation says, as messages of the Agent Client Protocol.

Owns the protocol's form of each thing that can be said. It does not know what is said and when, nor how it travels
(delivery.py).

What waits to be sent to a host, in the order in which it was said.

What a call of ours would write, as editors show it: a diff.
"""

import base64
import json
from collections import deque
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol, cast

import anyio

from handrail.own_agent.acp_stdio import Gone
from handrail.own_agent.activity import Told
from handrail.own_agent.host import Answer
from handrail.own_agent.tools.agent_tool import Entry, Json, Result, Shown


class Wire(Protocol):
    """The other end."""

    async def notify(self, method: str, params: Json) -> None:
        """Returns when it is on its way. Raises Gone."""
        ...

    async def ask(self, method: str, params: Json) -> Any:
        """Where the wait is cancelled, the other end is told. Raises Gone, and the SDK's RequestError."""
        ...


class _Said:
    """One message that waits; `words` where it is text that may still grow."""

    def __init__(self, method: str, params: Json, words: list[str] | None = None) -> None:
        self.method, self.params, self.words = method, params, words


class Delivery:
    """Of one session."""

    def __init__(self, wire: Wire, session: str) -> None:
        self._wire, self._session = wire, session
        self._waiting: deque[_Said] = deque()
        self._replaced: dict[str, _Said] = {}
        """Of those that wait, what may be told in another way until it is sent."""
        self._bell = anyio.Event()
        self._rest = anyio.Event()
        self._rest.set()
        self._over = False

    async def run(self) -> None:
        """Send what is said, for as long as there is somebody to hear it."""
        try:
            while True:
                await self._bell.wait()
                self._bell = anyio.Event()
                while self._waiting:
                    await self._send(self._next())
                self._rest.set()
        except Gone:
            pass
        finally:
            self.end()

    def end(self) -> None:
        """Nobody listens any more."""
        self._over = True
        self._waiting.clear()
        self._replaced.clear()
        self._rest.set()

    async def flushed(self) -> None:
        """Wait until all that was said is sent, or nobody listens any more."""
        await self._rest.wait()

    def text(self, kind: str, words: str) -> None:
        """A piece of a text: `kind` is the update that carries it."""
        if not words:
            return
        last = self._waiting[-1] if self._waiting else None
        if last is not None and last.words is not None and last.method == kind:
            last.words.append(words)
        else:
            self._say(_Said(kind, {}, [words]))

    def update(self, update: Json) -> None:
        self.notify("session/update", {"update": update})

    def latest(self, id: str, update: Json) -> None:
        """In place of the last one of this id, where that still waits."""
        said = _Said("session/update", {"sessionId": self._session, "update": update})
        if id in self._replaced:
            self._replaced[id].params = said.params
        else:
            self._replaced[id] = said
            self._say(said)

    def notify(self, method: str, params: Json) -> None:
        self._say(_Said(method, {"sessionId": self._session, **params}))

    async def ask(self, method: str, params: Json) -> Any:
        """Once all that was said before is sent."""
        await self.flushed()
        return await self._wire.ask(method, {"sessionId": self._session, **params})

    def _say(self, said: _Said) -> None:
        if self._over:
            return
        self._waiting.append(said)
        self._rest = anyio.Event() if self._rest.is_set() else self._rest
        self._bell.set()

    def _next(self) -> _Said:
        said = self._waiting.popleft()
        self._replaced = {of: waits for of, waits in self._replaced.items() if waits is not said}
        return said

    async def _send(self, said: _Said) -> None:
        if said.words is None:
            await self._wire.notify(said.method, said.params)
        else:
            content: Json = {"type": "text", "text": "".join(said.words)}
            update: Json = {"sessionUpdate": said.method, "content": content}
            await self._wire.notify("session/update", {"sessionId": self._session, "update": update})


PERMISSION: list[Json] = [
    {"optionId": "allowed", "name": "Allow once", "kind": "allow_once"},
    {"optionId": "always", "name": "Allow for this session", "kind": "allow_always"},
    {"optionId": "denied", "name": "Deny", "kind": "reject_once"},
]
PICTURES_MAX = 12 << 20
INPUT_MAX = 4 << 20
"""Bytes of one result's pictures, and characters of one call's input, that are shown: a host may end a program that says
more in one message than any should."""
SHOWN_MAX = 100_000
"""Characters of one result that are shown to people; the whole is with the tool that gave it."""


class Speech:
    """One session's voice (voice.py)."""

    def __init__(
        self,
        wire: Wire,
        session: str,
        cwd: Path,
        *,
        ours: bool = False,
        on_call: Callable[[str, Shown], None] | None = None,
    ) -> None:
        """`ours`: the other end knows Handrail: it wants to hear of activities, and has notes and diffs in a way of its own.
        `on_call` is told how each call is shown."""
        self._delivery = Delivery(wire, session)
        self._cwd, self._ours, self._on_call = cwd, ours, on_call
        self._drafts: dict[str, list[Json]] = {}
        """What calls under way would write, where the other end has no other way to see it."""

    async def deliver(self) -> None:
        """Send what is said. To be run as a task of its own."""
        await self._delivery.run()

    def end(self) -> None:
        """Nobody listens any more."""
        self._delivery.end()

    async def flushed(self) -> None:
        """Wait until all that was said is sent, or nobody listens any more."""
        await self._delivery.flushed()

    # What is said

    def text(self, words: str) -> None:
        self._delivery.text("agent_message_chunk", words)

    def thought(self, words: str) -> None:
        self._delivery.text("agent_thought_chunk", words)

    def prompt(self, content: Json) -> None:
        """What a person said before, when a conversation is shown again."""
        self.update({"sessionUpdate": "user_message_chunk", "content": content})

    def note(self, sentence: str) -> None:
        note: Json = {"handrail": {"note": True}}
        content: Json = {"type": "text", "text": sentence if self._ours else f"\n\n{sentence}\n\n"}
        self.update({"sessionUpdate": "agent_message_chunk", "content": content, "_meta": note})

    def call_started(self, id: str, tool: str, shown: Shown, input: Json) -> None:
        if self._on_call is not None:
            self._on_call(id, shown)
        seen = _shown_input(input)
        self._drafts[id] = [] if self._ours else drafts(tool, seen, self._cwd)
        self.update(
            {
                "sessionUpdate": "tool_call",
                "toolCallId": id,
                "title": shown.title,
                "kind": shown.kind,
                "status": "in_progress",
                "locations": self._locations(shown),
                "rawInput": seen,
                "_meta": {"toolName": tool},
                **({"content": self._drafts[id]} if self._drafts[id] else {}),
            }
        )

    def call_heard(self, id: str, words: str) -> None:
        content = [*self._drafts.get(id, ()), _piece(words)]
        told: Json = {"sessionUpdate": "tool_call_update", "toolCallId": id, "content": content}
        self._delivery.latest(id, told)

    def call_ended(self, id: str, result: Result) -> None:
        self.update(
            {
                "sessionUpdate": "tool_call_update",
                "toolCallId": id,
                "status": "failed" if result.failed else "completed",
                # The protocol has no word for it; who knows ours shows it as what it is.
                **({"_meta": {"handrail": {"status": "cancelled"}}} if result.ended == "cancelled" else {}),
                "content": [*self._drafts.pop(id, ()), *_contents(result)],
                **({"rawOutput": result.raw} if result.raw else {}),
            }
        )

    def plan(self, entries: Sequence[Entry]) -> None:
        listed = [
            {"content": each.content, "status": each.status, "priority": each.priority} for each in entries
        ]
        self.update({"sessionUpdate": "plan", "entries": listed})

    def usage(self, used: int, size: int | None, cost: Decimal | None) -> None:
        told: Json = {"sessionUpdate": "usage_update", "used": used, "size": size or 0}
        if cost is not None:
            told["cost"] = {"amount": float(cost), "currency": "USD"}
        self.update(told)

    def title(self, title: str) -> None:
        self.update({"sessionUpdate": "session_info_update", "title": title})

    def activity(self, told: Told) -> None:
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
        """Any update of the session."""
        self._delivery.update(update)

    async def ask(self, id: str, shown: Shown, input: Json) -> Answer:
        call: Json = {
            "toolCallId": id,
            "title": shown.title,
            "kind": shown.kind,
            "locations": self._locations(shown),
            "rawInput": _shown_input(input),
        }
        asked: Json = {"toolCall": call, "options": PERMISSION}
        return _answer(await self._delivery.ask("session/request_permission", asked))

    def _locations(self, shown: Shown) -> list[Json]:
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


def _answer(given: Any) -> Answer:
    outcome = cast("Json", given).get("outcome") if isinstance(given, dict) else None
    chosen = cast("Json", outcome) if isinstance(outcome, dict) else {}
    if chosen.get("outcome") != "selected":
        return "cancelled"
    given_id = chosen.get("optionId")
    return cast("Answer", given_id) if given_id in ("allowed", "always") else "denied"


def drafts(tool: str, input: Json, cwd: Path) -> list[Json]:
    """As the protocol has it; nothing for a tool that writes no file, or for an input that is none."""
    match tool, input:
        case "write_file", {"path": str(path), "content": str(new)}:
            return [_diff(cwd / path, None, new)]
        case "edit_file", {"path": str(path), "old_string": str(old), "new_string": str(new)}:
            return [_diff(cwd / path, old, new)]
        case _:
            return []


def _diff(path: Path, old: str | None, new: str) -> Json:
    return {"type": "diff", "path": str(path), "newText": new, **({} if old is None else {"oldText": old})}
