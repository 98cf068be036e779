"""What events about calls change: the call's row, the files it writes, and the rules it was decided by."""

from handrail.store.actor import actor_from_text
from handrail.store.event import (
    CallClientGone,
    CallHandedBack,
    CallOpened,
    CallSettled,
    CallStarted,
    CallStopped,
)
from handrail.store.projection.files import changes
from handrail.store.projection.statement import Statement
from handrail.store.projection.uses import used_by_settling, used_by_start

_OfCall = CallOpened | CallStarted | CallHandedBack | CallClientGone | CallSettled | CallStopped


def statements(seq: int, at: int, event: _OfCall) -> list[Statement]:
    match event:
        case CallOpened():
            return [_opened(seq, at, event)]
        case CallStarted():
            return _started(seq, at, event)
        case CallHandedBack(call=id):
            return [(_HANDED_BACK, (at, id))]
        case CallClientGone(call=id):
            return [(_CLIENT_GONE, (at, id))]
        case CallSettled():
            return _settled(seq, at, event)
        case CallStopped(call=id):
            return [(_STOPPED, (at, seq, id))]


def _opened(seq: int, at: int, event: CallOpened) -> Statement:
    who = event.caller
    named = (event.call, event.tool, event.title, who.door, who.client, who.key)
    placed = (who.workspace, who.thread, who.operation, event.assurance)
    return (_OPENED, (*named, *placed, at, seq))


def _started(seq: int, at: int, event: CallStarted) -> list[Statement]:
    return [
        (_STARTED, (at, seq, event.allowed_by, event.call)),
        *(used_by_start(seq, at, rule, event.call) for rule in dict.fromkeys(event.rules)),
        *changes(seq, at, event.call, event.files),
    ]


def _settled(seq: int, at: int, event: CallSettled) -> list[Statement]:
    stopped_at = at if event.receipt.stopped else None
    row = (event.ending, event.by, event.message, at, seq, stopped_at, event.call)
    rule = actor_from_text(event.by).rule if event.ending == "denied" else None
    return [(_SETTLED, row), *([used_by_settling(seq, at, rule, event.call)] if rule else [])]


_OPENED = """
INSERT INTO calls (id, tool, title, door, client, caller_key, workspace, thread, operation, assurance,
                   opened_at, opened_seq)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"""
_STARTED = """
UPDATE calls SET started_at = ?, started_seq = ?, allowed_by = ? WHERE id = ? AND started_seq IS NULL"""
_HANDED_BACK = "UPDATE calls SET handed_back_at = ? WHERE id = ? AND handed_back_at IS NULL"
_CLIENT_GONE = "UPDATE calls SET client_gone_at = ? WHERE id = ? AND client_gone_at IS NULL"
_SETTLED = """
UPDATE calls SET ending = ?, settled_by = ?, message = ?, settled_at = ?, settled_seq = ?, stopped_at = ?
WHERE id = ? AND ending IS NULL"""
_STOPPED = "UPDATE calls SET stopped_at = ?, stopped_seq = ? WHERE id = ? AND stopped_seq IS NULL"
