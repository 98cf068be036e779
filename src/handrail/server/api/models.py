"""What every JSON shape of `/api` has in common.

Answers that may be large, made into JSON at once.
"""

from functools import cache
from typing import Any

from fastapi import Response
from pydantic import BaseModel, ConfigDict, TypeAdapter

from handrail.store.values import Position

__all__ = ["Position", "Wire"]


class Wire(BaseModel):
    """A frozen message; unknown fields in what people send are refused, not ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def as_json(value: object, shape: Any) -> Response:
    """An answer of this shape, which a route must name as its `response_model` to be described."""
    return Response(_adapter(shape).dump_json(value), media_type="application/json")


@cache
def _adapter(shape: Any) -> TypeAdapter[Any]:
    return TypeAdapter(shape)
