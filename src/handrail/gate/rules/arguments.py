"""Arguments of forwarded calls as rules match them: flat names, text values, and a glob for each name.

An argument that cannot be compared safely (a list, an object, a long or hidden text) matches no pattern for sure: then
a rule that allows does not match, and one that is stricter asks. Matching takes time linear in the text.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from pydantic import JsonValue

from handrail.gate.rules.patterns import BadPattern, check_text
from handrail.hidden_text import HIDDEN
from handrail.lazy_dataclass import dataclass

ARGUMENTS_MAX = 60
"""Arguments of one call that rules can match. The others count as uncertain."""
VALUE_MAX = 300
"""Characters of a value that rules can match."""
REST = ""
"""The name under which it is noted that there are more arguments."""

Arguments = Sequence[tuple[str, str | None]]
"""Flat names with their text; None for what cannot be compared."""
Fit = Literal["yes", "no", "uncertain"]


def flatten_arguments(arguments: Mapping[str, JsonValue]) -> tuple[tuple[str, str | None], ...]:
    """Names as `a.b` for nested objects. A name that two arguments have is uncertain, in any letter case: some servers
    ignore it, and take the last one."""
    found: dict[str, str | None] = {}
    for name, value in _walk(arguments, ""):
        if len(found) >= ARGUMENTS_MAX and name not in found:
            found[REST] = None
            break
        found[name] = None if name in found or not name else value
    names = Counter(name.casefold() for name in found)
    return tuple((name, value if names[name.casefold()] == 1 else None) for name, value in found.items())


def _walk(values: Mapping[str, JsonValue], prefix: str) -> Iterator[tuple[str, str | None]]:
    for key, value in values.items():
        name = f"{prefix}{key}"
        if len(name) > VALUE_MAX or prefix.count(".") > 10:
            yield REST, None
        elif isinstance(value, dict):
            yield name, None
            yield from _walk(value, f"{name}.")
        else:
            yield name, _text_of(value)


def _text_of(value: JsonValue) -> str | None:
    match value:
        case bool() | None:
            return {True: "true", False: "false", None: "null"}[value]
        case int():
            return str(value) if abs(value) < 10**18 else None
        case float():
            return str(int(value)) if value.is_integer() and abs(value) < 10**15 else repr(value)
        case str() if len(value) <= VALUE_MAX and not HIDDEN.search(value):
            return value
        case _:
            return None


@dataclass(frozen=True, slots=True)
class TextGlob:
    """Text in which `*` matches anything but `/`, and `**` anything."""

    tokens: tuple[str, ...]
    """Single characters, `*` and `**`."""
    folds: bool
    """Ignore letter case and the form in which a letter is encoded."""

    @classmethod
    def of(cls, text: str, *, folds: bool = False) -> "TextGlob":
        """Raises BadPattern."""
        text = check_text(text, "argument") if text else text
        found: list[str] = re.findall(r"\*+|[^*]", _fold(text) if folds else text)
        return cls(tuple(each[:2] for each in found), folds)

    @property
    def is_path(self) -> bool:
        """Whether a star stands for a part of a path."""
        return "/" in self.tokens and not {"*", "**"}.isdisjoint(self.tokens)

    def fits(self, text: str) -> bool:
        """Follows all positions in the pattern at once, so that no text is slow."""
        places = self._skip({0})
        for letter in _fold(text) if self.folds else text:
            places = self._skip({after for at in places for after in self._step(at, letter)})
            if not places:
                return False
        return len(self.tokens) in places

    def _step(self, at: int, letter: str) -> Iterator[int]:
        token = self.tokens[at] if at < len(self.tokens) else ""
        if token == "**" or (token == "*" and letter != "/"):
            yield at
        elif token == letter and token != "*":
            yield at + 1

    def _skip(self, places: set[int]) -> set[int]:
        """Also the positions behind stars, which may match nothing."""
        for place in sorted(places):
            at = place
            while at < len(self.tokens) and self.tokens[at] in ("*", "**"):
                at += 1
                places.add(at)
        return places


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def fit_arguments(globs: Mapping[str, TextGlob], arguments: Arguments) -> Fit:
    """Whether all named arguments are there and match."""
    values = dict(arguments)
    fits = [_fit(glob, name, values) for name, glob in globs.items()]
    return "no" if "no" in fits else "uncertain" if "uncertain" in fits else "yes"


def _fit(glob: TextGlob, name: str, values: Mapping[str, str | None]) -> Fit:
    if name not in values:
        alike = glob.folds and any(each.casefold() == name.casefold() for each in values)
        return "uncertain" if alike or REST in values else "no"
    value = values[name]
    if value is None or (glob.is_path and not glob.folds and _may_climb(value)):
        return "uncertain"
    return "yes" if glob.fits(value) else "no"


def _may_climb(value: str) -> bool:
    """Whether a server may read the text as a path or URL that leaves what a star stands for: `acme/../other`."""
    names = re.sub(r"^[a-z]+://", "", value).split("/")
    return not {"", ".", ".."}.isdisjoint(names[1:-1] + names[-1:]) or "\\" in value or "%" in value


def check_arguments(arguments: Mapping[str, str]) -> None:
    """Raises BadPattern."""
    if len(arguments) > ARGUMENTS_MAX:
        raise BadPattern(f"The rule names more than {ARGUMENTS_MAX} arguments. Name the ones that matter.")
    for name in arguments:
        check_text(name, "name of an argument")
