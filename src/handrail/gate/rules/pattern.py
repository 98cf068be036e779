"""What rules are written in: globs over paths and hosts; commands are command_pattern.py's.

Owns how these are read, and what they fit. Pure: it looks at no file, and does not know what a rule does with a fit
(matching.py). No pattern makes a test slow: there is no backtracking.
"""

from collections.abc import Sequence
from dataclasses import dataclass

STAR = "*"
_LONGEST = 4000
"""Characters of a pattern: more is no pattern, and nobody could read it."""


class BadPattern(Exception):
    """A pattern that cannot be meant; the sentence says why and what to write instead."""


@dataclass(frozen=True, slots=True)
class Glob:
    """Text in which `*` is anything; the pieces are what stands between the stars."""

    pieces: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> "Glob":
        return cls(tuple(text.split(STAR)))

    @property
    def literal(self) -> str | None:
        """The one text it fits; None when it has a star."""
        return self.pieces[0] if len(self.pieces) == 1 else None

    def fits(self, text: str) -> bool:
        if len(self.pieces) == 1:
            return text == self.pieces[0]
        first, *middle, last = self.pieces
        at, end = len(first), len(text) - len(last)
        if at > end or not text.startswith(first) or not text.endswith(last):
            return False
        for piece in middle:  # leftmost is as good as any
            found = text.find(piece, at, end)
            if found < 0:
                return False
            at = found + len(piece)
        return True

    def folded(self) -> "Glob":
        return Glob(tuple(piece.casefold() for piece in self.pieces))


@dataclass(frozen=True, slots=True)
class PathPattern:
    """A glob over whole paths: `*` stays within a name, `**` crosses folders."""

    groups: tuple[tuple[Glob, ...], ...]
    """The names between one `**` and the next."""
    folds: bool
    """Letter case is not told apart."""

    @classmethod
    def of(cls, text: str, root: str | None, home: str, *, folds: bool = False) -> "PathPattern | None":
        """Read a pattern that is relative to `root`; None when it is relative and there is no root. Raises BadPattern."""
        base, names = _anchored(checked(text, "path"), root, home)
        if base is None:
            return None
        groups: list[list[Glob]] = [[Glob((name,)) for name in base.split("/") if name]]
        for name in names:
            if name == "**":
                groups.append([])
            else:
                groups[-1].append(Glob.of(name))
        folded = [[glob.folded() if folds else glob for glob in group] for group in groups]
        return cls(tuple(tuple(group) for group in folded), folds)

    def fits(self, path: str) -> bool:
        """Whether a real, absolute path fits; `a/**` fits `a` too."""
        names = [name for name in (path.casefold() if self.folds else path).split("/") if name]
        first, *rest = self.groups
        if not rest:
            return len(names) == len(first) and _fits_at(first, names, 0)
        *middle, last = rest
        at, end = len(first), len(names) - len(last)
        if at > end or not _fits_at(first, names, 0) or not _fits_at(last, names, end):
            return False
        for group in middle:
            found = next((i for i in range(at, end - len(group) + 1) if _fits_at(group, names, i)), None)
            if found is None:
                return False
            at = found + len(group)
        return True


def host_glob(text: str) -> Glob:
    """Read a host: itself, or `*.` and what its names end with. Raises BadPattern."""
    host = checked(text, "host").casefold().rstrip(".")
    rest = host.removeprefix("*.")
    if not rest or STAR in rest or any(letter in rest for letter in "/ @"):
        raise BadPattern(f"`{text}` is no host: write `example.org`, or `*.example.org` for all below it.")
    return Glob.of(host)


def spell_path(path: str) -> str:
    """A path as a pattern; raises BadPattern where it holds what a pattern would take for a glob."""
    if STAR in path:
        raise BadPattern(f"`{path}` holds a star, so that no pattern fits it alone.")
    return path


def checked(text: str, kind: str) -> str:
    """What any pattern must be. Raises BadPattern."""
    if not text.strip():
        raise BadPattern(f"The {kind} is empty. Write what the rule is about.")
    if len(text) > _LONGEST:
        raise BadPattern(f"The {kind} is longer than {_LONGEST} characters. Write a shorter pattern.")
    if any(not letter.isprintable() for letter in text):
        raise BadPattern(f"The {kind} holds a character that cannot be seen. Remove it.")
    return text.strip()


def _anchored(text: str, root: str | None, home: str) -> tuple[str | None, list[str]]:
    """The literal folder a path pattern starts from, and the names below it."""
    if text == "~" or text.startswith("~/"):
        base, below = home, text[2:]
    elif text.startswith("/"):
        base, below = "/", text[1:]
    else:
        base, below = root, text.removeprefix("./")
    names = [name for name in below.rstrip("/").split("/") if name]
    if any(name in (".", "..") for name in names):
        raise BadPattern(f"`{text}` goes up or stays: name the folder itself, without `.` and `..`.")
    if any("**" in name and name != "**" for name in names):
        raise BadPattern(
            f"`{text}` has a `**` that is not a name of its own: write `src/**` or `src/**/*.py`."
        )
    return base, names


def _fits_at(group: Sequence[Glob], names: Sequence[str], at: int) -> bool:
    return at + len(group) <= len(names) and all(
        glob.fits(name) for glob, name in zip(group, names[at : at + len(group)], strict=True)
    )
