"""What events about operations change: the operation's row, and what it was busy with."""

from handrail.store.event import OperationEnded, OperationOpened
from handrail.store.projection.activities import closed
from handrail.store.projection.statement import Statement


def statements(seq: int, at: int, event: OperationOpened | OperationEnded) -> list[Statement]:
    match event:
        case OperationOpened(operation=id, caller=who):
            return [(_OPENED, (id, who.thread, who.client, who.workspace, at, seq))]
        case OperationEnded(operation=id, cancelled_by=by, stop=stop, error=error):
            return [(_ENDED, (at, by, stop, error, seq, id)), *closed(seq, at, event)]


_OPENED = """
INSERT INTO operations (id, thread, client, workspace, opened_at, opened_seq)
VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"""
_ENDED = """
UPDATE operations SET ended_at = ?, cancelled_by = ?, stop = ?, error = ?, ended_seq = ?
WHERE id = ? AND ended_at IS NULL"""
