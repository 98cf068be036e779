"""Applying hunks to a text: all of them, or none.

Owns where each hunk belongs. A line number that is right settles it; a wrong one is only a hint, and the
lines themselves must then occur exactly once. It does not read notations (patch.py).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from handrail.gate.tool import Refusal
from handrail.tools.files.match import nearest
from handrail.tools.files.patch import Hunk, Row
from handrail.tools.files.text import is_crlf, split


@dataclass(frozen=True, slots=True)
class _Change:
    hunk: Hunk
    at: int
    end: int
    new: list[str]


def apply(text: str, hunks: list[Hunk], path: str) -> str:
    """The text after every hunk. Raises Refusal, which names the hunk that does not fit."""
    hunks = _in_style(text, hunks)
    says_ends = any(not row.ends for hunk in hunks for row in hunk.rows)
    bare = bool(text) and not text.endswith("\n") and not says_ends
    newline = "\r\n" if is_crlf(text) else "\n"
    lines = split(text + newline if bare else text)
    changed = "".join(_merged(lines, _changes(lines, hunks, path)))
    return changed.removesuffix(newline) if bare else changed


def _in_style(text: str, hunks: list[Hunk]) -> list[Hunk]:
    """The hunks with the line endings of the text, where theirs all differ from it."""
    old = [row.text.endswith("\r") for hunk in hunks for row in hunk.old if row.ends]
    if is_crlf(text) and not any(row.text.endswith("\r") for hunk in hunks for row in hunk.rows):
        return [_restyled(hunk, lambda line: line + "\r") for hunk in hunks]
    if "\r" not in text and old and all(old):
        return [_restyled(hunk, lambda line: line.removesuffix("\r")) for hunk in hunks]
    return hunks


def _restyled(hunk: Hunk, style: Callable[[str], str]) -> Hunk:
    return replace(
        hunk, rows=tuple(replace(row, text=style(row.text)) if row.ends else row for row in hunk.rows)
    )


def _changes(lines: list[str], hunks: list[Hunk], path: str) -> list[_Change]:
    changes: list[_Change] = []
    drift = 0
    for hunk in hunks:
        old = [_line(row) for row in hunk.old]
        at = _locate(lines, hunk, old, drift, path)
        if hunk.start is not None and old:
            drift = at - (hunk.start - 1)
        changes.append(_Change(hunk, at, at + len(old), [_line(row) for row in hunk.new]))
    return sorted(changes, key=lambda change: (change.at, change.end))


def _line(row: Row) -> str:
    return row.text + "\n" if row.ends else row.text


def _locate(lines: list[str], hunk: Hunk, old: list[str], drift: int, path: str) -> int:
    if not old:
        return _insertion(lines, hunk, drift, path)
    if hunk.start is not None:
        stated = hunk.start - 1 + drift
        if stated >= 0 and lines[stated : stated + len(old)] == old:
            return stated
    found = [at for at, line in enumerate(lines) if line == old[0] and lines[at : at + len(old)] == old]
    if not found:
        raise Refusal(
            f"{hunk.name} does not match {path}, so nothing was changed. {nearest(''.join(lines), ''.join(old))}"
        )
    if len(found) > 1:
        numbers = ", ".join(str(at + 1) for at in found[:10])
        raise Refusal(
            f"{hunk.name} matches {path} in {len(found)} places (lines {numbers}), so nothing was changed. "
            "Add lines around it until it matches once, or give its true line number."
        )
    return found[0]


def _insertion(lines: list[str], hunk: Hunk, drift: int, path: str) -> int:
    """Where lines go that replace none: only an empty text or a line number can tell."""
    if not lines:
        return 0
    at = None if hunk.start is None else hunk.start + drift
    if at is None or not 0 <= at <= len(lines):
        raise Refusal(
            f"{hunk.name} only adds lines and does not say where in {path}. Give it a line of context. "
            "Nothing was changed."
        )
    return at


def _merged(lines: list[str], changes: list[_Change]) -> list[str]:
    merged: list[str] = []
    done = 0
    last: Hunk | None = None
    for change in changes:
        if change.at < done and last is not None:
            raise Refusal(
                f"{last.name} and {change.hunk.name} change the same lines, so nothing was changed. Join them into one."
            )
        merged += lines[done : change.at] + change.new
        done, last = change.end, change.hunk
    return merged + lines[done:]
