"""A minimal MCP client over the stdio door, and the scripted agent that uses it.

The client matches answers to requests. The agent waits for calls that were handed back and prints each
outcome.
"""

import json
import subprocess
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import field
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from handrail import __version__
from handrail.lazy_dataclass import dataclass
from handrail.paths import own_python

PROTOCOL = "2025-06-18"
LINE_MAX = 32 << 20
"""Bytes of one answer; bounds the memory that a broken door can take."""
LEAVE_SECONDS = 10.0
"""Bounds the wait for a door to exit after its input has closed."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The result of a call, or its state so far."""

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
    """The door exited while a request was in flight."""

    def __str__(self) -> str:
        return "The door closed. `handrail doctor` may say why."


class Client:
    """A connection to Handrail, with any number of concurrent requests."""

    def __init__(self, door: Process) -> None:
        self._door = door
        self._pending: dict[int, _Pending] = {}
        self._number = 0
        self._closed = False

    @property
    def pid(self) -> int:
        """The door's process id."""
        return self._door.pid

    async def call(self, tool: str, **arguments: object) -> Reply:
        """Call a tool; returns when the call has ended or was handed back. Raises DoorClosed."""
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
        """Receive answers until the door closes; then wake all waiting requests."""
        assert self._door.stdout is not None
        lines = BufferedByteReceiveStream(self._door.stdout)
        try:
            while True:
                self._deliver(json.loads(await lines.receive_until(b"\n", LINE_MAX)))
        except (anyio.EndOfStream, anyio.IncompleteRead, anyio.ClosedResourceError):
            pass
        finally:
            self._closed = True
            for pending in self._pending.values():
                pending.come.set()

    def _deliver(self, message: dict[str, Any]) -> None:
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
async def open_door(workspace: Path) -> AsyncGenerator[Client]:
    """A client with its own door process. On exit, the calls it still waits for are cancelled."""
    argv = [*own_python(), "-m", "handrail", "mcp", "--workspace", str(workspace)]
    process = await anyio.open_process(argv, stderr=subprocess.DEVNULL, start_new_session=True)
    async with anyio.create_task_group() as group:
        try:
            client = Client(process)
            group.start_soon(client.listen)
            await client.greet()
            yield client
        finally:
            await _end_door(process)
            group.cancel_scope.cancel()


async def _end_door(process: Process) -> None:
    """End the door like a client that disconnects: its calls are cancelled, not waited for."""
    with anyio.move_on_after(LEAVE_SECONDS, shield=True):
        with suppress(ProcessLookupError):  # it may already have exited
            process.terminate()
        await process.wait()
        await process.aclose()


Print = Callable[[str], None]

OPEN = ("running", "waiting")
ASKS = "waiting_for_input"
ROUND_SECONDS = 30.0
"""Seconds of one wait for a call that was handed back; below the door's own timeout."""

OUTCOMES = {
    "done": "is done",
    "failed": "failed",
    "denied": "was denied",
    "cancelled": "was cancelled",
    "force-completed": "was completed by you",
    "interrupted": "was interrupted",
}


class Agent:
    """The scripted agent on one client."""

    def __init__(self, client: Client, say: Print, left: set[str]) -> None:
        """`left` receives the ids of calls that were handed back and are still open, for the final report."""
        self._client = client
        self._left = left
        self._reported: set[str] = set()
        self.say = say

    async def do(self, what: str, tool: str, **arguments: object) -> Reply:
        """Make one call and wait until it ends, or until its command asks for input."""
        reply = await self._client.call(tool, **arguments)
        return await self._follow(what, reply)

    async def go_on(self, what: str, reply: Reply) -> Reply:
        """Wait again for a call whose command asked for input: until its end, or its next question."""
        return await self._follow(what, await self._wait(reply.data["call_id"]))

    async def quietly(self, tool: str, **arguments: object) -> Reply:
        """Make a call without printing its outcome."""
        return await self._client.call(tool, **arguments)

    async def _follow(self, what: str, reply: Reply) -> Reply:
        while reply.status in OPEN:
            self._note_handed_back(what, reply.data["call_id"])
            reply = await self._wait(reply.data["call_id"])
        if reply.status == ASKS:
            self._left.add(reply.data["call_id"])
            self._reported.add(reply.data["call_id"])  # its question already implies that it was handed back
        else:
            self.say(f"  {what} {OUTCOMES.get(reply.status, reply.status)}{_why(reply)}")
        return reply

    def _note_handed_back(self, what: str, call: str) -> None:
        self._left.add(call)
        if call not in self._reported:
            self._reported.add(call)
            self.say(f"  {what} was handed back to the agent, which asks again for its outcome")

    async def _wait(self, call: str) -> Reply:
        answer = await self._client.call("wait_for_call", call_id=call, wait_seconds=ROUND_SECONDS)
        reply = reply_from_record(call, answer)
        if reply.status not in (*OPEN, ASKS):
            self._left.discard(call)
        return reply


def reply_from_record(call: str, answer: Reply) -> Reply:
    """Convert the record returned by `wait_for_call` into a reply to that call."""
    record: dict[str, Any] = answer.data.get("call") or {"status": answer.status, "message": answer.text}
    result: dict[str, Any] = record.get("result") or {}
    fields = {name: value for name, value in record.items() if value is not None}
    return Reply(answer.text, {**result, **fields, "call_id": call})


def _why(reply: Reply) -> str:
    """The reason of a call that did not end well, or a command's exit code."""
    message, code = str(reply.data.get("message") or ""), reply.data.get("exit_code")
    if reply.status == "done":
        return f", exit code {code}" if code is not None else ""
    return f": {message}" if reply.status != "force-completed" and message else ""
