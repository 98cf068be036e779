"""The demo's ACP agent: `python -m handrail.demo.acp_agent`.

It has no model and needs no key: a word in the prompt selects a scripted act. Files and terminals go through
its client, as with any agent. Docstrings of the acts are the descriptions of its slash commands.
"""

import logging
import os
import re
import secrets
import shlex
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, cast

import acp
import anyio
from acp.exceptions import RequestError
from acp.helpers import update_available_commands
from acp.schema import (
    AgentCapabilities,
    AllowedOutcome,
    AvailableCommand,
    Cost,
    Implementation,
    InitializeResponse,
    NewSessionResponse,
    PermissionOption,
    PlanEntry,
    PromptResponse,
    SessionMode,
    SessionModeState,
    TextContentBlock,
    ToolCallUpdate,
    ToolKind,
    UsageUpdate,
)

from handrail import __version__

PACE = 0.015
"""Seconds between two words: about the speed of a model."""
WINDOW = 8_000
"""The context size that it reports; it has no context."""
OPTIONS = [
    PermissionOption(option_id="yes", name="Yes", kind="allow_once"),
    PermissionOption(option_id="no", name="No", kind="reject_once"),
]


class SessionOutput:
    """Sends the updates and requests of one session."""

    def __init__(self, client: acp.Client, session: str, cwd: Path) -> None:
        self.cwd = cwd
        self._client = client
        self._session = session
        self.brisk = False
        self._tokens = 0
        self._acts = 0

    async def say(self, text: str) -> None:
        """Send a text, word by word."""
        for word in re.findall(r"\S+\s*|\s+", text):
            await self._client.session_update(self._session, acp.update_agent_message_text(word))
            await self._pause()
        await self._send_usage(len(text))

    async def think(self, text: str) -> None:
        for word in re.findall(r"\S+\s*", text):
            await self._client.session_update(self._session, acp.update_agent_thought_text(word))
            await self._pause()

    async def plan(self, steps: Sequence[str], done: int) -> None:
        """Send the plan: `done` steps are completed, the next is in progress."""
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
        """A file's text; None if it is missing or may not be read."""
        try:
            return (await self._client.read_text_file(self._session, str(self.cwd / path))).content
        except RequestError:
            return None

    async def write(self, path: str, content: str) -> str | None:
        """Write a file; returns the reason if that was refused, else None."""
        act = await self._begin(f"Write {path}", "edit", {"path": str(self.cwd / path)})
        try:
            await self._client.write_text_file(self._session, str(self.cwd / path), content)
        except RequestError as refused:
            await self._end(act, "failed")
            return str(refused)
        await self._end(act, "completed")
        return None

    async def run(self, command: str, *arguments: str) -> tuple[str, int | None] | str:
        """Run a program in a terminal; returns its output and exit code, or the reason if it was refused."""
        line = shlex.join((command, *arguments))
        act = await self._begin(line, "execute", {"command": line})
        try:
            terminal = await self._client.create_terminal(self._session, command, list(arguments))
        except RequestError as refused:
            await self._end(act, "failed")
            return str(refused)
        update = acp.update_tool_call(act, content=[acp.tool_terminal_ref(terminal.terminal_id)])
        await self._client.session_update(self._session, update)
        ended = await self._client.wait_for_terminal_exit(self._session, terminal.terminal_id)
        output = await self._client.terminal_output(self._session, terminal.terminal_id)
        await self._client.release_terminal(self._session, terminal.terminal_id)
        await self._end(act, "completed")
        return output.output, ended.exit_code

    async def ask(self, title: str, kind: ToolKind) -> bool:
        """Ask for permission for work that the agent would do itself."""
        act = await self._begin(title, kind)
        update = ToolCallUpdate(tool_call_id=act, title=title, kind=kind)
        answer = await self._client.request_permission(self._session, update, OPTIONS)
        is_allowed = isinstance(answer.outcome, AllowedOutcome) and answer.outcome.option_id == "yes"
        await self._end(act, "completed" if is_allowed else "failed")
        return is_allowed

    async def _pause(self) -> None:
        await anyio.sleep(PACE / 5 if self.brisk else PACE)

    async def _begin(self, title: str, kind: ToolKind, about: dict[str, str] | None = None) -> str:
        """Announce a tool call; the host matches `about` with its own calls."""
        self._acts += 1
        act = f"act-{self._acts}"
        started = acp.start_tool_call(act, title, kind=kind, status="in_progress", raw_input=about)
        await self._client.session_update(self._session, started)
        return act

    async def _end(self, act: str, status: acp.schema.ToolCallStatus) -> None:
        await self._client.session_update(self._session, acp.update_tool_call(act, status=status))

    async def _send_usage(self, letters: int) -> None:
        self._tokens += letters // 4
        cost = Cost(amount=0.0, currency="USD")
        used = UsageUpdate(
            session_update="usage_update", used=min(self._tokens, WINDOW), size=WINDOW, cost=cost
        )
        await self._client.session_update(self._session, used)


NOTES = "handrail-demo-notes.md"
COUNT = 'i=0; while [ $i -lt 5 ]; do i=$((i+1)); echo "$i"; sleep 0.6; done'
VERSES = 60


class DemoAgent:
    """The ACP agent, with all its sessions."""

    def __init__(self) -> None:
        self._client: acp.Client | None = None
        self._outputs: dict[str, SessionOutput] = {}
        self._scopes: dict[str, anyio.CancelScope] = {}

    def on_connect(self, conn: acp.Client) -> None:
        self._client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> InitializeResponse:
        return InitializeResponse(
            protocol_version=min(protocol_version, acp.PROTOCOL_VERSION),
            agent_capabilities=AgentCapabilities(),
            agent_info=Implementation(name="handrail-demo", title="Demo agent", version=__version__),
        )

    async def new_session(self, cwd: str, **_: Any) -> NewSessionResponse:
        assert self._client is not None
        session = f"demo-{secrets.token_hex(4)}"
        self._outputs[session] = SessionOutput(self._client, session, Path(cwd))
        modes = [
            SessionMode(id="calm", name="Calm", description="Speaks at the pace of a model"),
            SessionMode(id="brisk", name="Brisk", description="Speaks faster"),
        ]
        return NewSessionResponse(
            session_id=session, modes=SessionModeState(current_mode_id="calm", available_modes=modes)
        )

    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> None:
        self._outputs[session_id].brisk = mode_id == "brisk"

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> PromptResponse:
        assert self._client is not None
        output = self._outputs[session_id]
        text = " ".join(block.text for block in prompt[-1:] if isinstance(block, TextContentBlock)).lower()
        commands = [AvailableCommand(name=word, description=act.__doc__ or "") for word, act in ACTS.items()]
        await self._client.session_update(session_id, update_available_commands(commands))
        with anyio.CancelScope() as scope:
            self._scopes[session_id] = scope
            await output.think(THOUGHT)
            await _act_for(text)(output)
        return PromptResponse(stop_reason="cancelled" if scope.cancelled_caught else "end_turn")

    async def cancel(self, session_id: str, **_: Any) -> None:
        if scope := self._scopes.get(session_id):
            scope.cancel()


async def _edit(output: SessionOutput) -> None:
    """Write a file, once you have seen the diff"""
    await output.say(EDIT)
    before = await output.read(NOTES) or ""
    why = await output.write(NOTES, before + NOTE.format(n=len(before.splitlines()) + 1))
    await output.say(EDITED if why is None else REFUSED.format(why=why))


async def _run(output: SessionOutput) -> None:
    """Run a command in a terminal"""
    await output.say(RUN)
    ran = await output.run("sh", "-c", COUNT)
    if isinstance(ran, str):
        await output.say(REFUSED.format(why=ran))
    else:
        printed, code = ran
        await output.say(f"It printed this, and ended with {code}:\n\n```\n{printed.strip()}\n```\n")


async def _ask(output: SessionOutput) -> None:
    """Ask permission for work that the agent does itself."""
    await output.say(ASK)
    await output.say(MAY if await output.ask("Water the plants", "other") else MAY_NOT)


async def _plan(output: SessionOutput) -> None:
    """Make a plan, and go through it"""
    for done, step in enumerate(PLAN):
        await output.plan(PLAN, done)
        await output.say(f"{step} …\n\n")
        await anyio.sleep(0.5)
    await output.plan(PLAN, len(PLAN))
    await output.say(FOUND)


async def _long(output: SessionOutput) -> None:
    """Talk for a while"""
    await output.say(LONG)
    for n in range(1, VERSES + 1):
        await output.say(VERSE.format(n=n))


async def _hang(output: SessionOutput) -> None:
    """Do nothing until you stop it"""
    await output.say(HANG)
    await anyio.sleep_forever()


async def _break(output: SessionOutput) -> None:
    """Crash in the middle of a word"""
    await output.say(BREAK)
    sys.stderr.write(LAST_WORDS)
    sys.stderr.flush()
    os._exit(3)


async def _hello(output: SessionOutput) -> None:
    await output.say(HELLO)


ACTS: dict[str, Callable[[SessionOutput], Awaitable[None]]] = {
    "edit": _edit,
    "run": _run,
    "ask": _ask,
    "plan": _plan,
    "long": _long,
    "hang": _hang,
    "break": _break,
}


def _act_for(text: str) -> Callable[[SessionOutput], Awaitable[None]]:
    """The act for the first known word; a greeting if no word is known."""
    words = [word.strip("/`'\".,!?") for word in text.split()]
    return next((ACTS[word] for word in words if word in ACTS), _hello)


def main() -> None:
    logging.disable(logging.CRITICAL)  # the SDK logs an error when a client disconnects
    # The SDK refuses methods that are not defined, such as loading a session.
    anyio.run(acp.run_agent, cast("acp.Agent", DemoAgent()), backend="asyncio")


HELLO = """Hello! I am Handrail's **demo agent**. I need no key and know nothing; I am here so that you can see how
conversations with agents work. Say one of these words:

| say | and I |
|---|---|
| `edit` | write a file: you see the diff here and in the inbox, keep or reject its hunks, or deny it |
| `run` | run a command in a terminal that you can watch, cancel or complete |
| `ask` | ask for permission before I do something myself |
| `plan` | make a plan and go through it |
| `long` | talk for a while, so that you can stop me |
| `hang` | do nothing at all until you stop me |
| `break` | crash in the middle of a word; say something again afterwards |

Connect real agents with `handrail agents`: it lists what is installed and how to install the rest.
"""
EDIT = (
    "I will write down what we talk about. You are asked first: the file is written only as you leave it.\n\n"
)
EDITED = "Written. `handrail undo` takes it back, and so does the call's own page.\n"
RUN = "Let me count to five, slowly; the terminal is yours, too.\n\n"
ASK = "Some agents do things by themselves and only ask first. Handrail shows that as *advisory*: it is their word.\n\n"
MAY = "You said yes. I would do it now, and Handrail could not see how; so I do nothing.\n"
MAY_NOT = "You said no, so I leave it. I can live with that.\n"
PLAN = ("Look around", "Think about it", "Say what I found")
FOUND = "That was my plan, done step by step. It stays above, folded, in this conversation.\n"
THOUGHT = (
    "The person wants to see something. I have no model, so I look for a word that I know in what they said."
)
LONG = """### A long answer

Handrail keeps what an agent says *as it comes*: if everything went down right now, you would find this text again up to
the last fifth of a second, and the next prompt would go on from here.

```python
def fibonacci(n: int) -> int:
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a
```

"""
VERSE = "Paragraph {n}: press **Stop** whenever you have seen enough; what was said until then stays.\n\n"
HANG = "I am doing nothing now, on purpose. Press **Stop** (or `Esc` twice): you get your conversation back at once.\n"
BREAK = "I am about to fall over in the middle of a sent"
LAST_WORDS = "demo agent: I was told to break, so I do.\n"
REFUSED = "I could not: {why}\n"
NOTE = "# Notes of the demo agent\n\nWritten because somebody said “edit”, line {n}.\n"


if __name__ == "__main__":
    main()
