"""Which page holds each terminal: the one that was typed in last. It may set the size, and the others fit themselves.

Owns that alone. Does not know sockets, nor the taking over that keeps agents out (terminal/).
"""

import anyio


class Holders:
    """At most one for each terminal."""

    def __init__(self) -> None:
        self._holder: dict[str, object] = {}
        self._bell = anyio.Event()

    def may_size(self, terminal: str, who: object) -> bool:
        """It holds the terminal, or nobody does."""
        return self._holder.get(terminal, who) is who

    def hold(self, terminal: str, who: object) -> None:
        if self._holder.get(terminal) is not who:
            self._holder[terminal] = who
            self._ring()

    def let_go(self, terminal: str, who: object | None = None) -> None:
        """It holds the terminal no longer, if it did; without `who`, nobody does."""
        holder = self._holder.get(terminal)
        if holder is not None and who in (None, holder):
            del self._holder[terminal]
            self._ring()

    async def changed(self) -> None:
        """Wakes when some terminal is held by another than before, or by nobody."""
        await self._bell.wait()

    def _ring(self) -> None:
        bell, self._bell = self._bell, anyio.Event()
        bell.set()
