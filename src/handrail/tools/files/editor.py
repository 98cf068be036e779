"""A file's bytes as an editor holds them, and back without loss.

Owns what an editor does not show: line endings (it has newlines only), a byte order mark, bytes that are not UTF-8
(it has a private character for each). It does not know hunks or people.
"""

import re
from dataclasses import dataclass
from functools import cached_property

from handrail.gate.tool import Refusal
from handrail.tools.files.anchors import Anchored
from handrail.tools.files.text import BOM, decode, encode

_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")
_ENDING = re.compile(r"\r\n|\r|\n")
_PRIVATE = re.compile(r"[\ue000-\uefff]")
_BLOCK = 128
_BLOCKS = range(0xEF80, 0xE000 - 1, -_BLOCK)
"""Where 128 private characters can stand for the bytes that are not UTF-8."""


@dataclass(frozen=True)
class Editor:
    """One file in an editor: what it holds, and what is proposed; None is no file."""

    before: bytes | None
    proposed: bytes | None

    def shown(self, raw: bytes | None) -> str | None:
        """One of the two as an editor shows it."""
        if raw is None:
            return None
        text = decode(raw).removeprefix(BOM)
        return _ENDING.sub("\n", text).translate(self._to_private)

    def written(self, content: str) -> bytes | None:
        """What an editor's content means on disk; equal to one of the two where it looks like it. Raises Refusal."""
        known = {self.shown(raw) or "": raw for raw in (self.before, self.proposed)}
        content = _ENDING.sub("\n", content)
        if not any(text.startswith(BOM) for text in known):  # which the editor did not show
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
        """The content with the line endings of the two: each line its own where they are mixed."""
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
    """Each line and what ends it."""
    found = [(line, ending) for line, ending in _LINE.findall(text)]
    return found[:-1] if found and found[-1] == ("", "") else found


def _matches(version: list[tuple[str, str]], lines: list[str]) -> list[tuple[int, str]]:
    """Lines that a version has too, and how they end there."""
    old, new = (
        [encode(text) for text, _ in version],
        [line.encode("utf-8", "surrogatepass") for line in lines],
    )
    blocks = Anchored(old, new).get_matching_blocks()
    return [(block.b + at, version[block.a + at][1]) for block in blocks for at in range(block.size)]


def _usual(version: list[tuple[str, str]]) -> str:
    return next((ending for _, ending in version if ending), "\n")


def _joined(lines: list[tuple[str, str]], endings: list[str], ending: str) -> list[str]:
    """A line that nobody had before ends like the one above it."""
    joined: list[str] = []
    for (text, ends), own in zip(lines, endings, strict=True):
        ending = own or ending
        line = text + (ending if ends else "")
        if line.startswith("\n") and joined and joined[-1].endswith("\r"):
            joined[-1] += "\n"  # else the two would pass for one ending, and a line be lost
        joined.append(line)
    return joined
