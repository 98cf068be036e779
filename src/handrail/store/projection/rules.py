"""What events about rules and trusted folders change. A removed rule stays in the record, with who removed it."""

from pydantic import TypeAdapter

from handrail.store.event import FolderDistrusted, FolderTrusted, RuleAdded, RuleRemoved
from handrail.store.projection.statement import Statement
from handrail.store.value import Rule

_OfRule = RuleAdded | RuleRemoved | FolderTrusted | FolderDistrusted
_rules: TypeAdapter[Rule] = TypeAdapter(Rule)


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
