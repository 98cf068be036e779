"""opencode's transcripts: the SQLite database `~/.local/share/opencode/opencode.db`.

Tables session, message and part; `data` of the last two is JSON. The database is another program's: it is opened
read-only, its schema is not trusted, and every query has a deadline.
"""

import contextlib
import sqlite3
import time
from collections.abc import Generator
from pathlib import Path

from pydantic import JsonValue

from handrail.clients.transcripts.transcript import (
    MOST_MESSAGES,
    Json,
    Transcript,
    TranscriptBuilder,
    TranscriptSummary,
    get_object,
    get_text,
    parse_json,
    title_from_prompt,
)

QUERY_SECONDS = 5.0
"""Bounds the time of all queries on one connection."""
LONGEST_ROW = 8_000_000
"""Bytes of one message or part that is read; bounds memory."""
_STEPS = 10_000
"""Instructions of SQLite between two looks at the clock."""
_SESSIONS = (
    "SELECT id, title, directory, time_updated FROM session WHERE parent_id IS NULL "
    "ORDER BY time_updated DESC LIMIT ?"
)
_MESSAGES = (
    "SELECT id, time_created, data FROM message WHERE session_id = ? AND length(data) < ? "
    "ORDER BY time_created DESC, id DESC LIMIT ?"
)
_PARTS = "SELECT data FROM part WHERE message_id = ? AND length(data) < ? ORDER BY id"


def list_opencode(database: Path, limit: int) -> list[TranscriptSummary]:
    """The newest sessions; none if the database cannot be read."""
    with contextlib.suppress(sqlite3.Error), _open(database) as connection:
        return [
            TranscriptSummary(
                client="opencode",
                session=str(session),
                title=title_from_prompt(str(title)),
                folder=str(folder),
                updated_at=_as_time(updated),
                size=None,
            )
            for session, title, folder, updated in connection.execute(_SESSIONS, (limit,))
        ]
    return []


def read_opencode(database: Path, session: str) -> Transcript:
    """The newest messages of a session; none if the database cannot be read."""
    builder = TranscriptBuilder()
    with contextlib.suppress(sqlite3.Error), _open(database) as connection:
        rows = connection.execute(_MESSAGES, (session, LONGEST_ROW, MOST_MESSAGES + 1)).fetchall()
        builder.shortened = len(rows) > MOST_MESSAGES
        for message, created, data in reversed(rows[:MOST_MESSAGES]):
            parts = [parse_json(part) for (part,) in connection.execute(_PARTS, (message, LONGEST_ROW))]
            objects = [part for part in parts if isinstance(part, dict)]
            builder.skipped += len(parts) - len(objects)
            _add_message(parse_json(data), objects, builder, _as_time(created))
    return builder.build()


@contextlib.contextmanager
def _open(database: Path) -> Generator[sqlite3.Connection]:
    connection = sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True, timeout=1.0)
    try:
        deadline = time.monotonic() + QUERY_SECONDS
        connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA query_only = ON")
        yield connection
    finally:
        connection.close()


def _as_time(value: object) -> int:
    return max(0, value) if isinstance(value, int) else 0


def _add_message(message: JsonValue, parts: list[Json], builder: TranscriptBuilder, at: int) -> None:
    if get_text(message, "role") == "user":
        texts = [get_text(part, "text") for part in parts if _is_typed(part)]
        builder.add_prompt("\n".join(filter(None, texts)), at)
        return
    for part in parts:
        if not _add_part(part, builder, at):
            builder.skipped += 1


def _is_typed(part: Json) -> bool:
    return part.get("type") == "text" and not part.get("synthetic")


_OTHER_PARTS = frozenset(
    ("step-start", "step-finish", "snapshot", "patch", "file", "agent", "subtask", "retry", "compaction")
)


def _add_part(part: Json, builder: TranscriptBuilder, at: int) -> bool:
    match part.get("type"):
        case "text":
            builder.add("text", get_text(part, "text"), at)
        case "reasoning":
            builder.add("thought", get_text(part, "text"), at)
        case "tool":
            state, call = get_object(part, "state"), get_text(part, "callID")
            builder.add_call(call, get_text(part, "tool"), get_object(state, "input"), at)
            if state.get("status") in ("completed", "error"):
                output = get_text(state, "output") or get_text(state, "error")
                builder.add_result(call, output, failed=state.get("status") == "error")
        case kind:
            return kind in _OTHER_PARTS
    return True
