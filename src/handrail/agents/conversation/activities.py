"""What an operation is busy with, as an agent that can tells it, taken down as facts.

Owns which of an agent's activities are open, and the bounds on what is kept of them. It never awaits. It does not know
how they are told (peer.py), nor what is done in any of them.
"""

import logging
from dataclasses import dataclass
from typing import cast, get_args

from handrail.agents.lenient_json import name, text
from handrail.errors import Conflict, Unwritable
from handrail.gate.operation import Operation
from handrail.store.actor import Actor
from handrail.store.events import ActivityEnded, ActivityStarted
from handrail.store.journal import Journal
from handrail.store.values import ActivityEnding, ActivitySort, Json

log = logging.getLogger(__name__)

MOST = 20_000
"""Of one operation; what is told beyond is not kept."""
LONGEST_ID = 64
LONGEST_TITLE = 500
LONGEST_DETAIL = 2000
"""Characters; people see them in a line."""
MOST_WORDS = 100
"""Of what was cancelled with an operation: nobody reads more."""


@dataclass(slots=True)
class _Open:
    """One that is under way."""

    sort: ActivitySort
    title: str
    parent: str | None
    cancelled_by: Actor | None = None


class Activities:
    """Those of one agent on one thread, for the operation that runs."""

    def __init__(self, journal: Journal, thread: str) -> None:
        self._journal, self._thread = journal, thread
        self._operation: Operation | None = None
        self._open: dict[str, _Open] = {}
        self._known: set[str] = set()

    def begin(self, operation: Operation) -> None:
        """From now on they are this operation's."""
        self._operation, self._open, self._known = operation, {}, set()
        operation.busy_with = self._words

    def end(self) -> None:
        """None is told any more."""
        self._operation, self._open, self._known = None, {}, set()

    def hear(self, told: Json) -> None:
        """One began or ended. What is told of no operation, or of one that has ended, is nobody's."""
        told_id, sort = _id(told.get("id")), told.get("sort")
        operation = self._operation
        if operation is None or operation.ended or not told_id or sort not in get_args(ActivitySort):
            return
        if told.get("how") is None:
            self._begun(operation, told_id, cast("ActivitySort", sort), told)
        elif told.get("how") in _ENDINGS and told_id in self._open:
            self._ended(operation, told_id, cast("ActivityEnding", told["how"]), text(told.get("detail")))

    def is_root(self, id: str) -> bool:
        return id in self._open and self._open[id].sort == "operation"

    def note_cancel(self, id: str, by: Actor) -> None:
        """Somebody wants this one cancelled. Raises LookupError, and Conflict where it is over."""
        if id in self._open:
            self._open[id].cancelled_by = by
        elif id in self._known:
            raise Conflict(f"The activity {id} had ended before.")
        else:
            raise LookupError(f"There is no activity {id} in this operation.")

    def _begun(self, operation: Operation, id: str, sort: ActivitySort, told: Json) -> None:
        if id in self._known or len(self._known) >= MOST:
            return
        above = _id(told.get("parent"))
        parent = above if above in self._open else None
        title = text(told.get("title"))[:LONGEST_TITLE]
        self._known.add(id)
        self._open[id] = _Open(sort, title, parent)
        self._note(
            ActivityStarted(
                thread=self._thread,
                operation=operation.id,
                activity=id,
                parent=parent,
                sort=sort,
                title=title,
                tool_call=name(told.get("toolCallId"))[:LONGEST_TITLE],
            )
        )

    def _ended(self, operation: Operation, id: str, how: ActivityEnding, detail: str) -> None:
        by = self._by(id) if how == "cancelled" else None
        gone = self._open.pop(id)
        self._note(
            ActivityEnded(
                thread=self._thread,
                operation=operation.id,
                activity=id,
                sort=gone.sort,
                how=how,
                by="" if by is None else str(by),
                detail=detail[:LONGEST_DETAIL],
            )
        )

    def _by(self, id: str) -> Actor | None:
        """Who cancelled it, or something it is part of."""
        found = self._open.get(id)
        while found is not None and found.cancelled_by is None:
            found = self._open.get(found.parent or "")
        return None if found is None else found.cancelled_by

    def _words(self) -> tuple[str, ...]:
        """What is under way, as people say it; steps and the whole are none of it."""
        busy = [each for each in self._open.values() if each.sort not in ("operation", "step")]
        return tuple(_WORDS.get(each.sort) or each.title for each in busy[:MOST_WORDS])

    def _note(self, event: ActivityStarted | ActivityEnded) -> None:
        try:
            self._journal.append(event)
        except Unwritable as problem:
            log.error("%s could not be recorded: %s", event.kind, problem)


def _id(value: object) -> str:
    """One that is too long is none, rather than another's."""
    found = name(value)
    return found if len(found) <= LONGEST_ID else ""


_ENDINGS = ("done", "failed", "cancelled")
_WORDS: dict[ActivitySort, str] = {
    "model": "asking the model",
    "thinking": "thinking",
    "compaction": "summing up the conversation",
}
