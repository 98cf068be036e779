"""The JSON-RPC messages in the lines of an agent's output.

Owns the longest line and the deepest nesting that are accepted. Does not know descriptors, nor what a message means.
"""

import json
import math

from pydantic import JsonValue

from handrail.store.values import Json

MESSAGE_MAX = 32 << 20
"""Bytes of one message; bounds what an agent can make us hold, a flood without any newline included."""
DEPTH_MAX = 100
"""Of a message's nesting: what is deeper could not be written down again."""
SHOWN_MAX = 200
"""Characters shown of a line that is no message."""


def message_in(line: bytes) -> Json | None:
    """The message in a line; None where it is none. What we could not answer or match is none either."""
    try:
        # As text: given bytes, `loads` lets halves of characters through, and guesses at encodings.
        message: JsonValue = json.loads(
            line.decode(errors="replace"), parse_constant=lambda _: None, parse_float=_finite
        )
        if b"\\u" in line or line.count(b"[") + line.count(b"{") > DEPTH_MAX:
            message = _sound(message, DEPTH_MAX)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict):
        return None
    found: Json = message
    is_sane = isinstance(found.get("method", ""), str) and isinstance(found.get("id"), str | int | None)
    return found if is_sane and ("method" in found or "id" in found) else None


def _finite(digits: str) -> float | None:
    """`1e999` is JSON, and yet no number that could be written down as JSON again."""
    number = float(digits)
    return number if math.isfinite(number) else None


def _sound(value: JsonValue, depth: int) -> JsonValue:
    """The value without halves of characters, which no database takes. Raises ValueError where it is too deep."""
    match value:
        case str():
            return value.encode(errors="replace").decode()
        case dict() | list() if depth == 0:
            raise ValueError
        case dict():
            return {str(_sound(key, 1)): _sound(inner, depth - 1) for key, inner in value.items()}
        case list():
            return [_sound(inner, depth - 1) for inner in value]
        case _:
            return value


def line_of(message: object) -> bytes:
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode(errors="replace") + b"\n"


def shown(line: bytes) -> str:
    """The beginning of a line, for a person."""
    text = line[: 4 * SHOWN_MAX].decode(errors="replace")
    clean = "".join(char if char.isprintable() else " " for char in text).strip()
    return clean if len(clean) <= SHOWN_MAX else f"{clean[:SHOWN_MAX]}…"
