"""What an id stands for when it is undone: a call, an undo, an operation or a thread, and the calls that are in it.

Owns finding that, its title, and naming what no undo covers. It does not know files.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from handrail.gate.tool import Of, UnknownUndo
from handrail.store.query import Records
from handrail.store.records import CallRecord
from handrail.tools.answer import brief, some

_COMMANDS = ("execute_command", "send_to_terminal", "create_tracked_terminal")
"""What runs whatever it is told: nobody knows all that it changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """What shall be undone."""

    id: str
    of: Of
    title: str
    calls: tuple[str, ...]
    """Or the one earlier undo."""
    not_covered: tuple[str, ...]


async def undone(records: Records, id: str) -> Undone:
    """Raises `UnknownUndo`."""
    call = await records.call(id)
    if call is not None:
        return await _undone(records, id, "call", [call.call])
    undo = await records.undo(id)
    if undo is not None:
        title = f"Undo of {', '.join(undo.calls)}"
        return Undone(id=id, of="undo", title=brief(title), calls=(id,), not_covered=())
    if calls := await records.calls_of_operation(id):
        return await _undone(records, id, "operation", calls)
    if calls := await records.calls_of_thread(id):
        return await _undone(records, id, "thread", calls)
    raise UnknownUndo(id)


async def _undone(records: Records, id: str, of: Of, calls: Sequence[CallRecord]) -> Undone:
    kept = {change.call for change in await records.changes_of(call.id for call in calls)}
    started = [call for call in calls if call.started_at is not None and call.id not in kept]
    return Undone(
        id=id,
        of=of,
        title=calls[0].title if of == "call" else f"{some(len(calls), 'call')} of {of} {id}",
        calls=tuple(call.id for call in calls if call.id in kept),
        not_covered=tuple([line for call in started for line in await _not_covered(records, call)]),
    )


async def _not_covered(records: Records, call: CallRecord) -> list[str]:
    """Of a call that started, and of which nothing is kept."""
    if call.tool in _COMMANDS:
        return [f"Whatever this changed: {brief(call.title, 200)}"]
    if call.assurance != "bound":
        return [f"Whatever this changed, done by others: {brief(call.title, 200)}"]
    if call.tool not in _WRITERS:
        return []
    detail = await records.call(call.id)
    changed = detail.receipt.files_changed if detail and detail.receipt else ()
    return [f"{path}: what it held before call {call.id} was not kept." for path in changed]


_WRITERS = ("write_file", "edit_file", "apply_diff")
