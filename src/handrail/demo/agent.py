"""One agent: it uses tools, waits for what was handed back, and tells the person what came of each.

Owns the words for outcomes, and which calls are still open. Does not know why it does what it does.
"""

from collections.abc import Callable
from typing import Any

from handrail.demo.client import Client, Reply

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
