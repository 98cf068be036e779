"""What events about terminals change: that they are, and how they ended. Who shares them is sharing.py's."""

import json

from handrail.store.event import TerminalEnded, TerminalForgotten, TerminalOpened
from handrail.store.projection.statement import Statement


def statements(
    seq: int, at: int, event: TerminalOpened | TerminalEnded | TerminalForgotten
) -> list[Statement]:
    match event:
        case TerminalOpened(terminal=id, call=call):
            return [_opened(seq, at, event), (_OF_CALL, (id, call))]
        case TerminalEnded(terminal=id, exit_code=code, signal=signal, bytes=size, lost=lost):
            return [(_ENDED, (code, signal, size, int(lost), event.cwd, at, id))]
        case TerminalForgotten(terminal=id):
            return [(_FORGOTTEN, (at, id))]


def _opened(seq: int, at: int, event: TerminalOpened) -> Statement:
    who = event.owner
    named = (event.terminal, event.call, event.name, event.cwd, event.pid, at, seq)
    owner = (None, None, None) if who is None else (int(who.person), who.name, who.workspace)
    made = (event.of, json.dumps(event.argv), event.cols, event.rows, event.nonce)
    return (_OPENED, (*named, *owner, *made))


_OF_CALL = "UPDATE calls SET terminal = ? WHERE id = ?"
_OPENED = """
INSERT INTO terminals (id, call, name, cwd, pid, opened_at, opened_seq,
                       owner_person, owner_name, owner_workspace, "of", argv, cols, "rows", nonce)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"""
_ENDED = """
UPDATE terminals SET exit_code = ?, signal = ?, bytes = ?, lost = ?, cwd = COALESCE(?, cwd), ended_at = ?,
                     taken_by = NULL, taken_holds = 0,
                     asked_prompt = NULL, asked_sure = NULL, asked_secret = 0, asked_at = NULL
WHERE id = ? AND ended_at IS NULL"""
_FORGOTTEN = "UPDATE terminals SET forgotten_at = ? WHERE id = ? AND forgotten_at IS NULL"
