"""How often each rule decided something.

A rule is used once by a call, wherever that shows first: in the answer it gave to an open question, in the start it
allowed, or in the denial. Built-in rules are counted by their names. Does not know what a rule says.
"""

from handrail.store.actor import rule_actor
from handrail.store.projection.statement import Statement


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
