"""The model client: one streamed request with retries, and the classification of provider errors.

Cancellation at any moment closes the connection; nothing here catches it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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

from handrail.lazy_dataclass import dataclass
from handrail.own_agent.models.api_keys import Access, redact_url
from handrail.own_agent.models.http_stream import RetryPolicy, closing_responses
from handrail.own_agent.models.model import Choice, ModelError, StreamListener
from handrail.own_agent.models.providers import ProviderModel

Redact = Callable[[str], str]
"""Redacts keys in a text."""
QUOTED = 500
"""Characters quoted from a provider's error: some send a whole page."""
TOO_LARGE = 413
SOON = {408, 409, 425, 429}
FAILED = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """The request should be retried."""

    why: str
    after: float | None = None
    """Delay that the provider asked for, in seconds."""
    unreached: bool = False
    """The server could not be reached."""


class Interrupted(Exception):
    """The stream ended before the response was complete."""


BROKE = "The connection to {who} broke off"
TRANSIENT: tuple[tuple[type[Exception], str], ...] = (
    (wrong.ModelRateLimitError, "{who} asks for a pause: its rate limit is reached"),
    (wrong.ModelUnavailableError, "{who} is overloaded"),
    (wrong.ModelServerError, "{who} failed: {message}"),
    (wrong.ModelTimeoutError, "{who} went silent"),
    (wrong.ModelConnectionError, BROKE),
    (httpx2.TransportError, BROKE),
    (Interrupted, BROKE),
    (wrong.UnexpectedModelBehavior, "{who} gave an answer that makes no sense: {message}"),
)
"""Transient errors and their messages; the first match counts."""


def classify_error(
    fault: Exception, choice: Choice, who: str, address: str, hidden: Redact
) -> Retry | ModelError:
    """Classify an error as transient or final, with a message about the provider that holds no key."""
    message = _message(fault, hidden)
    if isinstance(fault, wrong.ModelConnectionError) and fault.phase in {"connect", "pool"}:
        return Retry(why=f"{who} could not be reached at {address}", unreached=True)
    after = fault.retry_after if isinstance(fault, wrong.ModelAPIError) else None
    for kind, sentence in TRANSIENT:
        if isinstance(fault, kind):
            return Retry(why=sentence.format(who=who, message=message).rstrip("."), after=after)
    if isinstance(fault, wrong.ModelRequestRejectedError | wrong.ModelQuotaExceededError):
        return _rejection(fault, choice, who, message)
    if _is_transient(fault):
        return Retry(why=f"{who} failed: {message}".rstrip("."), after=after)
    return ModelError(f"{who} could not be asked: {message}", too_long=_status(fault) == TOO_LARGE)


def _is_transient(fault: Exception) -> bool:
    """Whether the HTTP status, or a failure inside the stream, suggests a transient error."""
    status = _status(fault)
    return (status is not None and (status in SOON or status >= FAILED)) or (
        isinstance(fault, wrong.ModelAPIError) and fault.in_stream
    )


def _rejection(fault: wrong.ModelAPIError, choice: Choice, who: str, message: str) -> ModelError:
    """The final error of a rejected request."""
    match fault:
        case wrong.ModelContextWindowExceededError():
            return ModelError(f"The conversation is too long for {choice}: {message}", too_long=True)
        case wrong.ModelAuthenticationError():
            sentence = f"{who} refused the key: {message} Check it, or set another: `handrail keys set {choice.provider}`."
            return ModelError(sentence, login=True)
        case wrong.ModelNotFoundError():
            return ModelError(f"{who} has no model “{choice.name}”, or not for this key: {message}")
        case wrong.ModelQuotaExceededError():
            return ModelError(f"{who} wants to be paid first: {message}")
        case _:
            too_long = _status(fault) == TOO_LARGE
            return ModelError(f"{who} refused the request: {message}", too_long=too_long)


def _status(fault: Exception) -> int | None:
    return fault.status_code if isinstance(fault, wrong.ModelHTTPError) else None


def _message(fault: Exception, hidden: Redact) -> str:
    """The provider's own error message as a sentence, else the exception's text."""
    body: Any = fault.body if isinstance(fault, wrong.ModelAPIError) else None
    for _ in range(2):
        if isinstance(body, dict):
            inner = cast("dict[str, Any]", body)
            body = inner.get("message") or inner.get("error")
    # Redact before shortening: half a key would not be recognised.
    text = _short(hidden(body if isinstance(body, str) and body else str(fault)))
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= QUOTED else f"{line[:QUOTED]}…"


class ModelClient:
    """A client for one model with its settings."""

    def __init__(
        self,
        choice: Choice,
        way: Access,
        spoken: ProviderModel,
        context: int,
        policy: RetryPolicy,
        hidden: Callable[[str], str],
    ) -> None:
        self._choice, self._way, self._spoken, self._context = choice, way, spoken, context
        self._policy, self._hidden = policy, hidden

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
        self, messages: Sequence[ModelMessage], tools: Sequence[ToolDefinition], listener: StreamListener
    ) -> ModelResponse:
        tried = 0
        while True:
            tried += 1
            try:
                return await self._once(messages, tools, listener)
            except Exception as fault:
                seconds, why = self._pause(fault, tried)
            listener.again(why, seconds)
            await anyio.sleep(seconds)

    def cost(self, response: ModelResponse) -> Decimal | None:
        try:
            return response.cost().total_price
        except (LookupError, ValueError, AssertionError):
            return None

    async def _once(
        self, messages: Sequence[ModelMessage], tools: Sequence[ToolDefinition], listener: StreamListener
    ) -> ModelResponse:
        response = model_request_stream(
            self._spoken.model,
            messages,
            model_settings=self._spoken.settings,
            model_request_parameters=ModelRequestParameters(function_tools=list(tools)),
            instrument=False,
        )
        async with closing_responses(self._stall), response as stream:
            async for event in stream:
                _forward(event, listener)
            answer = stream.get()
        if not self._is_complete(answer):
            raise Interrupted
        return answer

    @property
    def _stall(self) -> float:
        alive = self._choice.provider == "anthropic"
        return self._policy.stall if alive else self._policy.long_stall

    def _is_complete(self, answer: ModelResponse) -> bool:
        """Whether the response is complete. Providers send a finish reason; compatible servers may not."""
        ended = answer.finish_reason is not None or (self._way.own and bool(answer.parts))
        return answer.state == "complete" and ended

    def _pause(self, fault: Exception, tried: int) -> tuple[float, str]:
        """The delay before the next try, and the reason. Raises ModelError if there is no next try."""
        address = redact_url(self._spoken.model.base_url or "")
        verdict = classify_error(fault, self._choice, self._way.title, address, self._hidden)
        if isinstance(verdict, ModelError):
            raise ModelError(
                self._hidden(verdict.sentence), login=verdict.login, too_long=verdict.too_long
            ) from None
        why = self._hidden(verdict.why)
        if tried >= (self._policy.unreached if verdict.unreached else self._policy.tries):
            raise ModelError(f"{why}. It was asked {tried} times.") from None
        if verdict.after is not None and verdict.after > self._policy.told:
            raise ModelError(f"{why}, of {verdict.after / 60:.0f} minutes. Try again then.") from None
        return self._delay(verdict, tried), why

    def _delay(self, verdict: Retry, tried: int) -> float:
        return self._policy.wait(tried) if verdict.after is None else verdict.after


def _forward(event: ModelResponseStreamEvent, listener: StreamListener) -> None:
    match event:
        case (
            PartStartEvent(part=TextPart(content=words))
            | PartDeltaEvent(delta=TextPartDelta(content_delta=words))
        ):
            _forward_text(listener.text, words)
        case (
            PartStartEvent(part=ThinkingPart(content=words))
            | PartDeltaEvent(delta=ThinkingPartDelta(content_delta=words))
        ):
            _forward_text(listener.thought, words)
        case PartEndEvent(part=ThinkingPart()):
            listener.thought_ended()
        case _:
            pass


def _forward_text(receive: Callable[[str], None], words: str | None) -> None:
    if words:
        receive(words)
