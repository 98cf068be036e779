"""`session/list`: the sessions that an agent has kept, parsed leniently and bounded.

An agent lists sessions of its own command line too. It does not know which of them are threads.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from handrail.agents.lenient_json import name, record, records, text
from handrail.lazy_dataclass import dataclass
from handrail.store.values import Json

if TYPE_CHECKING:
    from handrail.agents.acp.agent import Agent

MOST_PAGES = 20
"""Pages that are asked for; bounds the wait for an agent whose list never ends."""
MOST_SESSIONS = 500
"""Sessions that are kept of the list; more cannot be chosen from."""
LONGEST_TITLE = 200
LONGEST_ID = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedSession:
    """One session in an agent's list."""

    id: str
    cwd: str
    """Its folder, an absolute path."""
    title: str
    updated_at: int | None
    """Milliseconds since 1970; None if the agent does not say."""


async def list_sessions(agent: "Agent", cwd: str | None) -> list[ListedSession]:
    """The sessions of an agent, newest first; of one folder, or of all. Raises AgentError."""
    found: dict[str, ListedSession] = {}
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        params: Json = {**({"cwd": cwd} if cwd else {}), **({"cursor": cursor} if cursor else {})}
        answer = record(await agent.request("session/list", params))
        found |= {each.id: each for each in _parse_sessions(answer)}
        cursor = text(answer.get("nextCursor")) or None
        if cursor is None or len(found) >= MOST_SESSIONS:
            break
    # Some agents ignore `cwd`.
    listed = [each for each in found.values() if cwd is None or _is_same_folder(each.cwd, cwd)]
    return sorted(listed, key=lambda each: each.updated_at or 0, reverse=True)[:MOST_SESSIONS]


def _is_same_folder(one: str, other: str) -> bool:
    return Path(one) == Path(other)


def _parse_sessions(answer: Json) -> Iterator[ListedSession]:
    """The valid entries of one page."""
    for entry in records(answer.get("sessions")):
        session, cwd = name(entry.get("sessionId")), text(entry.get("cwd"))
        if session and len(session) <= LONGEST_ID and cwd.startswith("/"):
            title = " ".join(text(entry.get("title")).split())[:LONGEST_TITLE]
            updated_at = _parse_time(entry.get("updatedAt"))
            yield ListedSession(id=session, cwd=cwd, title=title, updated_at=updated_at)


def _parse_time(value: object) -> int | None:
    """An ISO 8601 time, or None."""
    try:
        time = datetime.fromisoformat(text(value))
    except ValueError:
        return None
    aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return int(aware.timestamp() * 1000)
