"""What events about conversations change. Deleting one leaves nothing that was said, and no title in the journal."""

from handrail.store.event import SessionBound, ThreadDeleted, ThreadOpened, ThreadRenamed
from handrail.store.projection.statement import Statement

_OfThread = ThreadOpened | ThreadRenamed | ThreadDeleted | SessionBound


def statements(seq: int, at: int, event: _OfThread) -> list[Statement]:
    match event:
        case ThreadOpened(thread=id):
            return [_opened(seq, at, event), (_TITLED, (id, seq))]
        case ThreadRenamed(thread=id, title=title, by=by):
            return [(_RENAMED, (title, by, id)), (_TITLED, (id, seq))]
        case ThreadDeleted(thread=id):
            return [*((sql, (id,)) for sql in _DELETED), (_DUE, ())]
        case SessionBound(thread=id, agent=agent, session=session, upto=upto):
            return [(_BOUND, (id, agent, session, upto, at, id))]


def _opened(seq: int, at: int, event: ThreadOpened) -> Statement:
    named = (event.thread, event.workspace, event.title, event.by, event.agent)
    return (_OPENED, (*named, event.forked_from, event.forked_at, at, at, seq))


_OPENED = """
INSERT INTO threads (id, workspace, title, titled_by, agent, forked_from, forked_at, created_at, updated_at, opened_seq)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"""
_TITLED = "INSERT INTO titles (thread, seq) VALUES (?, ?) ON CONFLICT DO NOTHING"
_RENAMED = "UPDATE threads SET title = ?, titled_by = ? WHERE id = ?"
_BOUND = """
INSERT INTO sessions (thread, agent, session, upto, bound_at)
SELECT ?, ?, ?, ?, ? WHERE EXISTS (SELECT 1 FROM threads WHERE id = ?)
ON CONFLICT (thread, agent) DO UPDATE SET session = excluded.session, upto = excluded.upto,
                                          bound_at = excluded.bound_at"""
_OF_IT = "WHERE message IN (SELECT id FROM messages WHERE thread = ?)"
_DELETED = (
    f"DELETE FROM growths {_OF_IT}",
    f"DELETE FROM parts {_OF_IT}",
    "DELETE FROM messages WHERE thread = ?",
    "DELETE FROM thread_state WHERE thread = ?",
    "DELETE FROM sessions WHERE thread = ?",
    "DELETE FROM activities WHERE thread = ?",
    "UPDATE events SET payload = NULL WHERE seq IN (SELECT seq FROM titles WHERE thread = ?)",
    "DELETE FROM titles WHERE thread = ?",
    "DELETE FROM threads WHERE id = ?",
)
_DUE = "UPDATE upkeep SET due = 1"
