"""What of a message has to be written to disk, as statements.

Owns the tables parts, growths and thread_state. An open part's text is written once whole and then by what it grew,
so that a long answer does not rewrite itself ten times a second; when its message ends, it is written whole again.
Nothing is written of a message that is not on disk, or no longer.
"""

import json

from handrail.store.projection.statement import Statement
from handrail.store.thread.message import Message, Part
from handrail.store.value import Json


def statements_of(message: Message) -> list[Statement]:
    """All that is not yet given to the disk; from now on it is."""
    whole = message.stop is not None
    return [
        statement
        for part in message.parts
        if part.safe is None or part.safe < part.length or (whole and part.grown)
        for statement in (
            _whole(message.id, part) if whole or part.safe is None else _grown(message.id, part)
        )
    ]


def state_statement(thread: str, name: str, data: Json) -> Statement:
    return (_STATE, (thread, name, json.dumps(data), thread))


def size_of(statements: list[Statement]) -> int:
    """About what they hold in memory."""
    return sum(len(value) for _, values in statements for value in values if isinstance(value, str))


def _whole(message: str, part: Part) -> list[Statement]:
    part.safe, part.grown = part.length, False
    values = (message, part.n, part.kind, part.text, json.dumps(part.data), message)
    return [(_PUT, values), (_FOLDED, (message, part.n))]


def _grown(message: str, part: Part) -> list[Statement]:
    at = part.safe or 0
    part.safe, part.grown = part.length, True
    return [(_GROWN, (message, part.n, at, part.text[at:], message))]


_KNOWN = "WHERE EXISTS (SELECT 1 FROM messages WHERE id = ?)"
_PUT = f"INSERT OR REPLACE INTO parts (message, n, kind, text, data) SELECT ?, ?, ?, ?, ? {_KNOWN}"
_FOLDED = "DELETE FROM growths WHERE message = ? AND n = ?"
_GROWN = f"INSERT OR IGNORE INTO growths (message, n, at, text) SELECT ?, ?, ?, ? {_KNOWN}"
_STATE = """
INSERT OR REPLACE INTO thread_state (thread, name, data)
SELECT ?, ?, ? WHERE EXISTS (SELECT 1 FROM threads WHERE id = ?)"""
