"""What events about operations change."""

from handrail.store.event import OperationEnded, OperationOpened
from handrail.store.projection.statement import Statement


def statement(seq: int, at: int, event: OperationOpened | OperationEnded) -> Statement:
    match event:
        case OperationOpened(operation=id, caller=who):
            return (_OPENED, (id, who.thread, who.client, who.workspace, at, seq))
        case OperationEnded(operation=id, cancelled_by=by, stop=stop, error=error):
            return (_ENDED, (at, by, stop, error, id))


_OPENED = """
INSERT INTO operations (id, thread, client, workspace, opened_at, opened_seq)
VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"""
_ENDED = """
UPDATE operations SET ended_at = ?, cancelled_by = ?, stop = ?, error = ? WHERE id = ? AND ended_at IS NULL"""
