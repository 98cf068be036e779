"""`terminal/*`: the terminals that agents have from us.

Owns which agent holds which, from its creation until it is given back. Each is one call of execute_command, and its
output stays for people. It does not know what an agent is told of one (lent.py).

A terminal as an agent has it: by its id, until the agent gives it back.

The shell line that an agent's request for a terminal means.

The end of a terminal's output as an agent gets it: plain text of at most so many bytes, cut at its start.
"""

import os
import shlex
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import anyio

from handrail.agents.lenient_json import number, records, text
from handrail.agents.requests.request_context import NOT_FOUND, Who, error, not_done
from handrail.errors import Unwritable
from handrail.gate.call import Call, Outcome
from handrail.gate.feedback import changed
from handrail.gate.gate import Gate
from handrail.store.actor import CLIENT
from handrail.store.values import Caller, Json
from handrail.terminal.keeper_client import KeeperError
from handrail.terminal.output.plain_text import plain
from handrail.terminal.output.tail import Tail
from handrail.terminal.terminal import Exit, Terminal
from handrail.terminal.terminals import Terminals
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


MOST_OUTPUT = 1024 * 1024
"""Bytes of output in one answer, also where an agent wants more: it is one message."""
MOST_LENT = 1000
"""Terminals held for agents; of those that ended and were never given back, the oldest are dropped beyond this."""


class Lending:
    """Terminals in agents' hands, by id."""

    def __init__(self, gate: Gate, terminals: Terminals) -> None:
        self._gate = gate
        self._terminals = terminals
        self._lent: dict[str, Lent] = {}

    async def create(self, params: Json, who: Who) -> Json:
        """Returns once the terminal is there, with its command under way."""
        cwd = text(params.get("cwd")) or who.cwd
        given: Json = {"command": line_of(params, cwd), "cwd": cwd, "background": True}
        if env := variables_of(params):
            given["env"] = env
        reply = await who.submit(self._gate, "execute_command", given)
        terminal = reply.call.terminal
        if terminal is None or not reply.call.handed_back:  # it was not started
            raise not_done(reply.outcome)
        limit = number(params.get("outputByteLimit"))
        self._make_room()
        self._lent[terminal] = Lent(
            call=reply.call,
            owner=who.owner,
            terminal=self._terminals.get(terminal),
            tail=self._terminals.tail(terminal),
            limit=MOST_OUTPUT if limit is None else min(max(0, limit), MOST_OUTPUT),
        )
        return {"terminalId": terminal}

    async def output(self, params: Json, who: Who) -> Json:
        return await self._named(params, who).output()

    async def wait_for_exit(self, params: Json, who: Who) -> Json:
        return await self._named(params, who).exited()

    async def kill(self, params: Json, who: Who) -> Json:
        """End what runs; the terminal stays the agent's."""
        await self._named(params, who).stop(self._gate)
        return {}

    async def release(self, params: Json, who: Who) -> Json:
        """End what runs; the agent can name it no more, from the moment it said so."""
        lent = self._named(params, who)
        del self._lent[text(params.get("terminalId"))]
        await lent.stop(self._gate)
        return {}

    def forget(self, caller: Caller) -> None:
        """Its session is over; what still runs in its terminals goes on."""
        owner = (caller.key, caller.client)
        self._lent = {name: lent for name, lent in self._lent.items() if lent.owner != owner}

    def _named(self, params: Json, who: Who) -> Lent:
        """Raises RequestError for one that it does not hold."""
        name = text(params.get("terminalId"))
        lent = self._lent.get(name)
        if lent is None or lent.owner != who.owner:
            told = f"There is no terminal {name!r}: it was released, or never created."
            raise error(NOT_FOUND, told, {"terminalId": name})
        return lent

    def _make_room(self) -> None:
        excess = len(self._lent) + 1 - MOST_LENT
        if excess > 0:
            ended = [name for name, lent in self._lent.items() if lent.status is not None]
            for name in ended[:excess]:
                del self._lent[name]


def line_of(params: Json, cwd: str) -> str:
    """Exactly the words that were asked for; a command that names no program is a shell line."""
    command, args = text(params.get("command")), params.get("args")
    words = [word for word in args if isinstance(word, str)] if isinstance(args, list) else []
    if words:
        return shlex.join([command, *words])
    return shlex.quote(command) if _is_program(command, cwd) else command


def variables_of(params: Json) -> Json:
    """What it adds to the environment."""
    return {text(each.get("name")): text(each.get("value")) for each in records(params.get("env"))}


def _is_program(command: str, cwd: str) -> bool:
    if "\0" in command:
        return False
    if "/" in command:
        path = Path(cwd, command)
        return path.is_file() and os.access(path, os.X_OK)
    return bool(command) and shutil.which(command) is not None


_LEAST = 64 * 1024
"""Bytes looked at, however few are wanted: colours and movements are bytes too."""
_GROWTH = 4


def last(tail: Tail, limit: int) -> tuple[str, bool]:
    """The last `limit` bytes of the text, and whether anything before them is left out.

    Looks at no more of the output than it takes. A line that began before that is left out.
    """
    kept = tail.extent
    window = max(_LEAST, _GROWTH * limit)
    while True:
        begin = max(kept.first, kept.end - window)
        text = plain(tail.read_range(begin, kept.end))
        if begin > kept.first:
            text = text.partition("\n")[2]
        raw = text.encode()
        if begin == kept.first or len(raw) >= limit:
            return cut(raw, limit), begin > 0 or len(raw) > limit
        window *= _GROWTH


def cut(raw: bytes, limit: int) -> str:
    """The end of a UTF-8 text, from the beginning of a character on."""
    begin = max(0, len(raw) - limit)
    while begin < len(raw) and raw[begin] & 0xC0 == 0x80:  # within a character
        begin += 1
    return raw[begin:].decode()
