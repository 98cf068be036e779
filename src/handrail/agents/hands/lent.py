"""A terminal as an agent has it: by its id, until the agent gives it back.

Owns what the agent is told of it: its output, its exit, and what a person did to its call. It starts nothing (hands.py);
the output stays for people when the agent has given the terminal back.
"""

from contextlib import suppress
from dataclasses import dataclass

import anyio

from handrail.agents.hands.output import last
from handrail.errors import Unwritable
from handrail.gate.call import Call, Outcome
from handrail.gate.feedback import changed
from handrail.gate.gate import Gate
from handrail.keeper.protocol import Exit
from handrail.store.actor import CLIENT
from handrail.store.value import Json
from handrail.terminal.keeper_client import KeeperError
from handrail.terminal.output.tail import Tail
from handrail.terminal.terminal import Terminal
from handrail.terminal.thread_pool import AGENTS

GRACE = 2.0
"""Seconds between asking processes to end and killing them, where no call does that any more."""
STOP_SECONDS = 20.0
"""How long an agent waits for the end of what it killed; it goes on unwinding after that."""
KILLED = Outcome(ending="cancelled", by=CLIENT, message="Ended by the agent")


@dataclass(slots=True, kw_only=True)
class Lent:
    """One terminal in an agent's hands."""

    call: Call
    owner: tuple[str, str]
    """Whose it is: nobody else can name it."""
    terminal: Terminal | None
    """None when its command had ended before anybody could look."""
    tail: Tail
    limit: int
    """Bytes of output that the agent wants at most."""

    @property
    def status(self) -> Json | None:
        """How it ended; None while it runs. What a person completed is over for the agent, whatever still runs."""
        if self.terminal is not None and self.terminal.exit is not None:
            return _status(self.terminal.exit)
        outcome = self.call.outcome
        if outcome is None or (self.terminal is not None and outcome.ending != "completed"):
            return None
        known = {} if outcome.result is None else outcome.result.data
        return {"exitCode": known.get("exit_code"), "signal": known.get("signal")}

    async def exited(self) -> Json:
        """How it ended, as soon as it has."""
        while (status := self.status) is None:
            assert self.terminal is not None
            if self.call.outcome is None:
                await self._first_end(self.terminal)
            else:
                await self.terminal.wait()
        return status

    async def output(self) -> Json:
        """What it printed, with a word about what a person did where the agent cannot know."""
        head, foot = self._head, self._foot
        room = self.limit - len((head + foot).encode())
        if room < 0:
            head, foot, room = "", "", self.limit
        status = self.status
        text, truncated = await AGENTS.run(last, self.tail, room)
        foot = foot if text and not text.endswith("\n") else foot.removeprefix("\n")
        told: Json = {"output": f"{head}{text}{foot}", "truncated": truncated}
        return told if status is None else {**told, "exitStatus": status}

    async def stop(self, gate: Gate) -> None:
        """End its whole tree; the output stays."""
        if self.terminal is None or self.terminal.swept is not None:
            return
        ends = gate.end(self.call, KILLED)
        with anyio.move_on_after(STOP_SECONDS), suppress(KeeperError):
            if ends:
                await self.terminal.wait_swept()
            else:
                await self.terminal.stop(GRACE)

    async def _first_end(self, terminal: Terminal) -> None:
        """Return when it has exited, or its call has been settled."""
        async with anyio.create_task_group() as group:

            async def settled() -> None:
                with suppress(Unwritable):
                    await self.call.settled()
                group.cancel_scope.cancel()

            group.start_soon(settled)
            await terminal.wait()
            group.cancel_scope.cancel()

    @property
    def _head(self) -> str:
        """What a person changed and said before they allowed it."""
        told = [] if self.call.edited is None else [changed(self.call.input, self.call.edited)]
        told += [f"The person who allowed it says: {self.call.said}"] if self.call.said else []
        return "".join(f"[{each}]\n" for each in told)

    @property
    def _foot(self) -> str:
        """That a person ended it, or the waiting for it."""
        outcome = self.call.outcome
        if outcome is None or not outcome.by.is_person:
            return ""
        if outcome.ending not in ("cancelled", "completed"):
            return ""
        own = outcome.result.data if outcome.result is not None else {}
        text = f"\n{own.get('output')}" if own and "terminal_id" not in own else ""
        return f"\n[{outcome.message}]{text}"


def _status(exit: Exit) -> Json:
    return {"exitCode": exit.code, "signal": exit.signal}
