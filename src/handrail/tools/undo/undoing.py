"""What undoing calls means for one file, judged by the record and by what the file holds now.

Pure: hashes in, a wish or a refusal out. What is taken back must be all that happened to the file since: where somebody
else's change lies between or after, the file is refused. It does not know contents, disks or journals.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from handrail.store.records import ChangeRecord, UndoRecord
from handrail.tools.answer import brief


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """How a file was before any of what is undone."""

    sha: str | None
    """Of its content; None when there was no file."""
    mode: int | None
    because: str
    """The first of what is undone, by its title."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InTheWay:
    """Why a file cannot be undone."""

    sentence: str
    left: str | None = None
    """SHA-256 of what the undone calls left there, so that the difference can be shown."""
    then: str | None = None
    """SHA-256 of what it held before them."""


def with_undos(selected: Collection[str], undos: Iterable[UndoRecord]) -> set[str]:
    """What is selected, and with it the undos that took back nothing else; `undos` oldest first."""
    found = set(selected)
    for undo in undos:
        if found.issuperset(undo.calls):
            found.add(undo.id)
    return found


def judge(history: list[ChangeRecord], selected: Collection[str], now: str | None) -> Wish | InTheWay:
    """`history` is all that is recorded of the file, oldest first, with at least one change that is selected."""
    ours = [record for record in history if record.call in selected]
    running = next((record for record in ours if record.title is not None and record.ending is None), None)
    if running is not None:
        return InTheWay(sentence=f"{_named(running)} is still at it. Undo when that has ended.")
    return _judged(history, ours, now)


def _judged(history: list[ChangeRecord], ours: list[ChangeRecord], now: str | None) -> Wish | InTheWay:
    first = ours[0].change
    wish = Wish(sha=first.before, mode=first.mode, because=_named(ours[0]))
    problem = _break(history, ours, now)
    if problem is None:
        return wish
    if now == wish.sha:  # by somebody else's hand: whatever else they did to it is theirs
        return replace(wish, mode=None)
    if len(ours) > 1 and not _surely_written(ours[0]):  # then it does not count: what follows does
        return _judged(history, ours[1:], now)
    return replace(problem, then=wish.sha)


def _break(history: list[ChangeRecord], ours: list[ChangeRecord], now: str | None) -> InTheWay | None:
    """Where somebody else's change lies between ours, or after them."""
    possible, last = {ours[0].change.before}, ours[0]
    for record in ours:
        if record.change.before not in possible:
            between = [other for other in history if last.seq < other.seq < record.seq]
            return _in_the_way(between, ours, last, record.change.before)
        possible, last = _left(record), record
    after = [other for other in history if other.seq > last.seq]
    return None if now in possible else _in_the_way(after, ours, last, now)


def _left(record: ChangeRecord) -> set[str | None]:
    """What the file may hold after a change."""
    change = record.change
    return {change.after} if _surely_written(record) else {change.before, change.after}


def _surely_written(record: ChangeRecord) -> bool:
    """An undo is written down before it is done, and so is a call; but a call tells whether it came to its end."""
    return record.ending == "done"


def _in_the_way(
    since: list[ChangeRecord], ours: list[ChangeRecord], last: ChangeRecord, holds: str | None
) -> InTheWay:
    others = [
        record
        for record in since
        if record not in ours
        and (record.ending == "done" or record.title is None or record.change.after == holds)
    ]
    became = "was deleted" if holds is None else "was changed"
    by = f"by {_named(others[-1])}" if others else "by hand or by a command"
    more = " Undo that first." if others else ""
    return InTheWay(
        sentence=f"It {became} since, {by}, and that would be lost.{more}", left=last.change.after
    )


def _named(record: ChangeRecord) -> str:
    if record.title is None:
        at = datetime.fromtimestamp(record.at / 1000, UTC)
        return f"the undo {record.call} of {at:%Y-%m-%d %H:%M} UTC"
    return f"call {record.call} ({brief(record.title)})"
