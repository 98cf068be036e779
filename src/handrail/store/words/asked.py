"""What a person types, as a question to the index.

Pure. People type plain words: nothing they type is an operator. All words must be there; the last one may be unfinished.
"""

import hashlib
import re

_WORDS = re.compile(r"\w+")
_UNFINISHED = 2
"""Letters below which a word is not taken for the beginning of others: it would be that of too many."""
WORDS_MAX = 20
"""Bounds what one question may cost."""
SIDE_BY_SIDE_MAX = 8
"""Words that are sought side by side: the more, the dearer, and the surer they are found by all of them alone."""


def words_of(typed: str) -> list[str]:
    return _WORDS.findall(typed)[:WORDS_MAX]


def all_of(words: list[str]) -> str:
    """Texts that hold every word."""
    return " AND ".join([*(_quoted(word) for word in words[:-1]), _last(words[-1])])


def side_by_side(words: list[str]) -> str:
    """Texts that hold the words just as they were typed."""
    return _quoted(" ".join(words)) + ("*" if len(words[-1]) >= _UNFINISHED else "")


def room_of(workspace: str | None) -> str:
    """A word that stands for a workspace."""
    return f"w{hashlib.sha256((workspace or '').encode('utf-8', 'replace')).hexdigest()[:16]}"


def question(column: str, asked: str, workspace: str | None) -> str:
    """In one column, in one workspace or in all."""
    inside = f'{{room}} : "{room_of(workspace)}" AND ' if workspace is not None else ""
    return f"{inside}{{{column}}} : ({asked})"


def _last(word: str) -> str:
    return _quoted(word) + ("*" if len(word) >= _UNFINISHED else "")


def _quoted(words: str) -> str:
    return f'"{words}"'  # \w holds no quotation mark
