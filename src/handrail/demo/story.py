"""What the scripted agent does, and what the person is told to look at meanwhile.

Owns the order of things and the words. How calls travel is the client's; that anything is asked at all is
Handrail's: nothing here knows of approvals but their outcome.
"""

from collections.abc import Callable
from typing import Any

import anyio

from handrail.demo.client import Client, DoorClosed, Reply, door
from handrail.demo.scene import NEW_LOOP, OLD_LOOP, PEARS, Scene, scene

Say = Callable[[str], None]

COUNTER = 'i=0; while [ $i -lt 3600 ]; do i=$((i+1)); echo "tick $i"; sleep 1; done'
FLOOD = "seq -f 'a line of output, one of very many: %06.0f' 1 120000"
"""About five megabytes."""
OPEN = ("running", "waiting")
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


def tell(seconds: float, say: Say) -> list[str]:
    """Play the whole story, for so long at most; returns the calls that still wait for a person."""
    story = _Story(seconds, say)
    try:
        anyio.run(story.play)
    except KeyboardInterrupt:
        say("\nThe agent leaves.")
    return list(story.left)


class _Story:
    """One run of the agent."""

    def __init__(self, seconds: float, say: Say) -> None:
        self._seconds = seconds
        self._say = say
        self.left: set[str] = set()
        """Calls that were handed back and are still open."""

    async def play(self) -> None:
        with scene() as made:
            try:
                async with door(made.project) as client:
                    with anyio.move_on_after(self._seconds) as limit:
                        await self._act(client, made)
                if limit.cancelled_caught:
                    self._say("Time is up: the agent leaves, and what it still waited for is cancelled.")
            except* DoorClosed:
                self._say(str(DoorClosed()))

    async def _act(self, client: Client, made: Scene) -> None:
        self._say(f"\nAn agent, “handrail demo”, works in {made.project}.")
        await self._read(client)
        self._say("\nNow it asks for four things at once; each waits for you under “Needs you”:")
        self._say("  · a counter that never ends:  allow it, watch it, then press Complete ▾ or Cancel")
        self._say("  · a new file, then an edit:   look at the diffs, then allow them")
        self._say("  · a flood of output, 5 MB:    allow it; the page stays calm")
        self._say("  · deleting outside its work:  high risk; deny it, and tell the agent why")
        self._say("Ctrl-C ends the demo.\n")
        async with anyio.create_task_group() as group:
            group.start_soon(self._count, client)
            group.start_soon(self._write, client)
            group.start_soon(self._flood, client)
            group.start_soon(self._stray, client, made)
        self._say("\nEvery call has its outcome. “Recent” on the page and `handrail calls` keep the record.")

    async def _read(self, client: Client) -> None:
        """What only reads in the workspace is not asked about."""
        self._say("\nIt reads; that needs nobody's leave, and is recorded all the same:")
        await self._do(client, "looking around", "list_files")
        await self._do(client, "reading apples.py", "read_file", path="apples.py")
        await self._do(client, "searching for TODO", "search_content", pattern="TODO")
        await self._do(client, "reading a file that is not there", "read_file", path="cherries.py")

    async def _count(self, client: Client) -> None:
        limits = {"wait_seconds": self._patience(), "timeout_seconds": self._patience()}
        reply = await self._do(client, "the counter", "execute_command", command=COUNTER, **limits)
        if "May still be running" in str(reply.data.get("message")):
            self._say("    It runs on, as Complete says; “Stop it” on its page ends it.")

    async def _write(self, client: Client) -> None:
        await self._do(client, "the new file", "write_file", path="pears.py", content=PEARS)
        change = {"path": "apples.py", "old_string": OLD_LOOP, "new_string": NEW_LOOP}
        await self._do(client, "the edit", "edit_file", **change)

    async def _flood(self, client: Client) -> None:
        reply = await self._do(
            client, "the flood", "execute_command", command=FLOOD, wait_seconds=self._patience()
        )
        if reply.status == "done":
            shown = len(reply.text)
            self._say(
                f"    It printed {reply.data.get('output_bytes', 0):,} bytes; the agent was shown {shown:,}."
            )

    async def _stray(self, client: Client, made: Scene) -> None:
        where = {"command": "rm -rf old-harvests", "cwd": str(made.elsewhere)}
        await self._do(
            client, "deleting outside its work", "execute_command", **where, wait_seconds=self._patience()
        )

    async def _do(self, client: Client, what: str, tool: str, **arguments: object) -> Reply:
        """One call to its end, however often it is handed back."""
        reply = await client.call(tool, **arguments)
        while reply.status in OPEN:
            reply = await self._wait(client, reply.data["call_id"], what)
        self._say(f"  {what} {OUTCOMES.get(reply.status, reply.status)}{_why(reply)}")
        return reply

    async def _wait(self, client: Client, call: str, what: str) -> Reply:
        if call not in self.left:
            self.left.add(call)
            self._say(f"  {what} was handed back to the agent, which asks again for its outcome")
        found = await client.call("wait_for_call", call_id=call, wait_seconds=ROUND_SECONDS)
        told: dict[str, Any] = found.data.get("call") or {"status": found.status, "message": found.text}
        result: dict[str, Any] = told.get("result") or {}
        if told["status"] not in OPEN:
            self.left.remove(call)
        return Reply(found.text, {**result, **told, "call_id": call})

    def _patience(self) -> float:
        return min(3600.0, self._seconds + 60)


def _why(reply: Reply) -> str:
    message = str(reply.data.get("message") or "")
    return f": {message}" if reply.status not in ("done", "force-completed") and message else ""
