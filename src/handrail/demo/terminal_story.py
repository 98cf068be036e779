"""The second act: a terminal that stays, in which the agent works and the person may join.

Owns what is done in it and what the person is told meanwhile. Only a person can answer its last question; when nobody
does, the agent goes on without.
"""

import shlex
import shutil
import socket
import sys
from contextlib import suppress

import anyio

from handrail.demo.mcp_client import ASKS, Agent, DoorClosed, Reply

ANSWER = "north"
GATE = "the program with questions"
SECRET_SECONDS = 60.0
"""How long the agent waits for what only a person can type."""
STAYS_SECONDS = 20.0
"""Of quiet before the agent closes its terminal: above the time for which typing keeps an agent out."""
CLOSE_SECONDS = 5.0
"""Bounds the last word of an agent that leaves."""


async def share(agent: Agent, patience: float) -> None:
    """Play it; `patience` bounds each call, in seconds."""
    agent.say(
        "\nLast, it opens a terminal that stays; “Terminals” on the page shows it live, and you may type there:"
    )
    agent.say("  · lines typed into its shell:  each asks, and the card shows which program will read it")
    agent.say("  · a server it leaves running:  the agent waits for its port; reading asks nobody")
    agent.say(
        "  · a program with questions:    the agent answers one; the other is hidden, and yours alone\n"
    )
    opened = await agent.do("opening the terminal", "create_tracked_terminal", name="orchard")
    terminal = opened.data.get("terminal_id")
    if opened.status != "done" or not terminal:
        return
    try:
        await _Visit(agent, str(terminal), patience).play()
    except BaseException:
        with anyio.move_on_after(CLOSE_SECONDS, shield=True), suppress(DoorClosed):
            await agent.quietly("close_terminal", terminalId=terminal)
        raise


class _Visit:
    """One terminal, from its first line to its end."""

    def __init__(self, agent: Agent, terminal: str, patience: float) -> None:
        self._agent = agent
        self._terminal = terminal
        self._patience = patience

    async def play(self) -> None:
        await self._line("a line in it", f"{python()} apples.py")
        await self._line("a line that cannot work", "ls cherries.py")
        await self._serve()
        unanswered = await self._talk()
        if await self._close() and unanswered is not None:
            await self._agent.go_on(GATE, unanswered)

    async def _line(self, what: str, command: str) -> Reply:
        asked = {"command": command, "terminal_id": self._terminal, "wait_seconds": self._patience}
        return await self._agent.do(what, "execute_command", **asked)

    async def _serve(self) -> None:
        port = free_port()
        line = f"{python()} -m http.server {port} --bind 127.0.0.1 &"
        if (await self._line("starting a server", line)).status == "done":
            asked = {"terminalId": self._terminal, "until": "port", "value": port}
            woke = await self._agent.do("waiting for its port", "wait_for_terminal", **asked)
            self._agent.say(f"    {woke.text.partition(chr(10))[0]}")

    async def _talk(self) -> Reply | None:
        """A question that the agent answers, then one that it cannot; the call, when that has no answer."""
        reply = await self._line(GATE, f"{python()} gate.py")
        if _asks(reply) and not reply.data[ASKS]["secret"]:
            self._agent.say(
                f"    It asks: “{_prompt(reply)}” The agent would answer; you are asked, as for all it types."
            )
            answer = {"terminalId": self._terminal, "text": ANSWER}
            if (await self._agent.do("its answer", "send_to_terminal", **answer)).status != "done":
                return reply
            reply = await self._agent.go_on(GATE, reply)
        return await self._wait_for_person(reply) if _asks(reply) else None

    async def _wait_for_person(self, reply: Reply) -> Reply | None:
        say = self._agent.say
        say(f"    Now it asks: “{_prompt(reply)}” What is typed there is hidden, so no agent may type it.")
        say(f"    You may: on the page, or elsewhere with `handrail terminal send {self._terminal} WORD`.")
        say(f"    It is recorded nowhere. The agent waits {SECRET_SECONDS:.0f} s, then goes on without.")
        with anyio.move_on_after(SECRET_SECONDS):
            while _asks(reply):
                reply = await self._agent.go_on(GATE, reply)
            return None
        say("    Nobody typed it; the agent goes on without.")
        return reply

    async def _close(self) -> bool:
        """The end of it, unless the person has taken it over."""
        say = self._agent.say
        say(f"    The agent closes the terminal once it has been quiet for {STAYS_SECONDS:.0f} s.")
        say("    Try it on the page until then; after “Take over” it is yours, and stays.")
        quiet = {"terminalId": self._terminal, "until": "idle", "value": STAYS_SECONDS}
        await self._agent.quietly("wait_for_terminal", **quiet, timeout_seconds=self._patience)
        closed = await self._agent.do("closing the terminal", "close_terminal", terminalId=self._terminal)
        if closed.status != "done":
            say(f"    `handrail terminal close {self._terminal}` ends it; its folder goes with the demo.")
            return False
        say(f"    {closed.text.partition(chr(10))[0]}")
        say(f"    What it printed is kept: `handrail terminal read {self._terminal}`.")
        return True


def python() -> str:
    """As a person would type it, where that works."""
    return "python3" if shutil.which("python3") else shlex.quote(sys.executable)


def free_port() -> int:
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        return int(tried.getsockname()[1])


def _asks(reply: Reply) -> bool:
    return reply.status == ASKS


def _prompt(reply: Reply) -> str:
    return str(reply.data[ASKS]["prompt"]).strip()
