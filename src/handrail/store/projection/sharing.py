"""What events about a terminal's sharing change: who typed, who has it, and what it asks."""

from handrail.store.event import (
    TerminalAsked,
    TerminalReleased,
    TerminalTaken,
    TerminalTyped,
    TerminalWentOn,
)
from handrail.store.projection.statement import Statement

_OfSharing = TerminalTyped | TerminalTaken | TerminalReleased | TerminalAsked | TerminalWentOn


def statement(seq: int, at: int, event: _OfSharing) -> Statement:
    match event:
        case TerminalTyped(terminal=id, by=by, person=person, text=text, offset=offset):
            return (_TYPED, (seq, id, at, by, int(person), text, offset))
        case TerminalTaken(terminal=id, by=by, holds=holds):
            return (_TAKEN, (by, int(holds), id))
        case TerminalReleased(terminal=id):
            return (_TAKEN, (None, 0, id))
        case TerminalAsked(terminal=id, prompt=prompt, sure=sure, secret=secret):
            return (_ASKED, (prompt, sure, int(secret), at, id))
        case TerminalWentOn(terminal=id):
            return (_ASKED, (None, None, 0, None, id))


_TYPED = """
INSERT INTO typed (seq, terminal, at, "by", person, text, "offset")
VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"""
_TAKEN = "UPDATE terminals SET taken_by = ?, taken_holds = ? WHERE id = ? AND ended_at IS NULL"
_ASKED = """
UPDATE terminals SET asked_prompt = ?, asked_sure = ?, asked_secret = ?, asked_at = ?
WHERE id = ? AND ended_at IS NULL"""
