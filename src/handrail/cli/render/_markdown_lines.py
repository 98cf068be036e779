"""Markdown for the terminal, line by line while it streams: styles only, the words and their order stay.

A line is printed when it is whole. Text is escaped before it is styled, so an agent cannot control the terminal.
"""

import re

from handrail.cli.exact import exact_line
from handrail.cli.render.output import Piece

FENCE = re.compile(r"^\s{0,3}(```+|~~~+)\s*([\w+.-]*)\s*$")
HEADING = re.compile(r"^\s{0,3}#{1,6}\s+(.*?)\s*#*$")
BULLET = re.compile(r"^(\s*)[-*+]\s+(\[[ xX]\]\s+)?(.*)$")
QUOTE = re.compile(r"^\s{0,3}>\s?(.*)$")
SPAN = re.compile(
    r"`([^`]+)`|\*\*([^*]+)\*\*|(?<!\w)__([^_]+)__(?!\w)|(?<![\w*])\*([^*\s][^*]*)\*(?![\w*])"
    r"|\[([^\]]+)\]\(([^)\s]+)\)"
)


class MarkdownLines:
    """Styles the lines of one text. Knows whether it is within a code block."""

    def __init__(self) -> None:
        self._fence = ""

    def render(self, line: str) -> list[Piece]:
        """The pieces of one whole line, without its newline."""
        text = exact_line(line)
        if fence := FENCE.match(text):
            return self._toggle_code(fence[1], text)
        if self._fence:
            return [("    " + text, "cyan")]
        if heading := HEADING.match(text):
            return [(heading[1], "bold")]
        if quote := QUOTE.match(text):
            return [("│ ", "dim"), *_spans(quote[1], "italic")]
        if bullet := BULLET.match(text):
            box = {"[ ]": "☐ ", "[x]": "☑ "}.get((bullet[2] or "").strip().lower(), "")
            return [f"{bullet[1]}{box or '• '}", *_spans(bullet[3])]
        return _spans(text)

    def _toggle_code(self, mark: str, text: str) -> list[Piece]:
        if not self._fence:
            self._fence = mark
            return []
        if mark.startswith(self._fence):
            self._fence = ""
            return []
        return [("    " + text, "cyan")]


def _spans(text: str, style: str = "") -> list[Piece]:
    pieces: list[Piece] = []
    end = 0
    for span in SPAN.finditer(text):
        pieces += [(text[end : span.start()], style), *_span(span)]
        end = span.end()
    pieces.append((text[end:], style))
    return [piece for piece in pieces if piece[0]]


def _span(span: re.Match[str]) -> list[Piece]:
    code, strong, other_strong, emphasis, link, address = span.groups()
    if code is not None:
        return [(code, "cyan")]
    if link is not None:
        return [(link, "underline"), (f" ({address})", "dim")]
    return [(strong or other_strong, "bold")] if strong or other_strong else [(emphasis, "italic")]
