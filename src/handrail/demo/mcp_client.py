"""An MCP client, as small as one can be: lines of JSON-RPC to a door and back.

Owns the door's process and which answer belongs to which request. Does not know any tool.

One agent: it uses tools, waits for what was handed back, and tells the person what came of each.
"""

import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from handrail import __version__

PROTOCOL = "2025-06-18"
LINE_MAX = 32 << 20
"""Bytes of one answer; bounds what a broken door can make us hold."""
LEAVE_SECONDS = 10.0
"""A door ends a moment after its input; bounds the wait for one that does not."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of a call, or how far it got."""

    text: str
    data: dict[str, Any]

    @property
    def status(self) -> str:
        return str(self.data.get("status", "failed"))


@dataclass(slots=True)
class _Pending:
    come: anyio.Event = field(default_factory=anyio.Event)
    message: dict[str, Any] = field(default_factory=dict[str, Any])


class DoorClosed(Exception):
    """The door ended while something was asked of it."""

    def __str__(self) -> str:
        return "The door closed. `handrail doctor` may say why."


class Client:
    """One line to Handrail; any number of requests at once."""

    def __init__(self, door: Process) -> None:
        self._door = door
        self._pending: dict[int, _Pending] = {}
        self._number = 0
        self._closed = False

    @property
    def pid(self) -> int:
        """The door's."""
        return self._door.pid

    async def call(self, tool: str, **arguments: object) -> Reply:
        """Use a tool; returns when the call has ended, or was handed back. Raises DoorClosed."""
        message = await self.ask("tools/call", {"name": tool, "arguments": arguments})
        if "error" in message:
            return Reply(str(message["error"].get("message")), {"status": "failed"})
        result: dict[str, Any] = message["result"]
        return Reply(result["content"][0]["text"], result.get("structuredContent") or {})

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        number, pending = self._number, _Pending()
        self._pending[number] = pending
        await self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        await pending.come.wait()
        if not pending.message:
            raise DoorClosed
        return pending.message

    async def greet(self) -> None:
        about = {"name": "handrail demo", "version": __version__}
        await self.ask("initialize", {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": about})
        await self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    async def listen(self) -> None:
        """Hand out answers until the door closes; then nobody waits for one any more."""
        assert self._door.stdout is not None
        lines = BufferedByteReceiveStream(self._door.stdout)
        try:
            while True:
                self._heard(json.loads(await lines.receive_until(b"\n", LINE_MAX)))
        except (anyio.EndOfStream, anyio.IncompleteRead, anyio.ClosedResourceError):
            pass
        finally:
            self._closed = True
            for pending in self._pending.values():
                pending.come.set()

    def _heard(self, message: dict[str, Any]) -> None:
        pending = self._pending.pop(message.get("id", 0), None)
        if pending is not None:
            pending.message = message
            pending.come.set()

    async def _send(self, message: dict[str, Any]) -> None:
        assert self._door.stdin is not None
        if self._closed:
            raise DoorClosed
        try:
            await self._door.stdin.send(json.dumps(message).encode() + b"\n")
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise DoorClosed from None


@asynccontextmanager
async def door(workspace: Path) -> AsyncGenerator[Client]:
    """A client behind a door of its own. When it leaves, the calls it still waits for are cancelled."""
    argv = [sys.executable, "-m", "handrail", "mcp", "--workspace", str(workspace)]
    process = await anyio.open_process(argv, stderr=subprocess.DEVNULL, start_new_session=True)
    async with anyio.create_task_group() as group:
        try:
            client = Client(process)
            group.start_soon(client.listen)
            await client.greet()
            yield client
        finally:
            await _leave(process)
            group.cancel_scope.cancel()


async def _leave(process: Process) -> None:
    """End the door as a client does that goes away: its calls are cancelled, it is not asked to wait for them."""
    with anyio.move_on_after(LEAVE_SECONDS, shield=True):
        with suppress(ProcessLookupError):  # it may have ended by itself
            process.terminate()
        await process.wait()
        await process.aclose()


Say = Callable[[str], None]

OPEN = ("running", "waiting")
ASKS = "waiting_for_input"
ROUND_SECONDS = 30.0
"""Of one wait for a call that was handed back: below the patience of a door."""

OUTCOMES = {
    "done": "is done",
    "failed": "failed",
    "denied": "was denied",
    "cancelled": "was cancelled",
    "force-completed": "was completed by you",
    "interrupted": "was interrupted",
}


class Agent:
    """Behind one client."""

    def __init__(self, client: Client, say: Say, left: set[str]) -> None:
        """`left` holds the calls that were handed back and are still open, for whoever tidies up."""
        self._client = client
        self._left = left
        self._told_of: set[str] = set()
        self.say = say

    async def do(self, what: str, tool: str, **arguments: object) -> Reply:
        """One call to its end, however often it is handed back; or until its command asks something."""
        reply = await self._client.call(tool, **arguments)
        return await self._on(what, reply)

    async def go_on(self, what: str, reply: Reply) -> Reply:
        """The same for a call whose command asked something: to its end, or to its next question."""
        return await self._on(what, await self._wait(reply.data["call_id"]))

    async def quietly(self, tool: str, **arguments: object) -> Reply:
        """A call of which nothing is told."""
        return await self._client.call(tool, **arguments)

    async def _on(self, what: str, reply: Reply) -> Reply:
        while reply.status in OPEN:
            self._note_handed_back(what, reply.data["call_id"])
            reply = await self._wait(reply.data["call_id"])
        if reply.status == ASKS:
            self._left.add(reply.data["call_id"])
            self._told_of.add(reply.data["call_id"])  # that it was handed back is told by its question
        else:
            self.say(f"  {what} {OUTCOMES.get(reply.status, reply.status)}{_why(reply)}")
        return reply

    def _note_handed_back(self, what: str, call: str) -> None:
        self._left.add(call)
        if call not in self._told_of:
            self._told_of.add(call)
            self.say(f"  {what} was handed back to the agent, which asks again for its outcome")

    async def _wait(self, call: str) -> Reply:
        found = await self._client.call("wait_for_call", call_id=call, wait_seconds=ROUND_SECONDS)
        reply = told(call, found)
        if reply.status not in (*OPEN, ASKS):
            self._left.discard(call)
        return reply


def told(call: str, found: Reply) -> Reply:
    """A call as the mailbox tells of it, in the shape of a reply to that call."""
    record: dict[str, Any] = found.data.get("call") or {"status": found.status, "message": found.text}
    result: dict[str, Any] = record.get("result") or {}
    known = {name: value for name, value in record.items() if value is not None}
    return Reply(found.text, {**result, **known, "call_id": call})


def _why(reply: Reply) -> str:
    """The reason of what did not end well, or the exit code of a line."""
    message, code = str(reply.data.get("message") or ""), reply.data.get("exit_code")
    if reply.status == "done":
        return f", exit code {code}" if code is not None else ""
    return f": {message}" if reply.status != "force-completed" and message else ""
