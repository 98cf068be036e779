"""What events about messages change: that they are, where they stand, and how they ended. What they say is a flow."""

from handrail.store.event import MessageEnded, MessageOpened, PromptDropped, PromptSent
from handrail.store.projection.statement import Statement

_OfMessage = MessageOpened | MessageEnded | PromptSent | PromptDropped


def statements(at: int, event: _OfMessage) -> list[Statement]:
    match event:
        case MessageOpened():
            return [_opened(at, event), (_UPDATED, (at, event.thread))]
        case MessageEnded(message=id, stop=stop, said_at=said_at):
            return [(_ENDED, (said_at or at, stop, id)), (_UPDATED, (at, event.thread))]
        case PromptSent(message=id, operation=operation, n=n):
            return [(_SENT, (operation, n, id)), (_UPDATED, (at, event.thread))]
        case PromptDropped(message=id):
            return [(sql, (id,)) for sql in _DROPPED]


def _opened(at: int, event: MessageOpened) -> Statement:
    named = (event.message, event.thread, event.n, event.role, event.agent, event.operation)
    return (_OPENED, (*named, int(event.queued), event.said_at or at, event.thread))


_OPENED = """
INSERT INTO messages (id, thread, n, role, agent, operation, queued, opened_at)
SELECT ?, ?, ?, ?, ?, ?, ?, ? WHERE EXISTS (SELECT 1 FROM threads WHERE id = ?) ON CONFLICT DO NOTHING"""
_ENDED = "UPDATE messages SET ended_at = ?, stop = ? WHERE id = ? AND ended_at IS NULL"
_SENT = "UPDATE OR IGNORE messages SET queued = 0, operation = ?, n = ? WHERE id = ? AND queued"
_UPDATED = "UPDATE threads SET updated_at = max(updated_at, ?) WHERE id = ?"
_WAS_QUEUED = "(SELECT id FROM messages WHERE id = ? AND queued)"
_DROPPED = (
    f"DELETE FROM growths WHERE message IN {_WAS_QUEUED}",
    f"DELETE FROM parts WHERE message IN {_WAS_QUEUED}",
    "DELETE FROM messages WHERE id = ? AND queued",
)
