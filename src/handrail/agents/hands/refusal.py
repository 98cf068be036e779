"""How an agent is told that something it asked for was not done.

Owns the words and the codes. It does not know what was asked for.
"""

from handrail.gate.call import Outcome
from handrail.store.value import Json

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
