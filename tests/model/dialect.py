"""What the server needs of a provider's dialect. Knows none of them, nor HTTP."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.model.script import Said, Turn

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How one provider is spoken."""

    name: str
    said: Callable[[Json], Sequence[Said]]
    """The conversation of a request."""
    has_tools: Callable[[Json], bool]
    streams: Callable[[Json], bool]
    problem: Callable[[Json], str | None]
    """Why the provider would refuse this request."""
    stream: Callable[[Turn, str], Iterator[str]]
    """The events of an answer by the model of this name; where the turn hangs, all but the end of it."""
    whole: Callable[[Turn, str], Json]
    """The same in one piece."""
    error: Callable[[int, str], Json]
    """A refusal with this status."""
    overloaded: str
    """An error within a stream."""


def event(kind: str, **values: Any) -> str:
    """A server-sent event whose type stands in it, too."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **values})}\n\n"


def data(values: Json) -> str:
    return f"data: {json.dumps(values)}\n\n"
