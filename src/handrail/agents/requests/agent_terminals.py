"""`terminal/*` requests: terminals that an agent creates through its host.

Each terminal is one call of execute_command, so it needs approval and people can watch it. An agent can name
a terminal from its creation until it releases it; the output is kept after that.
"""

import os
import shlex
import shutil
from contextlib import suppress
from pathlib import Path

import anyio

from handrail.agents.lenient_json import number, records, text
from handrail.agents.requests.request_context import NOT_FOUND, RequestContext, error, error_from_outcome
from handrail.errors import Unwritable
from handrail.gate.call import Call, Outcome
from handrail.gate.feedback import describe_edit
from handrail.gate.gate import Gate
from handrail.lazy_dataclass import dataclass
from handrail.store.actor import CLIENT
from handrail.store.values import Caller, Json
from handrail.terminal.keeper_client import KeeperError
from handrail.terminal.output.plain_text import plain_text
from handrail.terminal.output.tail import Tail
from handrail.terminal.terminal import Exit, Terminal
from handrail.terminal.terminals import Terminals
from handrail.terminal.thread_pool import AGENTS

GRACE = 2.0
"""Seconds between SIGTERM and SIGKILL, if no call stops the terminal any more."""
STOP_SECONDS = 20.0
"""Bounds an agent's wait for `terminal/kill` and `terminal/release`; the processes are stopped even after
that."""
KILLED = Outcome(ending="cancelled", by=CLIENT, message="Ended by the agent")


@dataclass(slots=True, kw_only=True)
class AgentTerminal:
    """One terminal that an agent has created and not yet released."""

    call: Call
    owner: tuple[str, str]
    """The key and client name of the agent's caller; other agents cannot use it."""
    terminal: Terminal | None
    """None if its command had ended before the terminal could be looked up."""
    tail: Tail
    limit: int
    """The most bytes of output that the agent asked for."""

    @property
    def status(self) -> Json | None:
        """The exit status; None while it runs. A call that a person completed counts as ended, even if
        processes still run."""
        if self.terminal is not None and self.terminal.exit is not None:
            return _status_from_exit(self.terminal.exit)
        outcome = self.call.outcome
        if outcome is None or (self.terminal is not None and outcome.ending != "completed"):
            return None
        data = {} if outcome.result is None else outcome.result.data
        return {"exitCode": data.get("exit_code"), "signal": data.get("signal")}

    async def exited(self) -> Json:
        """Wait for the exit status."""
        while (status := self.status) is None:
            assert self.terminal is not None
            if self.call.outcome is None:
                await self._wait_for_exit_or_outcome(self.terminal)
            else:
                await self.terminal.wait()
        return status

    async def output(self) -> Json:
        """The output, with notes about actions of a person that the agent cannot see otherwise."""
        head, foot = self._build_head, self._build_foot
        room = self.limit - len((head + foot).encode())
        if room < 0:
            head, foot, room = "", "", self.limit
        status = self.status
        text, truncated = await AGENTS.run(read_last_bytes, self.tail, room)
        foot = foot if text and not text.endswith("\n") else foot.removeprefix("\n")
        answer: Json = {"output": f"{head}{text}{foot}", "truncated": truncated}
        return answer if status is None else {**answer, "exitStatus": status}

    async def stop(self, gate: Gate) -> None:
        """Stop its process tree; the output is kept."""
        if self.terminal is None or self.terminal.swept is not None:
            return
        ends = gate.end(self.call, KILLED)
        with anyio.move_on_after(STOP_SECONDS), suppress(KeeperError):
            if ends:
                await self.terminal.wait_swept()
            else:
                await self.terminal.stop(GRACE)

    async def _wait_for_exit_or_outcome(self, terminal: Terminal) -> None:
        """Return when the terminal has exited or its call has settled."""
        async with anyio.create_task_group() as group:

            async def settled() -> None:
                with suppress(Unwritable):
                    await self.call.settled()
                group.cancel_scope.cancel()

            group.start_soon(settled)
            await terminal.wait()
            group.cancel_scope.cancel()

    @property
    def _build_head(self) -> str:
        """Notes on the changes and the message of the person who allowed it."""
        notes = [] if self.call.edited is None else [describe_edit(self.call.input, self.call.edited)]
        notes += [f"The person who allowed it says: {self.call.said}"] if self.call.said else []
        return "".join(f"[{each}]\n" for each in notes)

    @property
    def _build_foot(self) -> str:
        """A note that a person cancelled or completed it."""
        outcome = self.call.outcome
        if outcome is None or not outcome.by.is_person:
            return ""
        if outcome.ending not in ("cancelled", "completed"):
            return ""
        data = outcome.result.data if outcome.result is not None else {}
        text = f"\n{data.get('output')}" if data and "terminal_id" not in data else ""
        return f"\n[{outcome.message}]{text}"


def _status_from_exit(exit: Exit) -> Json:
    return {"exitCode": exit.code, "signal": exit.signal}


MAX_OUTPUT = 1024 * 1024
"""Bytes of output in one answer, also if an agent asks for more: it must fit into one message."""
MAX_TERMINALS = 1000
"""Terminals held for all agents. Above this, the oldest that have exited but were not released are dropped."""


class AgentTerminals:
    """The terminals of all agents, by id."""

    def __init__(self, gate: Gate, terminals: Terminals) -> None:
        self._gate = gate
        self._terminals = terminals
        self._held: dict[str, AgentTerminal] = {}

    async def create(self, params: Json, context: RequestContext) -> Json:
        """Returns once the terminal exists and its command runs."""
        cwd = text(params.get("cwd")) or context.cwd
        arguments: Json = {"command": build_shell_line(params, cwd), "cwd": cwd, "background": True}
        if env := parse_variables(params):
            arguments["env"] = env
        reply = await context.submit(self._gate, "execute_command", arguments)
        terminal = reply.call.terminal
        if terminal is None or not reply.call.handed_back:  # not started
            raise error_from_outcome(reply.outcome)
        limit = number(params.get("outputByteLimit"))
        self._drop_oldest()
        self._held[terminal] = AgentTerminal(
            call=reply.call,
            owner=context.owner,
            terminal=self._terminals.get(terminal),
            tail=self._terminals.tail(terminal),
            limit=MAX_OUTPUT if limit is None else min(max(0, limit), MAX_OUTPUT),
        )
        return {"terminalId": terminal}

    async def output(self, params: Json, context: RequestContext) -> Json:
        return await self._get_terminal(params, context).output()

    async def wait_for_exit(self, params: Json, context: RequestContext) -> Json:
        return await self._get_terminal(params, context).exited()

    async def kill(self, params: Json, context: RequestContext) -> Json:
        """Stop the processes; the agent can still read the terminal."""
        await self._get_terminal(params, context).stop(self._gate)
        return {}

    async def release(self, params: Json, context: RequestContext) -> Json:
        """Stop the processes; the agent cannot name the terminal from this moment on."""
        held = self._get_terminal(params, context)
        del self._held[text(params.get("terminalId"))]
        await held.stop(self._gate)
        return {}

    def forget(self, caller: Caller) -> None:
        """Drop the terminals of a session that is over; their processes go on."""
        owner = (caller.key, caller.client)
        self._held = {name: held for name, held in self._held.items() if held.owner != owner}

    def _get_terminal(self, params: Json, context: RequestContext) -> AgentTerminal:
        """The terminal that the request names. Raises RequestError if this agent does not hold it."""
        name = text(params.get("terminalId"))
        held = self._held.get(name)
        if held is None or held.owner != context.owner:
            message = f"There is no terminal {name!r}: it was released, or never created."
            raise error(NOT_FOUND, message, {"terminalId": name})
        return held

    def _drop_oldest(self) -> None:
        excess = len(self._held) + 1 - MAX_TERMINALS
        if excess > 0:
            ended = [name for name, held in self._held.items() if held.status is not None]
            for name in ended[:excess]:
                del self._held[name]


def build_shell_line(params: Json, cwd: str) -> str:
    """The shell line for a request: quoted if it names a program or has arguments, else taken as a shell
    line."""
    command, args = text(params.get("command")), params.get("args")
    words = [word for word in args if isinstance(word, str)] if isinstance(args, list) else []
    if words:
        return shlex.join([command, *words])
    return shlex.quote(command) if _is_program(command, cwd) else command


def parse_variables(params: Json) -> Json:
    """The variables that it adds to the environment."""
    return {text(each.get("name")): text(each.get("value")) for each in records(params.get("env"))}


def _is_program(command: str, cwd: str) -> bool:
    if "\0" in command:
        return False
    if "/" in command:
        path = Path(cwd, command)
        return path.is_file() and os.access(path, os.X_OK)
    return bool(command) and shutil.which(command) is not None


_LEAST = 64 * 1024
"""The least bytes that are read, because escape sequences take bytes too."""
_GROWTH = 4


def read_last_bytes(tail: Tail, limit: int) -> tuple[str, bool]:
    """The last `limit` bytes of the text, and whether the output has more before them.

    Reads no more of the output than needed. A line that starts before the part read is left out.
    """
    kept = tail.kept_range
    window = max(_LEAST, _GROWTH * limit)
    while True:
        begin = max(kept.first, kept.end - window)
        text = plain_text(tail.read_range(begin, kept.end))
        if begin > kept.first:
            text = text.partition("\n")[2]
        raw = text.encode()
        if begin == kept.first or len(raw) >= limit:
            return cut_to_last_bytes(raw, limit), begin > 0 or len(raw) > limit
        window *= _GROWTH


def cut_to_last_bytes(raw: bytes, limit: int) -> str:
    """The last `limit` bytes of a UTF-8 text, starting at a whole character."""
    begin = max(0, len(raw) - limit)
    while begin < len(raw) and raw[begin] & 0xC0 == 0x80:  # a continuation byte
        begin += 1
    return raw[begin:].decode()
