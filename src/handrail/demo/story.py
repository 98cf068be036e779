"""What the scripted agent does, and what the person is told to look at meanwhile.

Owns the order of things and the words. How calls travel is the client's; that anything is asked at all is
Handrail's: nothing here knows of approvals but their outcome.
"""

import anyio

from handrail.demo.agent import Agent, Say
from handrail.demo.client import DoorClosed, door
from handrail.demo.scene import EDIT, PEARS, Scene, scene
from handrail.demo.sharing import python, share

COUNTER = 'i=0; while [ $i -lt 3600 ]; do i=$((i+1)); echo "tick $i"; sleep 1; done'
FLOOD = "seq -f 'a line of output, one of very many: %06.0f' 1 120000"
"""About five megabytes."""


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
                        await self._act(Agent(client, self._say, self.left), made)
                if limit.cancelled_caught:
                    self._say("Time is up: the agent leaves, and what it still waited for is cancelled.")
            except* DoorClosed:
                self._say(str(DoorClosed()))

    async def _act(self, agent: Agent, made: Scene) -> None:
        self._say(f"\nAn agent, “handrail demo”, works in {made.project}.")
        await self._read(agent)
        self._say("\nNow it asks for four things at once; each waits for you under “Needs you”:")
        self._say("  · a counter that never ends:  allow it, watch it, then press Complete ▾ or Cancel")
        self._say(
            "  · a new file, then an edit:   keep or reject each of the edit's three hunks, then send the review"
        )
        self._say("  · a flood of output, 5 MB:    allow it; the page stays calm")
        self._say("  · deleting outside its work:  high risk; deny it, and tell the agent why")
        self._say("Ctrl-C ends the demo.\n")
        async with anyio.create_task_group() as group:
            group.start_soon(self._count, agent)
            group.start_soon(self._write, agent)
            group.start_soon(self._flood, agent)
            group.start_soon(self._stray, agent, made)
        await self._repeat(agent)
        await share(agent, self._patience())
        self._say("\nEvery call has its outcome. “Recent” on the page and `handrail calls` keep the record.")

    async def _read(self, agent: Agent) -> None:
        """What only reads in the workspace is not asked about."""
        self._say("\nIt reads; that needs nobody's leave, and is recorded all the same:")
        await agent.do("looking around", "list_files")
        await agent.do("reading apples.py", "read_file", path="apples.py")
        await agent.do("searching for TODO", "search_content", pattern="TODO")
        await agent.do("reading a file that is not there", "read_file", path="cherries.py")

    async def _count(self, agent: Agent) -> None:
        limits = {"wait_seconds": self._patience(), "timeout_seconds": self._patience()}
        reply = await agent.do("the counter", "execute_command", command=COUNTER, **limits)
        if "May still be running" in str(reply.data.get("message")):
            self._say("    It runs on, as Complete says; “Stop it” on its page ends it.")

    async def _write(self, agent: Agent) -> None:
        await agent.do("the new file", "write_file", path="pears.py", content=PEARS)
        edit = await agent.do("the edit", "apply_diff", path="apples.py", diff=EDIT)
        if review := edit.data.get("review"):
            self._say(f"    You kept {review['kept']} of its {review['hunks']} hunks; the agent was told.")
        if edit.status == "done":
            self._say(
                f"    `handrail undo {edit.data['call_id']}` takes it back, and shows what it would do first."
            )

    async def _flood(self, agent: Agent) -> None:
        reply = await agent.do("the flood", "execute_command", command=FLOOD, wait_seconds=self._patience())
        if reply.status == "done":
            shown = len(reply.text)
            self._say(
                f"    It printed {reply.data.get('output_bytes', 0):,} bytes; the agent was shown {shown:,}."
            )

    async def _stray(self, agent: Agent, made: Scene) -> None:
        where = {"command": "rm -rf old-harvests", "cwd": str(made.elsewhere)}
        await agent.do("deleting outside its work", "execute_command", **where, wait_seconds=self._patience())

    async def _repeat(self, agent: Agent) -> None:
        """Twice the same: the second time, a rule may answer."""
        self._say(
            "\nThen it runs the same command twice: press “Always allow…” the first time, and a rule answers"
        )
        self._say("the second. “Rules” on the page, or `handrail rules`, shows it, and takes it back:")
        line = {"command": f"{python()} apples.py", "wait_seconds": self._patience()}
        await agent.do("counting the apples", "execute_command", **line)
        await agent.do("counting them again", "execute_command", **line)

    def _patience(self) -> float:
        return min(3600.0, self._seconds + 60)
