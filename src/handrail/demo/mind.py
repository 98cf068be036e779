"""The demo's agent as a program that speaks the Agent Client Protocol: `python -m handrail.demo.mind`.

Owns which word makes it do what, and how it stops. It has no model and needs no key. What it does to files and
terminals goes through its client, as with any agent; it knows nothing of Handrail but its words (lines.py).
"""

import logging
import os
import secrets
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import acp
import anyio
from acp.helpers import update_available_commands
from acp.schema import (
    AgentCapabilities,
    AvailableCommand,
    Implementation,
    InitializeResponse,
    NewSessionResponse,
    PromptResponse,
    SessionMode,
    SessionModeState,
    TextContentBlock,
)

from handrail import __version__
from handrail.demo import lines
from handrail.demo.voice import Voice

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
            await voice.think(lines.THOUGHT)
            await _act_for(said)(voice)
        return PromptResponse(stop_reason="cancelled" if scope.cancelled_caught else "end_turn")

    async def cancel(self, session_id: str, **_: Any) -> None:
        if scope := self._scopes.get(session_id):
            scope.cancel()


async def _edit(voice: Voice) -> None:
    """Write a file, once you have seen the diff"""
    await voice.say(lines.EDIT)
    before = await voice.read(NOTES) or ""
    why = await voice.write(NOTES, before + lines.NOTE.format(n=len(before.splitlines()) + 1))
    await voice.say(lines.EDITED if why is None else lines.REFUSED.format(why=why))


async def _run(voice: Voice) -> None:
    """Run a command in a terminal"""
    await voice.say(lines.RUN)
    ran = await voice.run("sh", "-c", COUNT)
    if isinstance(ran, str):
        await voice.say(lines.REFUSED.format(why=ran))
    else:
        output, code = ran
        await voice.say(f"It printed this, and ended with {code}:\n\n```\n{output.strip()}\n```\n")


async def _ask(voice: Voice) -> None:
    """Ask leave for something it would do by itself"""
    await voice.say(lines.ASK)
    await voice.say(lines.MAY if await voice.ask("Water the plants", "other") else lines.MAY_NOT)


async def _plan(voice: Voice) -> None:
    """Make a plan, and go through it"""
    for done, step in enumerate(lines.PLAN):
        await voice.plan(lines.PLAN, done)
        await voice.say(f"{step} …\n\n")
        await anyio.sleep(0.5)
    await voice.plan(lines.PLAN, len(lines.PLAN))
    await voice.say(lines.FOUND)


async def _long(voice: Voice) -> None:
    """Talk for a while"""
    await voice.say(lines.LONG)
    for n in range(1, VERSES + 1):
        await voice.say(lines.VERSE.format(n=n))


async def _hang(voice: Voice) -> None:
    """Do nothing until you stop it"""
    await voice.say(lines.HANG)
    await anyio.sleep_forever()


async def _break(voice: Voice) -> None:
    """Crash in the middle of a word"""
    await voice.say(lines.BREAK)
    sys.stderr.write(lines.LAST_WORDS)
    sys.stderr.flush()
    os._exit(3)


async def _hello(voice: Voice) -> None:
    await voice.say(lines.HELLO)


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


if __name__ == "__main__":
    main()
