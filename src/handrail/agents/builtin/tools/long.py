"""Long results by handle instead of by paste: what a tool gave is kept whole, and the model is told some of it.

Owns what is kept, for the length of a session, and what the model sees of it at first. It does not know which tool
gave it, nor how the rest is read (reading.py).
"""

from collections import OrderedDict

LONG = 30_000
"""Characters of one result that a model is given as they are; some 8,000 tokens."""
HEAD, TAIL = 14_000, 8_000
"""Characters of a longer one that it is given; ends matter more than middles."""
KEPT = 64_000_000
"""Characters of all results that are kept; the oldest are given up first."""


class Outputs:
    """The long results of one session, by handle."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, str] = OrderedDict()
        self._made = 0

    def short(self, text: str) -> str:
        """The text itself where it is short; else its ends, and how to read the rest."""
        if len(text) <= LONG:
            return text
        handle = self._keep(text)
        head, tail = _head(text, HEAD), _tail(text, TAIL)
        left = len(text) - len(head) - len(tail)
        note = (
            f"[{left:,} of {len(text):,} characters are left out here. The whole is kept as {handle}: read_output "
            f'with handle "{handle}" gives the rest from an offset ({len(head):,} is where this stops), or the lines '
            "that hold a pattern.]"
        )
        return f"{head}\n\n{note}\n\n{tail}"

    def get(self, handle: str) -> str | None:
        return self._kept.get(handle)

    def _keep(self, text: str) -> str:
        self._made += 1
        handle = f"output-{self._made}"
        self._kept[handle] = text
        while len(self._kept) > 1 and sum(map(len, self._kept.values())) > KEPT:
            self._kept.popitem(last=False)
        return handle


def _head(text: str, most: int) -> str:
    """Its beginning, up to the end of a line where one is near."""
    end = text.rfind("\n", most * 3 // 4, most)
    return text[: end + 1 if end >= 0 else most]


def _tail(text: str, most: int) -> str:
    start = text.find("\n", len(text) - most, len(text) - most * 3 // 4)
    return text[start + 1 if start >= 0 else len(text) - most :]
