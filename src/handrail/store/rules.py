"""Standing answers, and the folders in which they hold.

Questions about rules and trusted folders. Does not know the rules of files, which are in no record.

What events about rules and trusted folders change. A removed rule stays in the record, with who removed it.

How often each rule decided something.
"""

import sqlite3
from dataclasses import dataclass
from typing import Literal, NamedTuple

from pydantic import TypeAdapter

from handrail.store.actor import rule_actor
from handrail.store.database import Statement
from handrail.store.query import Queries, column_names, columns_of
from handrail.store.values import (
    Rule,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleAdded:
    """A standing answer holds from now on."""

    kind: Literal["RuleAdded"] = "RuleAdded"
    rule: Rule
    by: str
    approval: str | None = None
    """The question it was made from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRemoved:
    """A standing answer holds no longer."""

    kind: Literal["RuleRemoved"] = "RuleRemoved"
    rule: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderTrusted:
    """Rules that are not about this very folder hold in it too, and its own file may allow things."""

    kind: Literal["FolderTrusted"] = "FolderTrusted"
    folder: str
    config: str | None
    """SHA-256 of its `.handrail/config.toml` as the person saw it; another content is not trusted."""
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderDistrusted:
    """Whatever acts in this folder asks again."""

    kind: Literal["FolderDistrusted"] = "FolderDistrusted"
    folder: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRecord:
    """A standing answer that a person made, in force until `removed_at`."""

    rule: Rule
    by: str
    approval: str | None
    """The question it was made from."""
    added_at: int
    removed_at: int | None
    removed_by: str | None


class Use(NamedTuple):
    """How often a rule decided something, and when last."""

    hits: int
    last_used_at: int
    last_call: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderRecord:
    """A folder that is trusted."""

    folder: str
    config: str | None
    """SHA-256 of its own file as it was trusted; None when it had none."""
    by: str
    trusted_at: int


class RuleQueries(Queries):
    """What is known of rules and folders."""

    async def all(self) -> list[RuleRecord]:
        """Every rule a person ever made, oldest first; the removed ones say so."""
        return await self._all(rule_of, "SELECT * FROM rules ORDER BY added_seq")

    async def uses(self) -> dict[str, Use]:
        """How often each rule decided something, by its id; built-in ones by their name."""
        found = await self._all(tuple, "SELECT rule, hits, last_used_at, last_call FROM rule_uses")
        return {rule: Use(hits, last_used_at, last_call) for rule, hits, last_used_at, last_call in found}

    async def folders(self) -> list[FolderRecord]:
        """Those that are trusted, by their name."""
        return await self._all(folder_of, "SELECT * FROM folders ORDER BY folder")


def rule_of(row: sqlite3.Row) -> RuleRecord:
    return RuleRecord(rule=_rules.validate_json(row["rule"]), **columns_of(row, _RULE_COLUMNS))


def folder_of(row: sqlite3.Row) -> FolderRecord:
    return FolderRecord(**columns_of(row, _FOLDER_COLUMNS))


_rules: TypeAdapter[Rule] = TypeAdapter(Rule)
_RULE_COLUMNS = column_names(RuleRecord, "rule")
_FOLDER_COLUMNS = column_names(FolderRecord)

_OfRule = RuleAdded | RuleRemoved | FolderTrusted | FolderDistrusted


def statement(seq: int, at: int, event: _OfRule) -> Statement:
    match event:
        case RuleAdded(rule=rule, by=by, approval=approval):
            return (_ADDED, (rule.id, _rules.dump_json(rule).decode(), by, approval, at, seq))
        case RuleRemoved(rule=id, by=by):
            return (_REMOVED, (at, by, id))
        case FolderTrusted(folder=folder, config=config, by=by):
            return (_TRUSTED, (folder, config, by, at))
        case FolderDistrusted(folder=folder):
            return (_DISTRUSTED, (folder,))


# One that was removed may be added again under its id.
_ADDED = """
INSERT INTO rules (id, rule, "by", approval, added_at, added_seq) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET rule = excluded.rule, "by" = excluded."by", approval = excluded.approval,
    added_at = excluded.added_at, added_seq = excluded.added_seq, removed_at = NULL, removed_by = NULL
WHERE removed_at IS NOT NULL"""
_REMOVED = "UPDATE rules SET removed_at = ?, removed_by = ? WHERE id = ? AND removed_at IS NULL"
_TRUSTED = """
INSERT INTO folders (folder, config, "by", trusted_at) VALUES (?, ?, ?, ?)
ON CONFLICT (folder) DO UPDATE SET config = excluded.config, "by" = excluded."by",
                                   trusted_at = excluded.trusted_at"""
_DISTRUSTED = "DELETE FROM folders WHERE folder = ?"


def used_by_answer(seq: int, at: int, rule: str, call: str, approval: str) -> Statement:
    """Counts when this answer is the one that holds."""
    return (_BY_ANSWER, (rule, at, call, approval, seq))


def used_by_start(seq: int, at: int, rule: str, call: str) -> Statement:
    """Counts when this is how the call started, unless the rule had answered its question."""
    return (_BY_START, (rule, at, call, call, seq, str(rule_actor(rule))))


def used_by_settling(seq: int, at: int, rule: str, call: str) -> Statement:
    """Counts when this is how the call ended, unless the rule had answered its question."""
    return (_BY_SETTLING, (rule, at, call, call, seq, str(rule_actor(rule))))


# A SELECT before ON CONFLICT needs its WHERE, or the two would be read as a join.
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
