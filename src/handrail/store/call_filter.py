"""SQL conditions on calls for the terms of a search (`search_query`)."""

import json
from collections.abc import Callable, Iterable

from handrail.store.actor import NOBODY, PERSON
from handrail.store.approvals import IS_OPEN
from handrail.store.call_times import RAN, WAITED
from handrail.store.calls import EXIT_FAILED
from handrail.store.query import Value, Where
from handrail.store.search_query import ENDED, OPEN, Term


def add_field(where: Where, term: Term) -> None:
    """Add a term with a key."""
    _add(where, term, *_any_of(term))


def add_word(where: Where, term: Term, places: frozenset[str], calls: Iterable[str]) -> None:
    """Add a word or phrase. `calls` have it in their input or output."""
    condition, values = f"calls.id IN {_LISTED}", (json.dumps([*calls]),)
    if "title" not in places:
        _add(where, term, condition, values)
    else:
        _add(where, term, f"({_SHOWN} OR {condition})", (*[contains(term.text)] * 4, *values))


def _add(where: Where, term: Term, condition: str, values: Iterable[Value]) -> None:
    # A column that is NULL is not what was asked for, and so it is what `-` asks for.
    where.given(f"NOT coalesce({condition}, 0)" if term.negated else condition, values)


def contains(text: str) -> str:
    """The LIKE pattern for a text anywhere in a column."""
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


def _any_of(term: Term) -> tuple[str, tuple[Value, ...]]:
    """Return the SQL condition of a term with a key, and its values: any of the alternatives holds."""
    if term.key == "id":  # a selection may name a thousand
        return f"calls.id IN {_LISTED}", (json.dumps(term.values),)
    if term.key in ("waited", "ran"):
        parts = [_duration(term.key, value) for value in term.values]
    else:
        parts = [_alternative(term.key, value) for value in term.values]
    return " OR ".join(sql for sql, _ in parts).join("()"), tuple(one for _, given in parts for one in given)


def _alternative(key: str, value: str) -> tuple[str, tuple[Value, ...]]:
    if key in _SPECIAL:
        return _SPECIAL[key](value)
    sql, pattern = _SIMPLE[key]
    return sql, (pattern(value),)


def _status(value: str) -> tuple[str, tuple[Value, ...]]:
    if value == "open":
        return "calls.ending IS NULL", ()
    if value == "ended":
        return "calls.ending IS NOT NULL", ()
    if value == "failed":
        return f"(calls.ending = 'failed' OR {EXIT_FAILED})", ()
    if value == "done":
        return "(calls.ending = 'done' AND coalesce(calls.exit_code, 0) = 0 AND calls.signal IS NULL)", ()
    if value in ENDED:
        return "calls.ending = ?", (value,)
    asked = "EXISTS" if value == OPEN[0] else "NOT EXISTS"
    return f"(calls.ending IS NULL AND {asked} ({_QUESTION}))", ()


def _by(value: str) -> tuple[str, tuple[Value, ...]]:
    if value == str(NOBODY):
        return "calls.allowed_by = ?", (value,)
    wanted = f"{PERSON}%" if value in ("you", "me", "person") else contains(value)
    columns = ("calls.allowed_by", "calls.settled_by", f"(SELECT answered_by {_APPROVAL})")
    return " OR ".join(rf"{column} LIKE ? ESCAPE '\'" for column in columns), (wanted,) * len(columns)


def _exit(value: str) -> tuple[str, tuple[Value, ...]]:
    if value == "failed":
        return "(calls.exit_code <> 0 OR calls.signal IS NOT NULL)", ()
    if value.startswith("SIG"):
        return "calls.signal = ?", (value,)
    return "calls.exit_code = ?", (int(value),)


def _duration(key: str, value: str) -> tuple[str, tuple[Value, ...]]:
    sign = "<" if value.startswith("<") else ">="
    return f"{WAITED if key == 'waited' else RAN} {sign} ?", (int(value.lstrip("<>=")),)


_LISTED = "(SELECT value FROM json_each(?))"
_APPROVAL = "FROM approvals WHERE approvals.id = calls.approval"
_QUESTION = f"SELECT 1 FROM approvals WHERE approvals.call = calls.id AND {IS_OPEN}"
_THREADS = r"SELECT id FROM threads WHERE id = ? OR title LIKE ? ESCAPE '\'"
_SHOWN = " OR ".join(
    rf"{column} LIKE ? ESCAPE '\'" for column in ("calls.title", "calls.tool", "calls.client", "calls.id")
)
"""What a list shows of a call."""
_SIMPLE: dict[str, tuple[str, Callable[[str], Value]]] = {
    "tool": (r"calls.tool LIKE ? ESCAPE '\'", contains),
    "agent": (r"calls.client LIKE ? ESCAPE '\'", contains),
    "folder": (r"calls.workspace LIKE ? ESCAPE '\'", contains),
    "risk": (f"(SELECT risk {_APPROVAL}) = ?", str),
    "terminal": ("calls.terminal = ?", str),
    "session": ("calls.caller_key = ?", lambda value: value.replace(":", " ", 1)),
    "since": ("calls.opened_at >= ?", int),
    "before": ("calls.opened_at < ?", int),
}
_SPECIAL: dict[str, Callable[[str], tuple[str, tuple[Value, ...]]]] = {
    "status": _status,
    "by": _by,
    "thread": lambda value: (f"calls.thread IN ({_THREADS})", (value, contains(value))),
    "asked": lambda value: ("calls.approval IS NOT NULL", ()) if value == "you" else _by("nobody"),
    "exit": _exit,
}
