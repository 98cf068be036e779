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
    from collections.abc import Callable, Mapping

    Unpack = Callable[[Any], Any]
    """Converts a value of a message to its declared type. Raises FrameError."""


FRAME_MAX = 4 * 1024 * 1024
"""Bytes in one line, for LineBuffer. Bounds the memory that a peer that never sends a newline can make us use."""


class FrameError(ValueError):
    """A line is not a message of this protocol. The error text may be shown to the peer."""


@functools.cache
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
    return _unpack_fields(kind, fields)


_PLAIN = frozenset((str, int, float, bool, dict, type(None)))
"""Types of values that JSON holds as they are. A dict in a message is an environment."""


@functools.cache
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


def _pack_fields(message: Any) -> dict[str, Any]:
    fields = {name: getattr(message, name) for name in _field_names(message.__class__)}
    return {name: value if type(value) in _PLAIN else _pack(value) for name, value in fields.items()}


def _pack(value: Any) -> Any:
    if type(value) in _PLAIN:
        return value
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, tuple):
        return [_pack(item) for item in cast("tuple[Any, ...]", value)]
    return _pack_fields(value) if dataclasses.is_dataclass(value) else value


def _unpack_fields(kind: type, fields: dict[str, Any]) -> Any:
    # Unknown fields are ignored: a newer peer with the same protocol version may send more fields.
    unpacks = _unpacks_of(kind)
    known = {name: unpacks[name](value) for name, value in fields.items() if name in unpacks}
    try:
        return kind(**known)
    except TypeError:
        raise FrameError(f"A message of kind {name_of(kind)!r} lacks a field.") from None


@functools.cache
def _unpacks_of(kind: type) -> dict[str, Unpack]:
    """For each field, how its value is converted. Looking at the types for every message would cost more than the rest."""
    return {name: _unpack_to(declared) for name, declared in typing.get_type_hints(kind).items()}


def _unpack_to(declared: Any) -> Unpack:
    origin, arguments = typing.get_origin(declared), typing.get_args(declared)
    if origin is types.UnionType:
        return _unpack_optional(_unpack_to(arguments[0]))
    if origin is tuple:
        return _unpack_tuple(declared, _unpack_to(arguments[0]))
    if origin is dict:
        return _unpack_dict(declared, arguments[1])
    if dataclasses.is_dataclass(declared):
        return _unpack_dataclass(cast("type", declared))
    return _unpack_bytes if declared is bytes else _unpack_plain(declared)


def _unpack_optional(unpack: Unpack) -> Unpack:
    return lambda value: None if value is None else unpack(value)


def _unpack_tuple(declared: Any, unpack: Unpack) -> Unpack:
    def unpack_items(value: Any) -> Any:
        if type(value) is not list:
            raise _wrong_type(declared, value)
        return tuple([unpack(item) for item in cast("list[Any]", value)])

    return unpack_items


def _unpack_dict(declared: Any, item_type: Any) -> Unpack:
    unpack = _unpack_to(item_type)

    def unpack_items(value: Any) -> Any:
        if type(value) is not dict:
            raise _wrong_type(declared, value)
        values = cast("dict[str, Any]", value)
        if item_type is str and {*map(type, values.values())} <= {
            str
        }:  # an environment: many values, one type
            return values
        return {name: unpack(item) for name, item in values.items()}

    return unpack_items


def _unpack_dataclass(kind: type) -> Unpack:
    def unpack_message(value: Any) -> Any:
        if type(value) is not dict:
            raise _wrong_type(kind, value)
        return _unpack_fields(kind, cast("dict[str, Any]", value))

    return unpack_message


def _unpack_plain(declared: Any) -> Unpack:
    def check(value: Any) -> Any:
        if type(value) is declared:
            return value
        if declared is float and type(value) is int:
            return float(value)
        raise _wrong_type(declared, value)

    return check


def _unpack_bytes(value: Any) -> bytes:
    if not isinstance(value, str):
        raise _wrong_type(bytes, value)
    try:
        return base64.b64decode(value, validate=True)
    except (ValueError, binascii.Error):
        raise FrameError("A message holds bytes that are not base64.") from None


def _wrong_type(declared: Any, value: Any) -> FrameError:
    return FrameError(f"A message holds {type(value).__name__} where {declared} belongs.")
