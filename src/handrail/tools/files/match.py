"""Finding a passage in a text, and saying what nearly matched.

Owns exact replacement and the search for near misses. It does not know files, diffs or tools.
"""

from difflib import SequenceMatcher

from handrail.gate.tool import Refusal
from handrail.tools.answer import some
from handrail.tools.files.text import is_crlf, split, to_crlf, to_lf

_LINES_MAX = 20_000
"""Lines looked at for a near miss; the search takes time for each."""
_SHOWN = 6
_ALIKE = 0.6


def replace(text: str, old: str, new: str, path: str, *, every: bool) -> tuple[str, int]:
    """The text with `old` replaced by `new`, and how often. Raises Refusal."""
    old, new = _in_style(text, old, new)
    count = text.count(old)
    if count == 0:
        raise Refusal(f"old_string was not found in {path}. {nearest(text, old)}")
    if count > 1 and not every:
        raise Refusal(
            f"old_string occurs {count} times in {path} ({_where(text, old)}). Add lines around it until it "
            "is the only one, or set replace_all."
        )
    return text.replace(old, new), count


def nearest(text: str, old: str) -> str:
    """A sentence about the lines that come closest to `old`."""
    lines, wanted = split(text)[:_LINES_MAX], split(old)
    at = _spaced_otherwise(lines, wanted)
    if at is not None:
        return _lines(lines, at, len(wanted), "These lines differ only in white space")
    at = _alike(lines, wanted)
    if at is not None:
        return _lines(lines, at, len(wanted), "The closest lines are")
    return "Nothing in it comes close; read the file again before you edit it."


def _in_style(text: str, old: str, new: str) -> tuple[str, str]:
    """The two in the line endings of the text, so that neither a match nor a style is lost."""
    if is_crlf(text):
        return to_crlf(old), to_crlf(new)
    if old in text:
        return old, new
    for style in (to_lf, to_crlf):
        if style(old) in text:
            return style(old), style(new)
    return old, new


def _where(text: str, old: str) -> str:
    numbers: list[str] = []
    at = text.find(old)
    while at >= 0 and len(numbers) < 10:
        numbers.append(str(text.count("\n", 0, at) + 1))
        at = text.find(old, at + len(old))
    return ("lines " if len(numbers) > 1 else "line ") + ", ".join(numbers) + (" …" if at >= 0 else "")


def _spaced_otherwise(lines: list[str], wanted: list[str]) -> int | None:
    bare = ["".join(line.split()) for line in lines]
    sought = ["".join(line.split()) for line in wanted]
    if not any(sought):
        return None
    for at, line in enumerate(bare):
        if line == sought[0] and bare[at : at + len(sought)] == sought:
            return at
    return None


def _alike(lines: list[str], wanted: list[str]) -> int | None:
    """Where the most telling wanted line has its best likeness, shifted to where the passage would begin."""
    index = max(range(len(wanted)), key=lambda number: len(wanted[number].strip()), default=None)
    if index is None:
        return None
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted[index].strip()[:200])
    best, found = _ALIKE, None
    for at, line in enumerate(lines):
        matcher.set_seq1(line.strip()[:200])
        if (
            matcher.real_quick_ratio() > best
            and matcher.quick_ratio() > best
            and (ratio := matcher.ratio()) > best
        ):
            best, found = ratio, at
    return None if found is None else max(0, found - index)


def _lines(lines: list[str], at: int, count: int, intro: str) -> str:
    part = lines[at : at + min(count, _SHOWN)]
    rows = [f"{at + number:>6}→{line.rstrip()}" for number, line in enumerate(part, 1)]
    left_out = min(count, len(lines) - at) - len(part)
    more = [f"       … {some(left_out, 'more line')}"] if left_out > 0 else []
    return "\n".join([f"{intro}:", *rows, *more])
