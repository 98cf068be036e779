"""RequestContext: the agent, thread and folder of a request, and how it reaches the gate.

Also builds the JSON-RPC errors for requests that were not carried out.
"""

import math
from collections.abc import Callable
from typing import Protocol

import anyio

from handrail.gate.call import Call, Outcome
from handrail.gate.gate import Gate, Reply, Request
from handrail.lazy_dataclass import dataclass
from handrail.store.actor import CLIENT
from handrail.store.values import Caller, Json

GIVEN_UP = Outcome(ending="cancelled", by=CLIENT, message="Cancelled by the client")


class Quirks(Protocol):
    """Deviations from the specification that an agent needs."""

    @property
    def missing_file_is_empty(self) -> bool: ...

    @property
    def writes_itself(self) -> bool: ...

    @property
    def title_is_command(self) -> bool: ...

    @property
    def input_in_content(self) -> bool: ...


def _nothing_known(_tool_call: str) -> Json:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext:
    """One agent in one session."""

    caller: Caller
    cwd: str
    """The session's working directory; relative paths are resolved in it."""
    quirks: Quirks
    on_asked: Callable[[str, str], None]
    """Called with the agent's tool call id and the id of our call that asks about it."""
    known: Callable[[str], Json] = _nothing_known
    """Returns the agent's updates about one of its tool calls, merged, in the protocol's fields."""
    has_own_tools: bool = False
    """Whether the session was given our MCP server."""

    @property
    def owner(self) -> tuple[str, str]:
        """The key that owns the resources created for this agent."""
        return self.caller.key, self.caller.client

    async def submit(self, gate: Gate, tool: str, arguments: Json) -> Reply:
        """Run a call until it ends or is handed back. If the caller is cancelled, the call is cancelled too."""
        opened: list[Call] = []
        request = Request(tool=tool, input=arguments, caller=self.caller, patience=math.inf, anew=True)
        try:
            return await gate.submit(request, opened.append)
        except anyio.get_cancelled_exc_class():
            for call in opened:
                if call.handed_back and call.plan is not None:  # the agent will never learn its id
                    gate.end(call, GIVEN_UP)
            raise

    async def ask(self, gate: Gate, tool: str, arguments: Json, tool_call: str) -> Reply:
        """Ask the person about work that the agent does itself, under its id `tool_call`."""
        request = Request(tool=tool, input=arguments, caller=self.caller, patience=math.inf)
        return await gate.ask(request, lambda call: self.on_asked(tool_call, call.id))


BAD_PARAMS = -32602
NO_METHOD = -32601
FAILED = -32603
CANCELLED = -32800
NOT_FOUND = -32002
DENIED = -32001
"""Not a code of the protocol, which has none for a denial; the message explains it."""
STOPPING = "Handrail is stopping, so this was not done. Ask again when it is back."


def error(code: int, sentence: str, data: Json | None = None) -> Exception:
    """The SDK's RequestError."""
    from acp.exceptions import RequestError  # noqa: PLC0415 - loaded by now; not at the daemon's start

    return RequestError(code, sentence, data)


def error_from_outcome(outcome: Outcome | None) -> Exception:
    """The error for a call that was not carried out; None means that it waits for the next daemon."""
    if outcome is None:
        return error(FAILED, STOPPING)
    data: Json = {"status": outcome.ending, "reason": outcome.message, "by": str(outcome.by)}
    match outcome.ending:
        case "denied":
            reason = f" Reason: {outcome.sentence}" if outcome.message else " No reason was given."
            return error(DENIED, f"Denied by {outcome.by}.{reason} Nothing was done.", data)
        case "cancelled":
            return error(CANCELLED, outcome.message or "Cancelled", data)
        case _:
            return error(FAILED, outcome.message or f"The call is {outcome.ending}.", data)
