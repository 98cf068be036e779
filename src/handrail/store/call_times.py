"""SQL for how long a call waited for a person, and how long it ran: the one place where both are derived."""

_NOW = "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"
_REVIEWED_UNTIL = f"""coalesce(
    (SELECT approvals.answered_at FROM approvals WHERE approvals.id = calls.approval), calls.settled_at, {_NOW}
)"""
_REVIEW = f"iif(calls.reviewed_at IS NULL, 0, max(0, {_REVIEWED_UNTIL} - calls.reviewed_at))"
# Until it was allowed, a call that asked has done nothing but wait.
WAITED = f"""(iif(calls.asked_at IS NULL, 0,
    max(0, coalesce(calls.started_at, calls.settled_at, {_NOW}) - calls.opened_at)) + {_REVIEW})"""
RAN = f"""iif(calls.started_at IS NULL, 0,
    max(0, coalesce(calls.settled_at, {_NOW}) - calls.started_at - {_REVIEW}))"""
ALIKE = f"""
SELECT {RAN} FROM calls
WHERE tool = ? AND title = ? AND ending = 'done' AND started_at IS NOT NULL
ORDER BY opened_seq DESC LIMIT ?"""
"""How long the latest calls of a tool with a title ran."""
