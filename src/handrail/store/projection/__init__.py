"""What an event changes in the tables of nouns.

Pure: an event and its place become SQL statements. Every statement is total, so that no event can fail the
commit it shares with others: the first fact about a noun wins, and one about an unknown noun changes nothing.
Does not know connections or transactions.
"""

import json

from handrail.store.event import (
    ApprovalAnswered,
    ApprovalOpened,
    ApprovalWithdrawn,
    CallClientGone,
    CallHandedBack,
    CallOpened,
    CallSettled,
    CallStarted,
    CallStopped,
    CredentialIssued,
    CredentialRevoked,
    Event,
    TerminalAsked,
    TerminalEnded,
    TerminalForgotten,
    TerminalOpened,
    TerminalReleased,
    TerminalTaken,
    TerminalTyped,
    TerminalWentOn,
)

Statement = tuple[str, tuple[str | int | None, ...]]


_OfCall = CallOpened | CallStarted | CallHandedBack | CallClientGone | CallSettled | CallStopped
_OfApproval = ApprovalOpened | ApprovalAnswered | ApprovalWithdrawn
_OfTerminal = TerminalOpened | TerminalEnded | TerminalForgotten
_OfSharing = TerminalTyped | TerminalTaken | TerminalReleased | TerminalAsked | TerminalWentOn
_OfCredential = CredentialIssued | CredentialRevoked


def project(seq: int, at: int, event: Event) -> list[Statement]:
    match event:
        case (
            CallOpened() | CallStarted() | CallHandedBack() | CallClientGone() | CallSettled() | CallStopped()
        ):
            return [_call(seq, at, event)]
        case ApprovalOpened() | ApprovalAnswered() | ApprovalWithdrawn():
            return _approval(seq, at, event)
        case TerminalOpened() | TerminalEnded() | TerminalForgotten():
            return _terminal(seq, at, event)
        case TerminalTyped() | TerminalTaken() | TerminalReleased() | TerminalAsked() | TerminalWentOn():
            return [_sharing(seq, at, event)]
        case CredentialIssued() | CredentialRevoked():
            return [_credential(at, event)]
        case _:
            return []


def _call(seq: int, at: int, event: _OfCall) -> Statement:
    match event:
        case CallOpened():
            return _opened(seq, at, event)
        case CallStarted(call=id, allowed_by=allowed_by):
            return (_CALL_STARTED, (at, seq, allowed_by, id))
        case CallHandedBack(call=id):
            return (_CALL_HANDED_BACK, (at, id))
        case CallClientGone(call=id):
            return (_CALL_CLIENT_GONE, (at, id))
        case CallSettled(call=id, ending=ending, by=by, message=message, receipt=receipt):
            stopped_at = at if receipt.stopped else None
            return (_CALL_SETTLED, (ending, by, message, at, seq, stopped_at, id))
        case CallStopped(call=id):
            return (_CALL_STOPPED, (at, seq, id))


def _opened(seq: int, at: int, event: CallOpened) -> Statement:
    who = event.caller
    named = (event.call, event.tool, event.title, who.door, who.client, who.key)
    placed = (who.workspace, who.thread, who.operation, event.assurance)
    return (_CALL_OPENED, (*named, *placed, at, seq))


def _approval(seq: int, at: int, event: _OfApproval) -> list[Statement]:
    match event:
        case ApprovalOpened(approval=id, call=call):
            asked = (id, call, event.digest, event.risk, at, seq)
            return [(_APPROVAL_OPENED, asked), (_CALL_ASKED, (id, call))]
        case ApprovalAnswered(approval=id, answer=answer, by=by, reason=reason):
            return [(_APPROVAL_ANSWERED, (answer, by, reason, at, seq, id))]
        case ApprovalWithdrawn(approval=id, why=why):
            return [(_APPROVAL_WITHDRAWN, (why, at, id))]


def _terminal(seq: int, at: int, event: _OfTerminal) -> list[Statement]:
    match event:
        case TerminalOpened(terminal=id, call=call):
            return [_terminal_opened(seq, at, event), (_CALL_TERMINAL, (id, call))]
        case TerminalEnded(terminal=id, exit_code=code, signal=signal, bytes=size, lost=lost):
            return [(_TERMINAL_ENDED, (code, signal, size, int(lost), event.cwd, at, id))]
        case TerminalForgotten(terminal=id):
            return [(_TERMINAL_FORGOTTEN, (at, id))]


def _terminal_opened(seq: int, at: int, event: TerminalOpened) -> Statement:
    who = event.owner
    named = (event.terminal, event.call, event.name, event.cwd, event.pid, at, seq)
    owner = (None, None, None) if who is None else (int(who.person), who.name, who.workspace)
    made = (event.of, json.dumps(event.argv), event.cols, event.rows, event.nonce)
    return (_TERMINAL_OPENED, (*named, *owner, *made))


def _sharing(seq: int, at: int, event: _OfSharing) -> Statement:
    match event:
        case TerminalTyped(terminal=id, by=by, person=person, text=text, offset=offset):
            return (_TERMINAL_TYPED, (seq, id, at, by, int(person), text, offset))
        case TerminalTaken(terminal=id, by=by, holds=holds):
            return (_TERMINAL_TAKEN, (by, int(holds), id))
        case TerminalReleased(terminal=id):
            return (_TERMINAL_TAKEN, (None, 0, id))
        case TerminalAsked(terminal=id, prompt=prompt, sure=sure, secret=secret):
            return (_TERMINAL_ASKED, (prompt, sure, int(secret), at, id))
        case TerminalWentOn(terminal=id):
            return (_TERMINAL_ASKED, (None, None, 0, None, id))


def _credential(at: int, event: _OfCredential) -> Statement:
    match event:
        case CredentialIssued(credential=id, name=name, workspace=workspace, sha256=sha256):
            return (_CREDENTIAL_ISSUED, (id, name, workspace, sha256, at))
        case CredentialRevoked(credential=id):
            return (_CREDENTIAL_REVOKED, (at, id))


_CALL_OPENED = """
INSERT INTO calls (id, tool, title, door, client, caller_key, workspace, thread, operation, assurance,
                   opened_at, opened_seq)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"""
_CALL_STARTED = """
UPDATE calls SET started_at = ?, started_seq = ?, allowed_by = ? WHERE id = ? AND started_seq IS NULL"""
_CALL_HANDED_BACK = "UPDATE calls SET handed_back_at = ? WHERE id = ? AND handed_back_at IS NULL"
_CALL_CLIENT_GONE = "UPDATE calls SET client_gone_at = ? WHERE id = ? AND client_gone_at IS NULL"
_CALL_SETTLED = """
UPDATE calls SET ending = ?, settled_by = ?, message = ?, settled_at = ?, settled_seq = ?, stopped_at = ?
WHERE id = ? AND ending IS NULL"""
_CALL_STOPPED = "UPDATE calls SET stopped_at = ?, stopped_seq = ? WHERE id = ? AND stopped_seq IS NULL"
_CALL_ASKED = "UPDATE calls SET approval = ? WHERE id = ?"
_CALL_TERMINAL = "UPDATE calls SET terminal = ? WHERE id = ?"
_APPROVAL_OPENED = """
INSERT INTO approvals (id, call, digest, risk, opened_at, opened_seq)
VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"""
_APPROVAL_ANSWERED = """
UPDATE approvals SET answer = ?, answered_by = ?, reason = ?, answered_at = ?, answered_seq = ?
WHERE id = ? AND answered_at IS NULL AND withdrawn_at IS NULL"""
_APPROVAL_WITHDRAWN = """
UPDATE approvals SET withdrawn_why = ?, withdrawn_at = ?
WHERE id = ? AND answered_at IS NULL AND withdrawn_at IS NULL"""
_TERMINAL_OPENED = """
INSERT INTO terminals (id, call, name, cwd, pid, opened_at, opened_seq,
                       owner_person, owner_name, owner_workspace, "of", argv, cols, "rows", nonce)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"""
_TERMINAL_ENDED = """
UPDATE terminals SET exit_code = ?, signal = ?, bytes = ?, lost = ?, cwd = COALESCE(?, cwd), ended_at = ?,
                     taken_by = NULL, taken_holds = 0,
                     asked_prompt = NULL, asked_sure = NULL, asked_secret = 0, asked_at = NULL
WHERE id = ? AND ended_at IS NULL"""
_TERMINAL_FORGOTTEN = "UPDATE terminals SET forgotten_at = ? WHERE id = ? AND forgotten_at IS NULL"
_TERMINAL_TYPED = """
INSERT INTO typed (seq, terminal, at, "by", person, text, "offset")
VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"""
_TERMINAL_TAKEN = "UPDATE terminals SET taken_by = ?, taken_holds = ? WHERE id = ? AND ended_at IS NULL"
_TERMINAL_ASKED = """
UPDATE terminals SET asked_prompt = ?, asked_sure = ?, asked_secret = ?, asked_at = ?
WHERE id = ? AND ended_at IS NULL"""
_CREDENTIAL_ISSUED = """
INSERT INTO credentials (id, name, workspace, sha256, issued_at)
VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"""
_CREDENTIAL_REVOKED = "UPDATE credentials SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL"
