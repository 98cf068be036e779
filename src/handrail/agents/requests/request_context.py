"""On whose behalf an agent asks its host for something, and where.

Owns what hands need to know of a session. It does not know conversations (talk.py), nor what is asked for.

How an agent is told that something it asked for was not done.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import anyio

from handrail.gate.call import Call, Outcome
from handrail.gate.gate import Gate, Reply, Request
from handrail.store.actor import CLIENT
from handrail.store.values import Caller, Json

GIVEN_UP = Outcome(ending="cancelled", by=CLIENT, message="Cancelled by the client")


class Quirks(Protocol):
    """What an agent needs beside the specification."""

    @property
    def missing_file_is_empty(self) -> bool: ...

    @property
    def writes_itself(self) -> bool: ...


def _unsaid(_tool_call: str) -> Json:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Who:
    """An agent in one of its sessions."""

    caller: Caller
    cwd: str
    """The session's; what an agent names without a folder is there."""
    quirks: Quirks
    on_asked: Callable[[str, str], None]
    """Called with the agent's id for its own work, and the id of our call that asks about that work."""
    known: Callable[[str], Json] = _unsaid
    """What the agent has said of a tool call of its own so far, in the protocol's words."""

    @property
    def owner(self) -> tuple[str, str]:
        """Who may name what it was given."""
        return self.caller.key, self.caller.client

    async def submit(self, gate: Gate, tool: str, given: Json) -> Reply:
        """Carry a call to its end, or until it is under way by itself; who stops waiting for it ends it."""
        opened: list[Call] = []
        request = Request(tool=tool, input=given, caller=self.caller, patience=math.inf, anew=True)
        try:
            return await gate.submit(request, opened.append)
        except anyio.get_cancelled_exc_class():
            for call in opened:
                if call.handed_back and call.plan is not None:  # the agent will never learn that it runs
                    gate.end(call, GIVEN_UP)
            raise

    async def ask(self, gate: Gate, tool: str, given: Json, tool_call: str) -> Reply:
        """Ask about work of its own, which it calls `tool_call`."""
        request = Request(tool=tool, input=given, caller=self.caller, patience=math.inf)
        return await gate.ask(request, lambda call: self.on_asked(tool_call, call.id))


BAD_PARAMS = -32602
NO_METHOD = -32601
FAILED = -32603
CANCELLED = -32800
NOT_FOUND = -32002
DENIED = -32001
"""Not the protocol's: it has none for a person's no. It says what is wrong in words."""
STOPPING = "Handrail is stopping, so this was not done. Ask again when it is back."


def error(code: int, sentence: str, data: Json | None = None) -> Exception:
    """The SDK's RequestError."""
    from acp.exceptions import RequestError  # noqa: PLC0415 - loaded by now; not at the daemon's start

    return RequestError(code, sentence, data)


def not_done(outcome: Outcome | None) -> Exception:
    """Why a call came to nothing; with None, it was left to the next daemon."""
    if outcome is None:
        return error(FAILED, STOPPING)
    data: Json = {"status": outcome.ending, "reason": outcome.message, "by": str(outcome.by)}
    match outcome.ending:
        case "denied":
            reason = f" Reason: {outcome.message}" if outcome.message else " No reason was given."
            return error(DENIED, f"Denied by {outcome.by}.{reason} Nothing was done.", data)
        case "cancelled":
            return error(CANCELLED, outcome.message or "Cancelled", data)
        case _:
            return error(FAILED, outcome.message or f"The call is {outcome.ending}.", data)
