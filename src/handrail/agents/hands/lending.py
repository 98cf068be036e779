"""`terminal/*`: the terminals that agents have from us.

Owns which agent holds which, from its creation until it is given back. Each is one call of execute_command, and its
output stays for people. It does not know what an agent is told of one (lent.py).
"""

from handrail.agents.hands.lent import Lent
from handrail.agents.hands.line import line_of, variables_of
from handrail.agents.hands.refusal import NOT_FOUND, error, not_done
from handrail.agents.hands.who import Who
from handrail.agents.loose import number, text
from handrail.gate.gate import Gate
from handrail.store.value import Caller, Json
from handrail.terminal.terminals import Terminals

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
