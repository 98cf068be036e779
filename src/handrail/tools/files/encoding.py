"""Decode and encode file contents without loss, split lines, detect line endings.

Bytes that are not UTF-8 survive editing as lone surrogates, and are displayed as escapes.
"""

import re

BOM = "\ufeff"

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_RAW_LINE = re.compile(rb"[^\n]*\n|[^\n]+")


def decode(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def shown(raw: bytes) -> str:
    """Text for display and JSON: bytes that are not UTF-8 as `\\xNN`."""
    return raw.decode("utf-8", "backslashreplace")


def is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def split(text: str) -> list[str]:
    """Lines with their endings. Only a newline ends a line, unlike in `str.splitlines`."""
    return _LINE.findall(text)


def split_raw(raw: bytes) -> list[bytes]:
    return _RAW_LINE.findall(raw)


def is_crlf(text: str) -> bool:
    """Whether every line ending is CR LF, and there is at least one."""
    return 0 < text.count("\n") == text.count("\r\n")


def is_mixed(text: str) -> bool:
    return 0 < text.count("\r\n") < text.count("\n")


def to_lf(text: str) -> str:
    return text.replace("\r\n", "\n")


def to_crlf(text: str) -> str:
    return to_lf(text).replace("\n", "\r\n")
