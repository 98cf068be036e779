"""Answers that may be large, made into JSON at once.

FastAPI would check each value again and copy it into plain ones first, which takes many times as long as the JSON
itself. What is given here was checked when it was made.
"""

from functools import cache
from typing import Any

from fastapi import Response
from pydantic import TypeAdapter


def as_json(value: object, shape: Any) -> Response:
    """An answer of this shape, which a route must name as its `response_model` to be described."""
    return Response(_adapter(shape).dump_json(value), media_type="application/json")


@cache
def _adapter(shape: Any) -> TypeAdapter[Any]:
    return TypeAdapter(shape)
