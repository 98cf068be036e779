"""One line below all that was said, there only for as long as it is true.

Owns that it comes and goes without a trace, and that where there is no terminal there is none. Does not know what it
says.
"""

import sys

from handrail.cli.exact import exact_line
from handrail.cli.show import width

ERASE = "\r\x1b[2K"
DIM, PLAIN = "\x1b[2m", "\x1b[0m"


class Status:
    """The line, if it is shown."""

    def __init__(self) -> None:
        self._is_terminal = sys.stdout.isatty() and sys.stderr.isatty()
        self._shown = ""

    def show(self, words: str) -> None:
        """Nothing else may be written before it is cleared."""
        if not words:
            self.clear()
        elif self._is_terminal and words != self._shown:
            sys.stdout.write(f"{ERASE}{DIM}{_fitting(exact_line(words))}{PLAIN}")
            sys.stdout.flush()
            self._shown = words

    def clear(self) -> None:
        if self._shown:
            sys.stdout.write(ERASE)
            sys.stdout.flush()
            self._shown = ""


def _fitting(words: str) -> str:
    """On one line: what wraps could not be taken back."""
    from rich.cells import cell_len, set_cell_size  # noqa: PLC0415

    most = max(1, width() - 1)
    return words if cell_len(words) <= most else f"{set_cell_size(words, most - 1)}…"
