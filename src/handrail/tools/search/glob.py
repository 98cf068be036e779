"""Globs as regular expressions: `*`, `?`, `[a-z]`, `{a,b}` and `**` for any folders.

Owns the notation. It does not know files.
"""

import re
from functools import lru_cache


class Glob:
    """A pattern for paths: with a slash for the whole path, without one for the name alone."""

    def __init__(self, pattern: str) -> None:
        self._whole = "/" in pattern.removeprefix("./")
        self._regex = compiled(pattern.removeprefix("./").lstrip("/"))

    def matches(self, path: str) -> bool:
        return self._regex.fullmatch(path if self._whole else path.rpartition("/")[2]) is not None


@lru_cache(256)
def compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(translate(pattern), re.DOTALL)
    except re.error:
        return re.compile(re.escape(pattern))


def translate(pattern: str) -> str:
    """A regular expression for the whole of a path."""
    braces = pattern.count("{") == pattern.count("}")
    parts: list[str] = []
    depth = 0
    for token in _TOKENS.finditer(pattern):
        kind, text = token.lastgroup or "", token.group()
        if kind == "brace":
            inside = braces and (depth > 0 or text == "{")
            depth += braces * ((text == "{") - (text == "}"))
            parts.append(_BRACES[text] if inside else re.escape(text))
        else:
            parts.append(_piece(kind, text))
    return "".join(parts)


_TOKENS = re.compile(
    r"""
    (?P<folders> (?:^|(?<=/)) \*\*/ )
    | (?P<all> (?:^|(?<=/)) \*\*$ )
    | (?P<some> \*+ )
    | (?P<one> \? )
    | (?P<set> \[ [!^]? \]? [^]]* \] )
    | (?P<brace> [{},] )
    | (?P<escaped> \\. )
    | (?P<plain> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_BRACES = {"{": "(?:", ",": "|", "}": ")"}
_FIXED = {"folders": "(?:.*/)?", "all": ".+", "some": "[^/]*", "one": "[^/]"}


def _piece(kind: str, text: str) -> str:
    match kind:
        case "set":
            return _set(text[1:-1])
        case "escaped":
            return re.escape(text[1])
        case "plain":
            return re.escape(text)
        case _:
            return _FIXED[kind]


def _set(inner: str) -> str:
    negated = inner[:1] in ("!", "^")
    chosen = re.sub(r"([\\\[\]^&~|])", r"\\\1", inner[1:] if negated else inner)
    return f"(?!/)[{'^' if negated else ''}{chosen}]"
