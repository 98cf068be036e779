"""Encoding of frozen dataclasses as JSON lines, and decoding with type checks.

A message is one line: `{"is": "class_name", ...fields}`, with bytes as base64. The caller passes the known classes.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import functools
import json
import re
import types
import typing
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Mapping


FRAME_MAX = 4 * 1024 * 1024
"""Bytes in one line, for LineBuffer. Bounds the memory that a peer that never sends a newline can make us use."""


class FrameError(ValueError):
    """A line is not a message of this protocol. The error text may be shown to the peer."""


def name_of(kind: type) -> str:
    return re.sub(r"(?<=.)([A-Z])", r"_\1", kind.__name__).lower()


def encode(message: object) -> bytes:
    return json.dumps({"is": name_of(type(message)), **_pack_fields(message)}).encode() + b"\n"


def decode(line: bytes, known: Mapping[str, type]) -> Any:
    """Decode a line and check each field against its declared type. Raises FrameError."""
    try:
        raw: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise FrameError(f"A message is not JSON: {error}") from None
    if not isinstance(raw, dict):
        raise FrameError("A message is not a JSON object.")
    fields = cast("dict[str, Any]", raw)
    kind = known.get(str(fields.pop("is", None)))
    if kind is None:
        raise FrameError("A message is of no known kind.")
    return _unpack(kind, fields)


def _pack_fields(message: Any) -> dict[str, Any]:
    return {field.name: _pack(getattr(message, field.name)) for field in dataclasses.fields(message)}


def _pack(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if dataclasses.is_dataclass(value):
        return _pack_fields(value)
    if isinstance(value, tuple):
        return [_pack(item) for item in cast("tuple[Any, ...]", value)]
    return value


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _unpack(declared: Any, value: Any) -> Any:
    match typing.get_origin(declared), value:
        case (types.UnionType, None):
            unpacked = None
        case (types.UnionType, _):
            unpacked = _unpack(typing.get_args(declared)[0], value)
        case (origin, list()) if origin is tuple:
            unpacked = tuple(_unpack(typing.get_args(declared)[0], item) for item in cast("list[Any]", value))
        case (origin, dict()) if origin is dict:
            unpacked = _unpack_dict(typing.get_args(declared)[1], cast("dict[str, Any]", value))
        case (None, dict()) if dataclasses.is_dataclass(declared):
            unpacked = _unpack_dataclass(cast("type", declared), cast("dict[str, Any]", value))
        case _:
            unpacked = _unpack_plain(declared, value)
    return unpacked


def _unpack_dict(declared: Any, values: dict[str, Any]) -> dict[str, Any]:
    if declared is str and {*map(type, values.values())} <= {str}:  # an environment: many values, one type
        return values
    return {name: _unpack(declared, item) for name, item in values.items()}


def _unpack_plain(declared: Any, value: Any) -> Any:
    if declared is bytes and isinstance(value, str):
        return _unpack_bytes(value)
    if declared is float and type(value) is int:
        return float(value)
    if type(value) is not declared:
        raise FrameError(f"A message holds {type(value).__name__} where {declared} belongs.")
    return value


def _unpack_dataclass(kind: type, fields: dict[str, Any]) -> Any:
    # Unknown fields are ignored: a newer peer with the same protocol version may send more fields.
    hints = _hints(kind)
    known = {name: _unpack(hints[name], value) for name, value in fields.items() if name in hints}
    try:
        return kind(**known)
    except TypeError:
        raise FrameError(f"A message of kind {name_of(kind)!r} lacks a field.") from None


def _unpack_bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        raise FrameError("A message holds bytes that are not base64.") from None
