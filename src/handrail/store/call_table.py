"""The table of calls: the matches of a search, page by page in any order, and counts.

Words are looked up in the search index too, so that a call is found by its input and its output.
"""

from typing import Literal

from handrail.lazy_dataclass import dataclass
from handrail.store.call_filter import add_field, add_word
from handrail.store.call_times import RAN, WAITED
from handrail.store.calls import STATUS, CallRecord, Status
from handrail.store.query import Where
from handrail.store.records import Records
from handrail.store.search_index import NO_CALLS, SearchIndex
from handrail.store.search_query import SearchQuery, parse_query

Sort = Literal["time", "agent", "tool", "title", "status", "waited", "ran", "by", "folder"]


SOON = 3000
"""Texts with a word that are looked at first: enough for a first page, and fast if the word is everywhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPage:
    """Some rows of the table. `upto` names the newest call of the table: later pages pass it, so that rows keep their
    places while new calls arrive."""

    calls: tuple[CallRecord, ...]
    upto: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusCounts:
    """How many calls match a query, and how many of each status, without the query's condition on status."""

    total: int
    statuses: dict[Status, int]


class CallTable:
    """All calls that match a query, in an order."""

    def __init__(self, records: Records, index: SearchIndex, texts: bool = True) -> None:
        """Without `texts`, words are only found in the columns of a list."""
        self._records = records
        self._index = index
        self._texts = texts

    async def page(
        self,
        q: str = "",
        sort: Sort = "time",
        ascending: bool = False,
        upto: int | None = None,
        offset: int = 0,
        limit: int = 200,
    ) -> CallPage:
        """Return the rows from `offset`. Raises BadQuery."""
        newest = await self._records.calls.newest() if upto is None else upto
        where = Where()
        where.add("calls.opened_seq <= ?", newest)
        calls = await self._slice(parse_query(q), where, _order(sort, ascending), offset, limit)
        return CallPage(calls=tuple(calls), upto=newest)

    async def find(self, q: str, where: Where, before: int | None, limit: int) -> list[CallRecord]:
        """Return the newest calls that match both, before the call opened at `before`. Raises BadQuery."""
        where.add("calls.opened_seq < ?", before)
        return await self._slice(parse_query(q), where, _order("time", False), 0, limit)

    async def counts(self, q: str) -> StatusCounts:
        """Count the calls that match. Raises BadQuery."""
        query = parse_query(q)
        where, _ = await self._match(query.without("status"), Where())
        statuses = await self._records.call_counts.by_status(where)
        total = sum(count for status, count in statuses.items() if query.accepts_status(status))
        return StatusCounts(total=total, statuses=statuses)

    async def _slice(
        self, query: SearchQuery, where: Where, order: str, offset: int, limit: int
    ) -> list[CallRecord]:
        """The newest rows need only the newest texts with a word; other rows need all of them."""
        most = SOON if order == _order("time", False) else None
        soon, decided = await self._match(query, where, most)
        calls = await self._records.calls.slice(soon, order, offset, limit)
        if decided or len(calls) == limit:
            return calls
        return await self._records.calls.slice((await self._match(query, where))[0], order, offset, limit)

    async def _match(self, query: SearchQuery, given: Where, most: int | None = None) -> tuple[Where, bool]:
        """Add the conditions of a query, and tell whether they select all calls that match.

        With `most`, a word selects only calls newer than that many texts with it.
        """
        where, decided = given.copy(), True
        for term in query.fields:
            add_field(where, term)
        for term in query.words:
            found = await self._index.calls_with(term, query.places, most) if self._texts else NO_CALLS
            where.add("calls.opened_at > ?", found.after)
            add_word(where, term, query.places, found.calls)
            decided = decided and found.after is None
        return where, decided


def _order(sort: Sort, ascending: bool) -> str:
    way = "ASC" if ascending else "DESC"
    by = _SORTS[sort]
    return f"calls.opened_seq {way}" if by is None else f"{by} {way}, calls.opened_seq DESC"


_SORTS: dict[Sort, str | None] = {
    "time": None,
    "agent": "calls.client COLLATE NOCASE",
    "tool": "calls.tool",
    "title": "calls.title COLLATE NOCASE",
    "status": f"{STATUS}, calls.exit_code",
    "waited": WAITED,
    "ran": RAN,
    "by": "coalesce(calls.allowed_by, calls.settled_by)",
    "folder": "calls.workspace COLLATE NOCASE",
}
