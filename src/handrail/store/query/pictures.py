"""Questions about pictures: which of them conversations still point to."""

import re
import sqlite3

from handrail.store.query.asking import Asking

_NAME = re.compile(r'"image": ?"([0-9a-f]{64})"')


class Pictures(Asking):
    """What is known of pictures."""

    async def pictures(self) -> frozenset[str]:
        """The hash of every picture that some message shows."""
        found = await self._all(_named, _SHOWN)
        return frozenset(name for names in found for name in names)


def _named(row: sqlite3.Row) -> list[str]:
    return _NAME.findall(row["data"])


_SHOWN = """SELECT data FROM parts WHERE kind IN ('image', 'call') AND instr(data, '"image"')"""
