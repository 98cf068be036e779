"""Rules and trusted folders: events, records, queries and SQL, with usage counts of each rule.

Rules from configuration files are not recorded here. A removed rule keeps its row, with who removed it.
"""

import json
import sqlite3
from dataclasses import replace
from functools import cache
from typing import Literal, NamedTuple

from pydantic import TypeAdapter

from handrail.lazy_dataclass import dataclass
from handrail.store.actor import rule_actor
from handrail.store.database import Statement
from handrail.store.query import Queries, column_names, columns_of
from handrail.store.values import (
    Rule,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleAdded:
    """A rule is in force."""

    kind: Literal["RuleAdded"] = "RuleAdded"
    rule: Rule
    by: str
    approval: str | None = None
    """The approval it was created from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRemoved:
    """A rule is no longer in force."""

    kind: Literal["RuleRemoved"] = "RuleRemoved"
    rule: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleDisabled:
    """A person switched a rule off. It is kept, and decides nothing until it is enabled again."""

    kind: Literal["RuleDisabled"] = "RuleDisabled"
    rule: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleEnabled:
    """A person switched a rule on again."""

    kind: Literal["RuleEnabled"] = "RuleEnabled"
    rule: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RulesOrdered:
    """A person put rules of one effect and scope in this order: the first one that matches is named and counted."""

    kind: Literal["RulesOrdered"] = "RulesOrdered"
    rules: tuple[str, ...]
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderTrusted:
    """A person trusted a folder: general rules apply in it, and its config file may allow calls."""

    kind: Literal["FolderTrusted"] = "FolderTrusted"
    folder: str
    config: str | None
    """SHA-256 of its `.handrail/config.toml` as the person saw it; any other content is not trusted."""
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderDistrusted:
    """A person withdrew trust: calls that change something in the folder need approval again."""

    kind: Literal["FolderDistrusted"] = "FolderDistrusted"
    folder: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyAccepted:
    """A person accepted rules, trusted folders or settings that had changed without Handrail."""

    kind: Literal["PolicyAccepted"] = "PolicyAccepted"
    by: str
    changes: tuple[str, ...]
    """Each change in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRecord:
    """A rule created by a person, in force until `removed_at`."""

    rule: Rule
    by: str
    approval: str | None
    """The approval it was created from."""
    added_at: int
    removed_at: int | None
    removed_by: str | None


class RuleUse(NamedTuple):
    """How often a rule decided a call, and its last use."""

    hits: int
    last_used_at: int
    last_call: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderRecord:
    """A trusted folder."""

    folder: str
    config: str | None
    """SHA-256 of its config file when it was trusted; None if it had no such file."""
    by: str
    trusted_at: int


class RuleQueries(Queries):
    """Queries for rules and trusted folders."""

    async def all(self) -> list[RuleRecord]:
        """Return all recorded rules, removed ones included, oldest first."""
        return await self._all(rule_of, "SELECT * FROM rules ORDER BY added_seq")

    async def uses(self) -> dict[str, RuleUse]:
        """Return the usage of each rule by id, of built-in rules by name."""
        found = await self._all(tuple, "SELECT rule, hits, last_used_at, last_call FROM rule_uses")
        return {rule: RuleUse(hits, last_used_at, last_call) for rule, hits, last_used_at, last_call in found}

    async def folders(self) -> list[FolderRecord]:
        """Return the trusted folders, sorted by path."""
        return await self._all(folder_of, "SELECT * FROM folders ORDER BY folder")


def rule_of(row: sqlite3.Row) -> RuleRecord:
    return RuleRecord(rule=_rule_adapter().validate_json(row["rule"]), **columns_of(row, _RULE_COLUMNS))


def folder_of(row: sqlite3.Row) -> FolderRecord:
    return FolderRecord(**columns_of(row, _FOLDER_COLUMNS))


@cache
def _rule_adapter() -> TypeAdapter[Rule]:
    return TypeAdapter(Rule)


_RULE_COLUMNS = column_names(RuleRecord, "rule")
_FOLDER_COLUMNS = column_names(FolderRecord)

RuleEvent = (
    RuleAdded | RuleRemoved | RuleDisabled | RuleEnabled | RulesOrdered | FolderTrusted | FolderDistrusted
)
RULE_KINDS = (
    "RuleAdded",
    "RuleRemoved",
    "RuleDisabled",
    "RuleEnabled",
    "RulesOrdered",
    "FolderTrusted",
    "FolderDistrusted",
)


def encode_rule(rule: Rule) -> str:
    """A rule as JSON. Fields that are newer than stored digests of rules are left out where they say nothing."""
    newer = {name for name in ("arguments", "disabled", "rank") if not getattr(rule, name)}
    return _rule_adapter().dump_json(rule, exclude=newer).decode()


def apply_to_rules(rules: dict[str, Rule], event: RuleEvent) -> None:
    """Change these rules, by id, as the tables are changed by the event."""
    match event:
        case RuleAdded(rule=rule):
            rules[rule.id] = rule
        case RuleRemoved(rule=id):
            rules.pop(id, None)
        case RuleDisabled(rule=id) | RuleEnabled(rule=id) if id in rules:
            rules[id] = replace(rules[id], disabled=isinstance(event, RuleDisabled))
        case RulesOrdered(rules=ids):
            for rank, each in enumerate(ids, 1):
                if each in rules:
                    rules[each] = replace(rules[each], rank=rank)
        case _:
            pass


def statement(seq: int, at: int, event: RuleEvent) -> Statement:  # noqa: PLR0911 - one for each event
    match event:
        case RuleAdded(rule=rule, by=by, approval=approval):
            return (_ADDED, (rule.id, encode_rule(rule), by, approval, at, seq))
        case RuleDisabled(rule=id):
            return (_DISABLED, (id,))
        case RuleEnabled(rule=id):
            return (_ENABLED, (id,))
        case RulesOrdered(rules=ids):
            return (_ORDERED, (json.dumps(dict(zip(ids, range(1, len(ids) + 1), strict=True))),))
        case RuleRemoved(rule=id, by=by):
            return (_REMOVED, (at, by, id))
        case FolderTrusted(folder=folder, config=config, by=by):
            return (_TRUSTED, (folder, config, by, at))
        case FolderDistrusted(folder=folder):
            return (_DISTRUSTED, (folder,))


# A removed rule may be added again under the same id.
_ADDED = """
INSERT INTO rules (id, rule, "by", approval, added_at, added_seq) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET rule = excluded.rule, "by" = excluded."by", approval = excluded.approval,
    added_at = excluded.added_at, added_seq = excluded.added_seq, removed_at = NULL, removed_by = NULL
WHERE removed_at IS NOT NULL"""
_REMOVED = "UPDATE rules SET removed_at = ?, removed_by = ? WHERE id = ? AND removed_at IS NULL"
_DISABLED = (
    "UPDATE rules SET rule = json_set(rule, '$.disabled', json('true')) WHERE id = ? AND json_valid(rule)"
)
_ENABLED = "UPDATE rules SET rule = json_remove(rule, '$.disabled') WHERE id = ? AND json_valid(rule)"
_ORDERED = """
UPDATE rules SET rule = json_set(rule, '$.rank', places.value) FROM json_each(?) AS places
WHERE rules.id = places.key AND json_valid(rule)"""
_TRUSTED = """
INSERT INTO folders (folder, config, "by", trusted_at) VALUES (?, ?, ?, ?)
ON CONFLICT (folder) DO UPDATE SET config = excluded.config, "by" = excluded."by",
                                   trusted_at = excluded.trusted_at"""
_DISTRUSTED = "DELETE FROM folders WHERE folder = ?"


def used_by_answer(seq: int, at: int, rule: str, call: str, approval: str) -> Statement:
    """Count a use if this event is the approval's effective answer."""
    return (_BY_ANSWER, (rule, at, call, approval, seq))


def used_by_start(seq: int, at: int, rule: str, call: str) -> Statement:
    """Count a use if this event started the call, unless the rule also answered its approval."""
    return (_BY_START, (rule, at, call, call, seq, str(rule_actor(rule))))


def used_by_settling(seq: int, at: int, rule: str, call: str) -> Statement:
    """Count a use if this event settled the call, unless the rule also answered its approval."""
    return (_BY_SETTLING, (rule, at, call, call, seq, str(rule_actor(rule))))


# A SELECT before ON CONFLICT needs a WHERE, or SQLite parses the ON as a join condition.
_COUNT = "INSERT INTO rule_uses (rule, hits, last_used_at, last_call) SELECT ?, 1, ?, ? WHERE"
_ONCE_MORE = """
ON CONFLICT (rule) DO UPDATE SET hits = hits + 1, last_used_at = excluded.last_used_at,
                                 last_call = excluded.last_call"""
_NOT_ANSWERED = """
AND NOT EXISTS (SELECT 1 FROM approvals WHERE approvals.id = calls.approval AND approvals.answered_by = ?)"""
_BY_ANSWER = f"{_COUNT} EXISTS (SELECT 1 FROM approvals WHERE id = ? AND answered_seq = ?) {_ONCE_MORE}"
_BY_START = f"""
{_COUNT} EXISTS (SELECT 1 FROM calls WHERE id = ? AND started_seq = ? {_NOT_ANSWERED}) {_ONCE_MORE}"""
_BY_SETTLING = f"""
{_COUNT} EXISTS (SELECT 1 FROM calls WHERE id = ? AND settled_seq = ? {_NOT_ANSWERED}) {_ONCE_MORE}"""
