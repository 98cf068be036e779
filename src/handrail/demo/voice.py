"""How the demo's agent speaks and acts: each thing it says or does is one message of the Agent Client Protocol.

Owns the pace, and the wire's words for what happens. It does not know what is said (lines.py), nor in which order (mind.py).
"""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import acp
import anyio
from acp.exceptions import RequestError
from acp.schema import (
    AllowedOutcome,
    Cost,
    PermissionOption,
    PlanEntry,
    ToolCallUpdate,
    ToolKind,
    UsageUpdate,
)

PACE = 0.015
"""Seconds between two words: as fast as models speak."""
WINDOW = 8_000
"""What it calls its context; it has none."""
OPTIONS = [
    PermissionOption(option_id="yes", name="Yes", kind="allow_once"),
    PermissionOption(option_id="no", name="No", kind="reject_once"),
]


class Voice:
    """One session's side of the wire."""

    def __init__(self, client: acp.Client, session: str, cwd: Path) -> None:
        self.cwd = cwd
        self._client = client
        self._session = session
        self.brisk = False
        self._said = 0
        self._acts = 0

    async def say(self, text: str) -> None:
        """Speak, word by word."""
        for word in re.findall(r"\S+\s*|\s+", text):
            await self._client.session_update(self._session, acp.update_agent_message_text(word))
            await self._breathe()
        await self._count(len(text))

    async def think(self, text: str) -> None:
        for word in re.findall(r"\S+\s*", text):
            await self._client.session_update(self._session, acp.update_agent_thought_text(word))
            await self._breathe()

    async def plan(self, steps: Sequence[str], done: int) -> None:
        """The plan, of which so many steps are done and the next is under way."""
        entries = [
            PlanEntry(
                content=step,
                priority="medium",
                status="completed" if place < done else "in_progress" if place == done else "pending",
            )
            for place, step in enumerate(steps)
        ]
        await self._client.session_update(self._session, acp.update_plan(entries))

    async def read(self, path: str) -> str | None:
        """A file's text; None where there is none, or we may not."""
        try:
            return (await self._client.read_text_file(self._session, str(self.cwd / path))).content
        except RequestError:
            return None

    async def write(self, path: str, content: str) -> str | None:
        """Write a file; returns why not, or None."""
        act = await self._begin(f"Write {path}", "edit", {"path": str(self.cwd / path)})
        try:
            await self._client.write_text_file(self._session, str(self.cwd / path), content)
        except RequestError as refused:
            await self._end(act, "failed")
            return str(refused)
        await self._end(act, "completed")
        return None

    async def run(self, command: str, *arguments: str) -> tuple[str, int | None] | str:
        """Run a program in a terminal: its output and exit code, or why not."""
        line = shlex.join((command, *arguments))
        act = await self._begin(line, "execute", {"command": line})
        try:
            made = await self._client.create_terminal(self._session, command, list(arguments))
        except RequestError as refused:
            await self._end(act, "failed")
            return str(refused)
        shown = acp.update_tool_call(act, content=[acp.tool_terminal_ref(made.terminal_id)])
        await self._client.session_update(self._session, shown)
        ended = await self._client.wait_for_terminal_exit(self._session, made.terminal_id)
        output = await self._client.terminal_output(self._session, made.terminal_id)
        await self._client.release_terminal(self._session, made.terminal_id)
        await self._end(act, "completed")
        return output.output, ended.exit_code

    async def ask(self, title: str, kind: ToolKind) -> bool:
        """Ask for something that it would do itself; whether it may."""
        act = await self._begin(title, kind)
        update = ToolCallUpdate(tool_call_id=act, title=title, kind=kind)
        answer = await self._client.request_permission(self._session, update, OPTIONS)
        may = isinstance(answer.outcome, AllowedOutcome) and answer.outcome.option_id == "yes"
        await self._end(act, "completed" if may else "failed")
        return may

    async def _breathe(self) -> None:
        await anyio.sleep(PACE / 5 if self.brisk else PACE)

    async def _begin(self, title: str, kind: ToolKind, about: dict[str, str] | None = None) -> str:
        """Tell of something it does, and what that is about: by this the host knows its own part in it."""
        self._acts += 1
        act = f"act-{self._acts}"
        started = acp.start_tool_call(act, title, kind=kind, status="in_progress", raw_input=about)
        await self._client.session_update(self._session, started)
        return act

    async def _end(self, act: str, status: acp.schema.ToolCallStatus) -> None:
        await self._client.session_update(self._session, acp.update_tool_call(act, status=status))

    async def _count(self, letters: int) -> None:
        self._said += letters // 4
        cost = Cost(amount=0.0, currency="USD")
        used = UsageUpdate(
            session_update="usage_update", used=min(self._said, WINDOW), size=WINDOW, cost=cost
        )
        await self._client.session_update(self._session, used)
