"""What events about activities change. What their titles say goes with their thread, out of the journal too."""

from handrail.store.event import ActivityEnded, ActivityStarted, OperationEnded
from handrail.store.projection.statement import Statement


def statements(seq: int, at: int, event: ActivityStarted | ActivityEnded) -> list[Statement]:
    match event:
        case ActivityStarted(thread=thread):
            named = (event.operation, event.activity, thread, event.parent, event.sort, event.title)
            return [(_STARTED, (*named, event.tool_call, at, thread)), (_WORDS, (thread, seq))]
        case ActivityEnded(thread=thread, operation=operation, activity=id):
            ended = (_ENDED, (at, event.how, event.by, event.detail, operation, id))
            return [ended, (_WORDS, (thread, seq))] if event.detail else [ended]


def closed(seq: int, at: int, event: OperationEnded) -> list[Statement]:
    """Nothing is busy for an operation that has ended, whatever its agent left unsaid."""
    how = "cancelled" if event.stop == "cancelled" or event.cancelled_by is not None else "interrupted"
    words = [(_WORDS_OF, (seq, event.operation))] if event.cancelled_activities else []
    return [(_CLOSED, (at, how, event.operation)), *words]


_STARTED = """
INSERT INTO activities (operation, id, thread, parent, sort, title, tool_call, started_at)
SELECT ?, ?, ?, ?, ?, ?, ?, ? WHERE EXISTS (SELECT 1 FROM threads WHERE id = ?) ON CONFLICT DO NOTHING"""
_ENDED = """
UPDATE activities SET ended_at = ?, how = ?, "by" = ?, detail = ?
WHERE operation = ? AND id = ? AND ended_at IS NULL"""
_CLOSED = "UPDATE activities SET ended_at = ?, how = ? WHERE operation = ? AND ended_at IS NULL"
_WORDS = "INSERT INTO titles (thread, seq) VALUES (?, ?) ON CONFLICT DO NOTHING"
_WORDS_OF = """
INSERT INTO titles (thread, seq) SELECT thread, ? FROM operations WHERE id = ? AND thread IS NOT NULL
ON CONFLICT DO NOTHING"""
