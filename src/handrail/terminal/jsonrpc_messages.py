"""Framing of JSON-RPC messages: one message per line of a program's output.

Bounds the length of a line and the depth of its nesting. It does not know pipes or methods.
"""

import json
import math

from pydantic import JsonValue

from handrail.store.values import Json

MESSAGE_MAX = 32 << 20
"""Bytes of one message; bounds the memory that a program can take, also with output that has no newline."""
DEPTH_MAX = 100
"""Levels of nesting in a message: deeper values could not be serialised again."""
SHOWN_MAX = 200
"""Characters shown of a line that is not a message."""


def parse_message(line: bytes) -> Json | None:
    """Parse the message in a line; None if it is invalid, or has no usable method or id."""
    try:
        # Decoded first: given bytes, `loads` accepts lone surrogates and guesses the encoding.
        message: JsonValue = json.loads(
            line.decode(errors="replace"), parse_constant=lambda _: None, parse_float=_parse_finite
        )
        if b"\\u" in line or line.count(b"[") + line.count(b"{") > DEPTH_MAX:
            message = _sanitize(message, DEPTH_MAX)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict):
        return None
    parsed: Json = message
    is_valid = isinstance(parsed.get("method", ""), str) and isinstance(parsed.get("id"), str | int | None)
    return parsed if is_valid and ("method" in parsed or "id" in parsed) else None


def _parse_finite(digits: str) -> float | None:
    """None for infinity: `1e999` is valid JSON, but its value cannot be written as JSON again."""
    number = float(digits)
    return number if math.isfinite(number) else None


def _sanitize(value: JsonValue, depth: int) -> JsonValue:
    """Replace lone surrogates, which SQLite refuses. Raises ValueError if the value is nested too deeply."""
    match value:
        case str():
            return value.encode(errors="replace").decode()
        case dict() | list() if depth == 0:
            raise ValueError
        case dict():
            return {str(_sanitize(key, 1)): _sanitize(inner, depth - 1) for key, inner in value.items()}
        case list():
            return [_sanitize(inner, depth - 1) for inner in value]
        case _:
            return value


def encode_message(message: object) -> bytes:
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode(errors="replace") + b"\n"


def excerpt_line(line: bytes) -> str:
    """The printable beginning of a line, for an error message."""
    text = line[: 4 * SHOWN_MAX].decode(errors="replace")
    clean = "".join(char if char.isprintable() else " " for char in text).strip()
    return clean if len(clean) <= SHOWN_MAX else f"{clean[:SHOWN_MAX]}…"
