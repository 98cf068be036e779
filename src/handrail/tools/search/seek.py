"""Running a query on files, and splitting the answer into records.

Owns the bounds on time and on one record. It does not know how the program is run (terminal/output/ripgrep.py), what
records mean, or which of them a caller may see.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from handrail.gate.tool import Refusal
from handrail.terminal.ripgrep import Ended, NoRipgrep, Search, in_thread
from handrail.terminal.thread_pool import FILES
from handrail.tools.search.query import Query, arguments, separator

SECONDS = 20.0
"""How long a search may take, well within a client's patience; what was found until then is given."""
RECORD_MAX = 1 << 20
"""Bytes of one record; a match in a file of one endless line would be as large as the file."""


async def seek(
    query: Query, folder: int, path: str, take: Callable[[bytes], bool], stdin: int | None = None
) -> Ended:
    """Run a query in an open folder, whose path is `path`. Raises Refusal when there is no ripgrep.

    `take` gets each record, in another thread, and ends the search by False.
    """
    search, records = Search(), _Records(separator(query), take)
    run = partial(
        search.run,
        arguments(query),
        records.feed,
        seconds=SECONDS,
        cwd=_held(folder, path),
        stdin=stdin,
    )
    try:
        ended = await in_thread(FILES, search, run)
    except NoRipgrep as problem:
        raise Refusal(str(problem)) from None
    ended.too_long = records.too_long
    return ended


def _held(folder: int, path: str) -> str:
    """A name for the open folder itself, which stays right whatever happens to its path."""
    return f"/proc/self/fd/{folder}" if Path("/proc/self/fd").exists() else path


class _Records:
    """Splits output into records of bounded length."""

    def __init__(self, end: bytes, take: Callable[[bytes], bool]) -> None:
        self._end = end
        self._take = take
        self._rest = b""
        self._dropping = False
        self.too_long = 0
        """Records that were dropped."""

    def feed(self, chunk: bytes) -> bool:
        *whole, self._rest = (self._rest + chunk).split(self._end)
        for record in whole:
            if self._dropping:
                self._dropping = False
            elif not self._take(record):
                return False
        if len(self._rest) > RECORD_MAX:
            self._rest = b""
            self.too_long += not self._dropping
            self._dropping = True
        return True
