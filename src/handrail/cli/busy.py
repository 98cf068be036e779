"""What an agent is busy with, as the facts tell it: which step, what in it, and for how long.

Pure. Does not know how it is shown; and of an agent that tells nothing of this it knows nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from handrail.cli.words import Row, clock


@dataclass(frozen=True, slots=True)
class _Doing:
    operation: str
    parent: str
    sort: str
    title: str
    since: float

    def __str__(self) -> str:
        match self.sort:
            case "model":
                return f"asking {self.title.partition(':')[2] or self.title}"  # without its provider
            case "thinking":
                return "thinking"
            case _:
                return self.title


class Busy:
    """What is under way in one thread, in the order in which it began."""

    def __init__(self, thread: str) -> None:
        self._thread = thread
        self._open: dict[str, _Doing] = {}
        self._over: set[str] = set()

    def hear(self, entries: Sequence[Row], now: float) -> list[Row]:
        """Those of these facts that tell what this thread's agent does."""
        told: list[Row] = []
        for event in (entry["event"] for entry in entries):
            if event["kind"] == "OperationEnded":
                self._end(event["operation"])
            elif event["kind"] in ("ActivityStarted", "ActivityEnded") and event["thread"] == self._thread:
                self._take(event, now)
                told.append(event)
        return told

    def is_over(self, operation: str) -> bool:
        """Whether the facts have come to the end of this one: nothing more of it will be told."""
        return operation in self._over

    def line(self, now: float) -> str:
        """`Step 3 · asking claude-opus-5 · 0:12`; nothing while nothing is under way."""
        leaves = self._leaves()
        if not leaves:
            return ""
        since = min(leaf.since for leaf in leaves)
        return " · ".join([*self._way(leaves), *map(str, leaves), clock(now - since)])

    def _take(self, event: Row, now: float) -> None:
        if event["kind"] == "ActivityEnded":
            self._open.pop(event["activity"], None)
            return
        self._open[event["activity"]] = _Doing(
            event["operation"], event["parent"] or "", event["sort"], event["title"], now
        )

    def _end(self, operation: str) -> None:
        self._over.add(operation)
        self._open = {key: doing for key, doing in self._open.items() if doing.operation != operation}

    def _leaves(self) -> list[_Doing]:
        """What is really done: below it there is nothing, and it is no mere frame."""
        above = {doing.parent for doing in self._open.values()}
        ends = (doing for key, doing in self._open.items() if key not in above)
        return [doing for doing in ends if doing.sort not in ("operation", "step", "agent")]

    def _way(self, leaves: list[_Doing]) -> list[str]:
        """The step that all of it belongs to; and, where there is one thing, by which way it came to be done."""
        above = list(self._above(leaves[0]))
        step = next((doing.title for doing in reversed(above) if doing.sort == "step"), None)
        by_way = [doing.title for doing in reversed(above) if doing.sort in ("agent", "compaction")]
        return [*([step] if step else []), *(by_way if len(leaves) == 1 else [])]

    def _above(self, doing: _Doing) -> Iterator[_Doing]:
        """From the nearest to the root."""
        while (parent := self._open.get(doing.parent)) is not None:
            yield parent
            doing = parent
