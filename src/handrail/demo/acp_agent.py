"""The demo's agent as a program that speaks the Agent Client Protocol: `python -m handrail.demo.acp_agent`.

Owns which word makes it do what, and how it stops. It has no model and needs no key. What it does to files and
terminals goes through its client, as with any agent; it knows nothing of Handrail but its words (lines.py).

How the demo's agent speaks and acts: each thing it says or does is one message of the Agent Client
Protocol.

What the demo's agent says. Only words: who speaks them, and when, is mind.py's.
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


NOTES = "handrail-demo-notes.md"
COUNT = 'i=0; while [ $i -lt 5 ]; do i=$((i+1)); echo "$i"; sleep 0.6; done'
VERSES = 60


class Mind:
    """All sessions of one program."""

    def __init__(self) -> None:
        self._client: acp.Client | None = None
        self._voices: dict[str, Voice] = {}
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
        self._voices[session] = Voice(self._client, session, Path(cwd))
        modes = [
            SessionMode(id="calm", name="Calm", description="Speaks at the pace of a model"),
            SessionMode(id="brisk", name="Brisk", description="Speaks faster"),
        ]
        return NewSessionResponse(
            session_id=session, modes=SessionModeState(current_mode_id="calm", available_modes=modes)
        )

    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> None:
        self._voices[session_id].brisk = mode_id == "brisk"

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> PromptResponse:
        assert self._client is not None
        voice = self._voices[session_id]
        said = " ".join(block.text for block in prompt[-1:] if isinstance(block, TextContentBlock)).lower()
        commands = [AvailableCommand(name=word, description=act.__doc__ or "") for word, act in ACTS.items()]
        await self._client.session_update(session_id, update_available_commands(commands))
        with anyio.CancelScope() as scope:
            self._scopes[session_id] = scope
            await voice.think(THOUGHT)
            await _act_for(said)(voice)
        return PromptResponse(stop_reason="cancelled" if scope.cancelled_caught else "end_turn")

    async def cancel(self, session_id: str, **_: Any) -> None:
        if scope := self._scopes.get(session_id):
            scope.cancel()


async def _edit(voice: Voice) -> None:
    """Write a file, once you have seen the diff"""
    await voice.say(EDIT)
    before = await voice.read(NOTES) or ""
    why = await voice.write(NOTES, before + NOTE.format(n=len(before.splitlines()) + 1))
    await voice.say(EDITED if why is None else REFUSED.format(why=why))


async def _run(voice: Voice) -> None:
    """Run a command in a terminal"""
    await voice.say(RUN)
    ran = await voice.run("sh", "-c", COUNT)
    if isinstance(ran, str):
        await voice.say(REFUSED.format(why=ran))
    else:
        output, code = ran
        await voice.say(f"It printed this, and ended with {code}:\n\n```\n{output.strip()}\n```\n")


async def _ask(voice: Voice) -> None:
    """Ask leave for something it would do by itself"""
    await voice.say(ASK)
    await voice.say(MAY if await voice.ask("Water the plants", "other") else MAY_NOT)


async def _plan(voice: Voice) -> None:
    """Make a plan, and go through it"""
    for done, step in enumerate(PLAN):
        await voice.plan(PLAN, done)
        await voice.say(f"{step} …\n\n")
        await anyio.sleep(0.5)
    await voice.plan(PLAN, len(PLAN))
    await voice.say(FOUND)


async def _long(voice: Voice) -> None:
    """Talk for a while"""
    await voice.say(LONG)
    for n in range(1, VERSES + 1):
        await voice.say(VERSE.format(n=n))


async def _hang(voice: Voice) -> None:
    """Do nothing until you stop it"""
    await voice.say(HANG)
    await anyio.sleep_forever()


async def _break(voice: Voice) -> None:
    """Crash in the middle of a word"""
    await voice.say(BREAK)
    sys.stderr.write(LAST_WORDS)
    sys.stderr.flush()
    os._exit(3)


async def _hello(voice: Voice) -> None:
    await voice.say(HELLO)


ACTS: dict[str, Callable[[Voice], Awaitable[None]]] = {
    "edit": _edit,
    "run": _run,
    "ask": _ask,
    "plan": _plan,
    "long": _long,
    "hang": _hang,
    "break": _break,
}


def _act_for(said: str) -> Callable[[Voice], Awaitable[None]]:
    """The first word that it knows; a greeting when it knows none."""
    known = [word.strip("/`'\".,!?") for word in said.split()]
    return next((ACTS[word] for word in known if word in ACTS), _hello)


def main() -> None:
    logging.disable(logging.CRITICAL)  # what the SDK logs of a client that leaves helps nobody here
    # What it leaves out, such as loading a session, the SDK refuses for it.
    anyio.run(acp.run_agent, cast("acp.Agent", Mind()), backend="asyncio")


HELLO = """Hello! I am Handrail's **demo agent**. I need no key and know nothing; I am here so that you can see how
conversations with agents work. Say one of these words:

| say | and I |
|---|---|
| `edit` | write a file: you see the diff here and in the inbox, keep or reject its hunks, or deny it |
| `run` | run a command in a terminal that you can watch, cancel or complete |
| `ask` | ask leave for something that I would do by myself |
| `plan` | make a plan and go through it |
| `long` | talk for a while, so that you can stop me |
| `hang` | do nothing at all until you stop me |
| `break` | crash in the middle of a word; say something again afterwards |

Real agents join by `handrail agents`, which says what is installed and how to install the rest.
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
