"""Values of options that are more than a word: lengths of time, JSON, the content of a file.

Owns how they are written, and the sentence when one is not understood. Does not know what they are for.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any, cast

import typer

from handrail.cli.failure import Failure

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
MOST_SECONDS = 315_360_000
"""Ten years: more than anybody means."""
CONTENT_MAX = 16_000_000
"""Bytes of a file's content in an answer."""


def seconds(text: str | None) -> int | None:
    """`90s`, `30m`, `12h`, `7d`, `2w`."""
    if text is None:
        return None
    found = re.fullmatch(r"([0-9]{1,9})([smhdw])", text.strip())
    length = int(found[1]) * _UNITS[found[2]] if found else 0
    if not 0 < length <= MOST_SECONDS:
        raise typer.BadParameter(f"{text!r} is no length of time. Write 90s, 30m, 12h, 7d or 2w.")
    return length


def json_object(text: str | None) -> dict[str, Any] | None:
    """A JSON object, as a tool's input is one."""
    if text is None:
        return None
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise typer.BadParameter(f"The input is not JSON: {error}. Quote it as one word.") from None
    if not isinstance(found, dict):
        raise typer.BadParameter('The input is a JSON object: \'{"command": "git status"}\'.')
    return cast("dict[str, Any]", found)


def content(file: Path | None) -> str | None:
    """The text of a file, or of stdin for `-`. Raises Failure."""
    if file is None:
        return None
    try:
        raw = sys.stdin.buffer.read(CONTENT_MAX + 1) if str(file) == "-" else _read(file)
        text = raw.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"{file} cannot be read as text: {error}. Name a text file with --content.") from None
    if len(raw) > CONTENT_MAX:
        raise Failure(f"{file} is larger than {CONTENT_MAX:,} bytes. Such a file is written by hand.")
    return text


def _read(file: Path) -> bytes:
    with file.expanduser().open("rb") as opened:
        return opened.read(CONTENT_MAX + 1)
