"""Output of a terminal as JSON can carry it: text, or bytes beside it, with nothing lost.

Owns what becomes of bytes that are no text, and that a shell's nonce is never shown. It does not read output
(terminal/output/buffer.py), and does not know any tool.
"""

import base64
from dataclasses import dataclass

from pydantic import JsonValue

from handrail.store.value import Result
from handrail.terminal.output.tail import Tail

_LONGEST_CHARACTER = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw:
    """Bytes as text, exactly: `text` encodes to them, unless `base64` is there, which then holds them."""

    text: str
    base64: str | None
    length: int
    """Bytes told; an unfinished character at the end is left for the next reading."""


def raw(data: bytes, *, final: bool) -> Raw:
    """`final` when nothing can come after, so that an unfinished character will stay one."""
    whole = data if final else data[: len(data) - _unfinished(data)]
    try:
        return Raw(text=whole.decode(), base64=None, length=len(whole))
    except UnicodeDecodeError:
        exact = base64.b64encode(data).decode()
        return Raw(text=data.decode(errors="replace"), base64=exact, length=len(data))


def mask(data: bytes, start: int, tail: Tail, nonce: str) -> bytes:
    """The same bytes, read at `start`, with the nonce of the shell's marks blotted out, also where it was cut."""
    if not nonce:
        return data
    secret, reach = nonce.encode(), len(nonce) - 1
    before = _read(tail, start - min(reach, start), start)
    after = _read(tail, start + len(data), start + len(data) + reach)
    whole = (before + data + after).replace(secret, b"x" * len(secret))
    return whole[len(before) : len(before) + len(data)]


def blot(result: Result, nonce: str) -> Result:
    """The same without the nonce, where a program printed it as text. It is no secret to who runs that program."""
    if not nonce or (nonce not in result.text and nonce not in str(result.data)):
        return result
    told = {name: _without(value, nonce) for name, value in result.data.items()}
    return Result(text=result.text.replace(nonce, "x" * len(nonce)), data=told)


def _without(value: JsonValue, nonce: str) -> JsonValue:
    match value:
        case str():
            return value.replace(nonce, "x" * len(nonce))
        case list():
            return [_without(item, nonce) for item in value]
        case dict():
            return {name: _without(item, nonce) for name, item in value.items()}
        case _:
            return value


def _unfinished(data: bytes) -> int:
    """How many bytes at the end begin a character that is not all there."""
    for back in range(1, min(_LONGEST_CHARACTER, len(data) + 1)):
        byte = data[-back]
        if byte & 0xC0 == 0x80:
            continue
        need = 2 if byte & 0xE0 == 0xC0 else 3 if byte & 0xF0 == 0xE0 else 4 if byte & 0xF8 == 0xF0 else 1
        return back if need > back else 0
    return 0


def _read(tail: Tail, start: int, until: int) -> bytes:
    data, following = tail.read(start, until - start) if until > start else (b"", start)
    return data if following - len(data) == start else b""
