"""The search language: words, "quoted phrases", `key:value`, and `-` for "not"; pure.

One parser for the page, the command line and every list. It knows the keys and their values, but no table.
"""

import re
from collections.abc import Callable
from datetime import datetime, timedelta

from handrail.lazy_dataclass import dataclass

STATUSES = ("waiting", "running", "done", "failed", "denied", "cancelled", "completed", "interrupted")
OPEN, ENDED = STATUSES[:2], STATUSES[2:]
_GROUPS = {"open": OPEN, "ended": ENDED}
PLACES = ("title", "input", "output", "message", "terminal")
"""Where a word can be found: values of `in:`."""
TERMS_MAX = 40
"""Bounds the cost of one query."""

VALUES_MAX, VALUE_MAX = 50, 500
"""Alternatives of a key, and characters of one or of a word: more would exceed limits of SQLite."""


class BadQuery(Exception):
    """The query has an unknown key, or a value that its key does not take."""


@dataclass(frozen=True, slots=True)
class Term:
    """One condition: a word or phrase if `key` is empty, otherwise a key with its alternatives."""

    key: str
    values: tuple[str, ...]
    negated: bool = False
    quoted: bool = False

    @property
    def text(self) -> str:
        return self.values[0]


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """A parsed query: every term must hold."""

    terms: tuple[Term, ...] = ()

    @property
    def words(self) -> tuple[Term, ...]:
        return tuple(term for term in self.terms if not term.key)

    @property
    def fields(self) -> tuple[Term, ...]:
        """The terms with a key that narrows, without `in:`, which selects where to look for the words."""
        return tuple(term for term in self.terms if term.key not in ("", "in"))

    @property
    def places(self) -> frozenset[str]:
        """Where to look for the words."""
        wanted = [term for term in self.terms if term.key == "in"]
        included = {value for term in wanted if not term.negated for value in term.values}
        excluded = {value for term in wanted if term.negated for value in term.values}
        return frozenset(included or PLACES) - excluded

    def accepts_status(self, status: str) -> bool:
        """Whether the terms about the status hold for this one."""
        return all(
            term.negated != any(status in _GROUPS.get(value, (value,)) for value in term.values)
            for term in self.terms
            if term.key == "status"
        )

    def without(self, *keys: str) -> "SearchQuery":
        return SearchQuery(tuple(term for term in self.terms if term.key not in keys))


_TERM = re.compile(r'(-?)(?:([A-Za-z_]+):)?("(?:[^"]*)"?|\S+)')


def parse_query(text: str, now: datetime | None = None) -> SearchQuery:
    """Parse the query that a person typed. Times become milliseconds since 1970. Raises BadQuery."""
    now = now or datetime.now().astimezone()
    found = [_term(match, now) for match in _TERM.finditer(text)]
    if len(found) > TERMS_MAX:
        raise BadQuery(f"The query has {len(found)} terms; at most {TERMS_MAX} are allowed.")
    for term in found:
        if term.key != "id" and (len(term.values) > VALUES_MAX or max(map(len, term.values)) > VALUE_MAX):
            raise BadQuery(
                f"A term of the query is too long: at most {VALUES_MAX} values of {VALUE_MAX} characters."
            )
    return SearchQuery(tuple(term for term in found if term.text))


def _term(match: re.Match[str], now: datetime) -> Term:
    minus, key, value = match[1], (match[2] or "").lower(), match[3]
    quoted = value.startswith('"')
    if quoted:
        value = value.strip('"')
    if not key or value.startswith("//"):  # a URL is a word
        return _word(minus, value if not key else f"{match[2]}:{value}", quoted)
    name = _ALIASES.get(key, key)
    if name not in KEYS:
        raise BadQuery(
            f"There is no key `{key}`. Known: {', '.join(KEYS)}. To find the text itself, put it in quotes."
        )
    # The session and a quoted value may contain a comma.
    values = (value,) if quoted or name == "session" else tuple(filter(None, value.split(",")))
    check = KEYS[name]
    return Term(name, tuple(check(name, one, now) for one in values) or ("",), negated=bool(minus))


def _word(minus: str, word: str, quoted: bool) -> Term:
    """A short word after `-`, or one after `--`, is more likely an option of a command than what nobody wants."""
    if minus and not quoted and (len(word) <= OPTION_MAX or word.startswith("-")):
        return Term("", (minus + word,))
    return Term("", (word,), negated=bool(minus) and bool(word), quoted=quoted)


OPTION_MAX = 2
"""Characters of a word such as `rf` that `-` does not negate: people search for `rm -rf build`."""


def _any(_key: str, value: str, _now: datetime) -> str:
    return value


def _one_of(*allowed: str) -> Callable[[str, str, datetime], str]:
    def check(key: str, value: str, _now: datetime) -> str:
        if value.lower() not in allowed:
            raise BadQuery(f"`{key}:` takes {', '.join(allowed)}, not `{value}`.")
        return value.lower()

    return check


def _exit(key: str, value: str, _now: datetime) -> str:
    if value.lower() == "failed" or re.fullmatch(r"[0-9]{1,9}|SIG[A-Z0-9]+", value, re.IGNORECASE):
        return value.lower() if not value.lower().startswith("sig") else value.upper()
    raise BadQuery(f"`{key}:` takes a number, a signal such as SIGTERM, or `failed`, not `{value}`.")


_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_LENGTH = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)(ms|s|m|h|d|w)", re.IGNORECASE)


def _milliseconds(value: str) -> int | None:
    match = _LENGTH.fullmatch(value)
    return match and round(float(match[1]) * _UNITS[match[2].lower()])


def _length(key: str, value: str, _now: datetime) -> str:
    """`>10s`, `<1m`; without a sign, at least. Becomes `>=10000`."""
    sign, rest = (value[0], value[1:].lstrip("=")) if value[:1] in "<>" else (">", value)
    length = _milliseconds(rest)
    if length is None:
        raise BadQuery(f"`{key}:` takes a duration such as >10s or <2m, not `{value}`.")
    return f"{'<' if sign == '<' else '>='}{length}"


def _time(key: str, value: str, now: datetime) -> str:
    """A day, a day with a time, a time of today, `today`, `yesterday`, or a time ago such as 2h."""
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    days = {"today": today, "yesterday": today - timedelta(days=1), "now": now}
    ago = _milliseconds(value)
    try:
        if ago is not None:
            at = now - timedelta(milliseconds=ago)
        elif re.fullmatch(r"\d{1,2}:\d{2}", value):
            hour, minute = value.split(":")
            at = today.replace(hour=int(hour), minute=int(minute))
        else:
            at = days.get(value.lower()) or datetime.fromisoformat(value)
        return str(round((at if at.tzinfo else at.astimezone()).timestamp() * 1000))
    except (ValueError, OverflowError, OSError):
        raise BadQuery(
            f"`{key}:` takes a day (2026-11-17), a time (14:03), today, yesterday, or a time ago (2h, 3d), not `{value}`."
        ) from None


KEYS: dict[str, Callable[[str, str, datetime], str]] = {
    "status": _one_of(*STATUSES, "open", "ended"),
    "tool": _any,
    "agent": _any,
    "folder": _any,
    "risk": _one_of("low", "medium", "high"),
    "by": _any,
    "thread": _any,
    "terminal": _any,
    "session": _any,
    "asked": _one_of("you", "nobody"),
    "exit": _exit,
    "waited": _length,
    "ran": _length,
    "since": _time,
    "before": _time,
    "in": _one_of(*PLACES),
    "id": _any,
}
"""The known keys, each with the check of its value."""
_ALIASES = {
    "client": "agent",
    "workspace": "folder",
    "project": "folder",
    "after": "since",
    "until": "before",
}
