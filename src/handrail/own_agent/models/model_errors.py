"""What went wrong with a request, weighed: to be made again, or to be told.

Owns the sentences that people read of it. It does not make requests, and how long is waited is patience.py's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import httpx2
from pydantic_ai import exceptions as wrong

from handrail.own_agent.models.model import Choice, ModelError

Hidden = Callable[[str], str]
"""A text without the keys that stand in it."""
QUOTED = 500
"""Characters of what a provider says: some send a whole page."""
TOO_LARGE = 413
SOON = {408, 409, 425, 429}
FAILED = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """It is worth another try."""

    why: str
    after: float | None = None
    """Seconds that the provider asks for."""
    unreached: bool = False
    """Nobody was there."""


class Interrupted(Exception):
    """The stream ended before the answer did."""


BROKE = "The connection to {who} broke off"
PASSING: tuple[tuple[type[Exception], str], ...] = (
    (wrong.ModelRateLimitError, "{who} asks for a pause: its rate limit is reached"),
    (wrong.ModelUnavailableError, "{who} is overloaded"),
    (wrong.ModelServerError, "{who} failed: {said}"),
    (wrong.ModelTimeoutError, "{who} went silent"),
    (wrong.ModelConnectionError, BROKE),
    (httpx2.TransportError, BROKE),
    (Interrupted, BROKE),
    (wrong.UnexpectedModelBehavior, "{who} gave an answer that makes no sense: {said}"),
)
"""What may be better the next time, the first that fits."""


def weighed(fault: Exception, choice: Choice, who: str, address: str, hidden: Hidden) -> Again | ModelError:
    """What to do about it, in sentences about whoever was asked, there; with no key in them."""
    said = _said(fault, hidden)
    if isinstance(fault, wrong.ModelConnectionError) and fault.phase in {"connect", "pool"}:
        return Again(why=f"{who} could not be reached at {address}", unreached=True)
    after = fault.retry_after if isinstance(fault, wrong.ModelAPIError) else None
    for kind, sentence in PASSING:
        if isinstance(fault, kind):
            return Again(why=sentence.format(who=who, said=said).rstrip("."), after=after)
    if isinstance(fault, wrong.ModelRequestRejectedError | wrong.ModelQuotaExceededError):
        return _refused(fault, choice, who, said)
    if _passes(fault):
        return Again(why=f"{who} failed: {said}".rstrip("."), after=after)
    return ModelError(f"{who} could not be asked: {said}", too_long=_status(fault) == TOO_LARGE)


def _passes(fault: Exception) -> bool:
    """Whether it is of a sort that passes, although nobody says so."""
    status = _status(fault)
    return (status is not None and (status in SOON or status >= FAILED)) or (
        isinstance(fault, wrong.ModelAPIError) and fault.in_stream
    )


def _refused(fault: wrong.ModelAPIError, choice: Choice, who: str, said: str) -> ModelError:
    """By which no other try would be better."""
    match fault:
        case wrong.ModelContextWindowExceededError():
            return ModelError(f"The conversation is too long for {choice}: {said}", too_long=True)
        case wrong.ModelAuthenticationError():
            sentence = f"{who} refused the key: {said} Check it, or set another: `handrail keys set {choice.provider}`."
            return ModelError(sentence, login=True)
        case wrong.ModelNotFoundError():
            return ModelError(f"{who} has no model “{choice.name}”, or not for this key: {said}")
        case wrong.ModelQuotaExceededError():
            return ModelError(f"{who} wants to be paid first: {said}")
        case _:
            too_long = _status(fault) == TOO_LARGE
            return ModelError(f"{who} refused the request: {said}", too_long=too_long)


def _status(fault: Exception) -> int | None:
    return fault.status_code if isinstance(fault, wrong.ModelHTTPError) else None


def _said(fault: Exception, hidden: Hidden) -> str:
    """What the provider itself said of it, as a sentence, else what our side knows."""
    told: Any = fault.body if isinstance(fault, wrong.ModelAPIError) else None
    for _ in range(2):
        if isinstance(told, dict):
            inner = cast("dict[str, Any]", told)
            told = inner.get("message") or inner.get("error")
    # Hidden before it is shortened: half a key is not found, and is half a key.
    text = _short(hidden(told if isinstance(told, str) and told else str(fault)))
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= QUOTED else f"{line[:QUOTED]}…"
