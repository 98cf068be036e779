"""Asking a model: one answer, streamed, and asked for again where the line breaks or the provider is overloaded.

Owns when a request is made again. Cancelled at any moment, it closes its connection and is gone: nothing here catches
that. It does not know the providers (speak.py), nor what their troubles mean (trouble.py).

What went wrong with a request, weighed: to be made again, or to be told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, cast

import anyio
import httpx2
from pydantic_ai import exceptions as wrong
from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from handrail.own_agent.models.api_keys import Access, shown
from handrail.own_agent.models.http_stream import Patience, reading
from handrail.own_agent.models.model import Choice, Hearing, ModelError
from handrail.own_agent.models.providers import Spoken

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


class Asking:
    """One model, with its settings."""

    def __init__(
        self,
        choice: Choice,
        way: Access,
        spoken: Spoken,
        context: int,
        patience: Patience,
        hidden: Callable[[str], str],
    ) -> None:
        self._choice, self._way, self._spoken, self._context = choice, way, spoken, context
        self._patience, self._hidden = patience, hidden

    @property
    def name(self) -> str:
        return str(self._choice)

    @property
    def window(self) -> int | None:
        return self._spoken.model.context_window or self._context or None

    @property
    def takes_images(self) -> bool:
        return bool(self._spoken.model.profile.get("supports_image_input", True))

    async def request(
        self, messages: Sequence[ModelMessage], tools: Sequence[ToolDefinition], hearing: Hearing
    ) -> ModelResponse:
        tried = 0
        while True:
            tried += 1
            try:
                return await self._once(messages, tools, hearing)
            except Exception as fault:
                seconds, why = self._pause(fault, tried)
            hearing.again(why, seconds)
            await anyio.sleep(seconds)

    def cost(self, response: ModelResponse) -> Decimal | None:
        try:
            return response.cost().total_price
        except (LookupError, ValueError, AssertionError):
            return None

    async def _once(
        self, messages: Sequence[ModelMessage], tools: Sequence[ToolDefinition], hearing: Hearing
    ) -> ModelResponse:
        asked = model_request_stream(
            self._spoken.model,
            messages,
            model_settings=self._spoken.settings,
            model_request_parameters=ModelRequestParameters(function_tools=list(tools)),
            instrument=False,
        )
        async with reading(self._stall), asked as stream:
            async for event in stream:
                _hear(event, hearing)
            answer = stream.get()
        if not self._whole(answer):
            raise Interrupted
        return answer

    @property
    def _stall(self) -> float:
        alive = self._choice.provider == "anthropic"
        return self._patience.stall if alive else self._patience.long_stall

    def _whole(self, answer: ModelResponse) -> bool:
        """Providers say why an answer ends; not every server that speaks like one does."""
        said_so = answer.finish_reason is not None or (self._way.own and bool(answer.parts))
        return answer.state == "complete" and said_so

    def _pause(self, fault: Exception, tried: int) -> tuple[float, str]:
        """How long before the next try, and why. Raises ModelError where there is none."""
        address = shown(self._spoken.model.base_url or "")
        found = weighed(fault, self._choice, self._way.title, address, self._hidden)
        if isinstance(found, ModelError):
            raise ModelError(
                self._hidden(found.sentence), login=found.login, too_long=found.too_long
            ) from None
        why = self._hidden(found.why)
        if tried >= (self._patience.unreached if found.unreached else self._patience.tries):
            raise ModelError(f"{why}. It was asked {tried} times.") from None
        if found.after is not None and found.after > self._patience.told:
            raise ModelError(f"{why}, of {found.after / 60:.0f} minutes. Try again then.") from None
        return self._wait(found, tried), why

    def _wait(self, found: Again, tried: int) -> float:
        return self._patience.wait(tried) if found.after is None else found.after


def _hear(event: ModelResponseStreamEvent, hearing: Hearing) -> None:
    match event:
        case (
            PartStartEvent(part=TextPart(content=words))
            | PartDeltaEvent(delta=TextPartDelta(content_delta=words))
        ):
            _say(hearing.text, words)
        case (
            PartStartEvent(part=ThinkingPart(content=words))
            | PartDeltaEvent(delta=ThinkingPartDelta(content_delta=words))
        ):
            _say(hearing.thought, words)
        case PartEndEvent(part=ThinkingPart()):
            hearing.thought_ended()
        case _:
            pass


def _say(say: Callable[[str], None], words: str | None) -> None:
    if words:
        say(words)
