"""What waits for the person at this terminal, as the facts tell it.

Pure. Does not know how anything is asked.
"""

from collections.abc import Callable

from handrail.cli.words import Row


class Inbox:
    """Questions by their ids, oldest first."""

    def __init__(self, waiting: list[str], also: Callable[[list[Row]], None] = lambda _: None) -> None:
        """`also` hears every fact, too: whoever puts a question takes in what happens meanwhile."""
        self._waiting = dict.fromkeys(waiting)
        self._also = also

    def hear(self, entries: list[Row]) -> None:
        self._also(entries)
        for entry in entries:
            event: Row = entry["event"]
            match event["kind"]:
                case "ApprovalOpened":
                    self._waiting[event["approval"]] = None
                case "ApprovalAnswered" | "ApprovalWithdrawn" | "ApprovalExpired":
                    self._waiting.pop(event["approval"], None)
                case _:
                    pass

    def drop(self, id: str) -> None:
        self._waiting.pop(id, None)

    def first(self) -> str | None:
        return next(iter(self._waiting), None)

    def __contains__(self, id: str) -> bool:
        return id in self._waiting
