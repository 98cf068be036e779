"""The base of every JSON model of `/api`, and a fast serialiser for large responses."""

import time
from functools import cache
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter
from starlette.responses import Response

from handrail.store.values import Position

__all__ = ["Position", "Wire"]


class Wire(BaseModel):
    """A frozen JSON model. Unknown fields in a request are an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def now_ms() -> int:
    """The current time, in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def as_json(value: object, shape: Any) -> Response:
    """Serialise a large response with pydantic directly, which skips FastAPI's second validation.

    The route must set `response_model` to the same type, for the OpenAPI document.
    """
    return Response(_adapter(shape).dump_json(value), media_type="application/json")


@cache
def _adapter(shape: Any) -> TypeAdapter[Any]:
    return TypeAdapter(shape)
