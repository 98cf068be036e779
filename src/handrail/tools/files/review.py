"""A person's review of a proposed change: hunks kept, kept in part, rejected or edited, and comments.

Compares the proposal with the content the person left in the editor. Also converts file bytes to editor text
and back without loss.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Literal

from handrail.gate.tool import Refusal
from handrail.lazy_dataclass import dataclass
from handrail.store.values import Comment, Json
from handrail.tools.files.diff import Anchored, Span, changed, unified
from handrail.tools.files.encoding import BOM, decode, encode, shown, split_raw
from handrail.tools.results import count_text

Fate = Literal["kept", "partly", "rejected", "edited"]
"""partly: some of its changed lines are kept, the others are as they were, and no line is the person's own."""
_Lines = Sequence[bytes]
_PARTLY_MAX = 20_000
"""Lines of a longer hunk are not compared one by one, which takes time in proportion to their square."""
_BEGINNING = 50
"""Lines compared first to find where a file continues after an edited hunk; comparing all is slow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """A comment with the text of its line."""

    line: int
    on: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """The result of a review."""

    fates: tuple[Fate, ...]
    """One per hunk of the proposal."""
    patch: str
    """Diff from the proposed to the written content; empty when they are equal."""
    writes: bool
    """Anything is written at all."""
    remarks: tuple[Remark, ...] = ()

    @property
    def data(self) -> Json:
        return {
            "hunks": len(self.fates),
            "kept": self.fates.count("kept"),
            "partly": self.fates.count("partly"),
            "rejected": self.fates.count("rejected"),
            "edited": self.fates.count("edited"),
            "patch": self.patch,
            "comments": [
                {"line": remark.line, "on": remark.on, "text": remark.text} for remark in self.remarks
            ],
        }

    @property
    def words(self) -> str:
        """The review as text for the model."""
        return "\n".join([self._verdict, *self._difference, *self._comment_lines])

    @property
    def _verdict(self) -> str:
        if not self.writes:
            return "The person reviewed this change and rejected all of it: nothing was written."
        if not self.patch:
            return "The person reviewed this change and kept all of it."
        if len(self.fates) == 1:
            return f"The person reviewed this change and {_alone(self.fates[0])}."
        return f"The person {_counted(self.fates)}."

    @property
    def _difference(self) -> list[str]:
        if not self.patch or not self.writes:
            return []
        return ["What was written differs from your proposal like this:", self.patch.rstrip("\n")]

    @property
    def _comment_lines(self) -> list[str]:
        if not self.remarks:
            return []
        return [
            "They say, about lines of your proposal:",
            *(_format_remark(remark) for remark in self.remarks),
        ]


def review(
    path: str,
    before: bytes | None,
    proposed: bytes | None,
    final: bytes | None,
    comments: Sequence[Comment] = (),
) -> Review:
    """Compare the proposal with the content the person left; None means that there is no file."""
    old, new, left = (split_raw(raw or b"") for raw in (before, proposed, final))
    return Review(
        fates=tuple(fates(old, new, left)),
        patch=unified(path, proposed, final).text,
        writes=final != before,
        remarks=tuple(_remark(comment, new or old) for comment in comments),
    )


def fates(old: _Lines, new: _Lines, left: _Lines) -> list[Fate]:
    """Classify each hunk between `old` and `new` by the content that was left."""
    spans = changed(old, new)
    return _in_order(spans, old, new, left) or _mapped(spans, old, new, left)


def _in_order(spans: Sequence[Span], old: _Lines, new: _Lines, left: _Lines) -> list[Fate] | None:
    """Classify hunk by hunk, using the unchanged lines between them; None if those changed too."""
    found: list[Fate] = []
    at = spans[0].new[0] if spans else 0
    if left[:at] != new[:at]:
        return None
    for number, span in enumerate(spans):
        is_last = number + 1 == len(spans)
        between = new[span.new[1] : None if is_last else spans[number + 1].new[0]]
        before, proposed = old[slice(*span.old)], new[slice(*span.new)]
        fate, end = _next(before, proposed, between, left, at, is_last)
        if end is None:
            return None
        found.append(_refine(fate, before, proposed, left[at:end]))
        at = end + len(between)
    return found


def _next(
    before: _Lines, proposed: _Lines, between: _Lines, left: _Lines, at: int, is_last: bool
) -> tuple[Fate, int | None]:
    """Classify the hunk at this position, and find where it ends."""
    choices: tuple[tuple[Fate, _Lines], ...] = (("kept", proposed), ("rejected", before))
    for fate, part in choices:
        end = at + len(part)
        if left[at:end] == part and _follows(between, left, end, is_last):
            return fate, end
    return "edited", _find(between, left, at, is_last)


def _follows(between: _Lines, left: _Lines, at: int, is_last: bool) -> bool:
    return left[at : at + len(between)] == between and (not is_last or at + len(between) == len(left))


def _find(between: _Lines, left: _Lines, start: int, is_last: bool) -> int | None:
    """Find where the lines after an edited hunk continue."""
    last = len(left) - len(between)
    begin = between[:_BEGINNING]
    places = range(max(start, last) if is_last else start, last + 1)
    at = next(
        (at for at in places if left[at : at + 1] == begin[:1] and left[at : at + len(begin)] == begin), None
    )
    return at if at is not None and _follows(between, left, at, is_last) else None


def _mapped(spans: Sequence[Span], old: _Lines, new: _Lines, left: _Lines) -> list[Fate]:
    """Classify by diff: map each hunk to its lines in the left content and compare them."""
    places = _Places(Anchored(new, left).get_opcodes())
    found: list[Fate] = []
    for span in spans:
        begin = places.first(span.new[0])
        part = left[begin : max(begin, places.last(span.new[1]))]
        before, proposed = old[slice(*span.old)], new[slice(*span.new)]
        fate: Fate = "kept" if part == proposed else "rejected" if part == before else "edited"
        found.append(_refine(fate, before, proposed, part))
    return found


def _refine(fate: Fate, before: _Lines, proposed: _Lines, left: _Lines) -> Fate:
    return "partly" if fate == "edited" and is_selection(before, proposed, left) else fate


def is_selection(before: _Lines, proposed: _Lines, left: _Lines) -> bool:
    """Whether `left` is what remains if each changed line is kept or rejected separately.

    The unchanged lines must be there; a removed line may have stayed, and an added line may be missing. Every position
    that can be reached in `left` is one bit of a number.
    """
    if max(len(before), len(proposed), len(left)) > _PARTLY_MAX:
        return False
    places: dict[bytes, int] = {}
    for at, line in enumerate(left):
        places[line] = places.get(line, 0) | 1 << at
    reached = 1
    for line, is_optional in _selectable(before, proposed):
        reached = (reached & places.get(line, 0)) << 1 | (reached if is_optional else 0)
    return bool(reached >> len(left) & 1)


def _selectable(before: _Lines, proposed: _Lines) -> Iterator[tuple[bytes, bool]]:
    """The lines of both sides in the order of a diff; a changed one is optional."""
    for tag, old, old_end, new, new_end in Anchored(before, proposed).get_opcodes():
        yield from ((line, tag != "equal") for line in before[old:old_end])
        yield from ((line, True) for line in proposed[new:new_end] if tag != "equal")


class _Places:
    """Maps line numbers of one text to the other, from diff opcodes."""

    def __init__(self, opcodes: Sequence[tuple[str, int, int, int, int]]) -> None:
        self._opcodes = opcodes
        self._ends = [opcode[2] for opcode in opcodes]

    def first(self, at: int) -> int:
        return min(
            (left + at - begin if same else left for same, begin, left, _ in self._touching(at)), default=0
        )

    def last(self, at: int) -> int:
        return max(
            (left + at - begin if same else end for same, begin, left, end in self._touching(at)), default=0
        )

    def _touching(self, at: int) -> Iterator[tuple[bool, int, int, int]]:
        """The opcodes that touch or contain this position."""
        for index in range(bisect_left(self._ends, at), len(self._ends)):
            tag, begin, _, left, end = self._opcodes[index]
            if begin > at:
                return
            yield tag == "equal", begin, left, end


def _remark(comment: Comment, lines: _Lines) -> Remark:
    on = shown(lines[comment.line - 1]).rstrip("\r\n") if 0 < comment.line <= len(lines) else ""
    return Remark(line=comment.line, on=on, text=comment.text)


def _format_remark(remark: Remark) -> str:
    on = f" ({remark.on.strip()})" if remark.on.strip() else ""
    return f"- line {remark.line}{on}: {remark.text}"


def _alone(fate: Fate) -> str:
    match fate:
        case "kept":
            return "kept it, with changes elsewhere"
        case "partly":
            return "kept some of its lines and rejected the others"
        case _:
            return f"{fate} it"


def _counted(fates: Sequence[Fate]) -> str:
    parts = [f"kept {fates.count('kept')} of {count_text(len(fates), 'hunk')}"]
    if partly := fates.count("partly"):
        parts.append(f"kept {_number(partly)} in part")
    parts += [f"{fate} {_number(count)}" for fate in ("edited", "rejected") if (count := fates.count(fate))]
    if len(parts) == 1:
        parts.append("changed lines elsewhere")
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def _number(count: int) -> str:
    return "one" if count == 1 else f"{count:,}"


_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")
_ENDING = re.compile(r"\r\n|\r|\n")
_PRIVATE = re.compile(r"[\ue000-\uefff]")
_BLOCK = 128
_BLOCKS = range(0xEF80, 0xE000 - 1, -_BLOCK)
"""Blocks of 128 private-use characters that can stand for bytes that are not UTF-8."""


@dataclass(frozen=True)
class Editor:
    """Converts a file's present and proposed content for an editor; None means that there is no file."""

    before: bytes | None
    proposed: bytes | None

    def shown(self, raw: bytes | None) -> str | None:
        """One of the two contents as editor text."""
        if raw is None:
            return None
        text = decode(raw).removeprefix(BOM)
        return _ENDING.sub("\n", text).translate(self._to_private)

    def written(self, content: str) -> bytes | None:
        """Convert editor text to bytes; unedited text gives the original bytes. Raises Refusal."""
        known = {self.shown(raw) or "": raw for raw in (self.before, self.proposed)}
        content = _ENDING.sub("\n", content)
        if not any(text.startswith(BOM) for text in known):  # the editor was given none
            content = content.removeprefix(BOM)
        if content in known:
            return known[content]
        text = self._with_endings(content)
        mark = BOM if self._marked else ""
        try:
            return encode(mark + text.translate(self._from_private))
        except UnicodeEncodeError:
            raise Refusal(
                "The content holds half a character (a lone surrogate), which no file can. Remove it."
            ) from None

    @property
    def _marked(self) -> bool:
        return decode(self.proposed or self.before or b"").startswith(BOM)

    @cached_property
    def _to_private(self) -> dict[int, int]:
        texts = [decode(raw) for raw in (self.before, self.proposed) if raw is not None]
        if all(text.isascii() or not _has_odd_bytes(text) for text in texts):
            return {}
        used = {ord(char) // _BLOCK for text in texts for char in _PRIVATE.findall(text)}
        base = next((block for block in _BLOCKS if block // _BLOCK not in used), None)
        if base is None:
            raise Refusal(
                "The file is not UTF-8 and cannot be shown in an editor. Allow or deny it as it is."
            )
        return {0xDC80 + at: base + at for at in range(_BLOCK)}

    @property
    def _from_private(self) -> dict[int, int]:
        return {private: odd for odd, private in self._to_private.items()}

    def _with_endings(self, content: str) -> str:
        """Restore the line endings of the file; when they are mixed, line by line."""
        versions = [_lines(decode(raw)) for raw in (self.proposed, self.before) if raw is not None]
        styles = {ending for version in versions for _, ending in version if ending}
        if len(styles) < 2:
            return content.replace("\n", styles.pop() if styles else "\n")
        lines = _lines(content)
        endings = [""] * len(lines)
        for version in versions:
            for at, ending in _matches(version, [text.translate(self._from_private) for text, _ in lines]):
                endings[at] = endings[at] or ending
        return "".join(_joined(lines, endings, _usual(versions[0])))


def _has_odd_bytes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _lines(text: str) -> list[tuple[str, str]]:
    """Each line and its ending."""
    found = [(line, ending) for line, ending in _LINE.findall(text)]
    return found[:-1] if found and found[-1] == ("", "") else found


def _matches(version: list[tuple[str, str]], lines: list[str]) -> list[tuple[int, str]]:
    """Positions of lines that a version has too, with their endings there."""
    old, new = (
        [encode(text) for text, _ in version],
        [line.encode("utf-8", "surrogatepass") for line in lines],
    )
    blocks = Anchored(old, new).get_matching_blocks()
    return [(block.b + at, version[block.a + at][1]) for block in blocks for at in range(block.size)]


def _usual(version: list[tuple[str, str]]) -> str:
    return next((ending for _, ending in version if ending), "\n")


def _joined(lines: list[tuple[str, str]], endings: list[str], ending: str) -> list[str]:
    """Join the lines; a new line gets the ending of the line above it."""
    joined: list[str] = []
    for (text, ends), own in zip(lines, endings, strict=True):
        ending = own or ending
        line = text + (ending if ends else "")
        if line.startswith("\n") and joined and joined[-1].endswith("\r"):
            joined[-1] += "\n"  # otherwise CR and LF would merge into one line ending, and a line be lost
        joined.append(line)
    return joined
