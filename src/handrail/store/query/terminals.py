"""Questions about terminals."""

from handrail.store.query.asking import Asking, Value, Where
from handrail.store.records import TerminalRecord, TypedRecord
from handrail.store.rows import terminal_of, typed_of
from handrail.store.value import TerminalKind


class Terminals(Asking):
    """What is known of terminals."""

    async def terminals(
        self,
        running_only: bool = False,
        of: tuple[TerminalKind, ...] | None = None,
        before: int | None = None,
        limit: int = 200,
    ) -> list[TerminalRecord]:
        """Those of these kinds; `before` is the `opened_seq` of the last one seen."""
        where = Where()
        where.add("opened_seq < ?", before)
        where.among('"of"', of)
        if running_only:
            where.plain("ended_at IS NULL")
        return await self._terminals(f"{where} ORDER BY opened_seq DESC LIMIT ?", *where.values, limit)

    async def terminals_with_output(self, after: str = "", limit: int = 1000) -> list[TerminalRecord]:
        """Ended ones whose output is not forgotten, by their id."""
        rest = " WHERE ended_at IS NOT NULL AND forgotten_at IS NULL AND id > ? ORDER BY id LIMIT ?"
        return await self._terminals(rest, after, limit)

    async def terminal(self, id: str) -> TerminalRecord | None:
        found = await self._terminals(" WHERE id = ?", id)
        return found[0] if found else None

    async def typed(self, terminal: str, limit: int = 200) -> list[TypedRecord]:
        """What was typed into a terminal last, in the order it was typed."""
        sql = "SELECT * FROM typed WHERE terminal = ? ORDER BY seq DESC LIMIT ?"
        return (await self._all(typed_of, sql, (terminal, limit)))[::-1]

    async def _terminals(self, rest: str, *values: Value | None) -> list[TerminalRecord]:
        return await self._all(terminal_of, f"SELECT *, {_TYPED_TO} AS typed_to FROM terminals{rest}", values)


_TYPED_TO = '(SELECT max("offset") FROM typed WHERE typed.terminal = terminals.id)'
