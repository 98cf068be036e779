"""What of the record is for whoever watches, and what for a person alone.

Owns that line: what terminals show, the secret of their marks, and what a person wrote into an answer reach nobody who
is not taken for a person. An agent on this machine may watch, and must not read by watching what the gate would have
asked about.
"""

from collections.abc import Iterable
from dataclasses import replace

from handrail.server.access import Person
from handrail.server.terminal_wire import TerminalView
from handrail.store.event import (
    ApprovalAnswered,
    Entry,
    Event,
    TerminalAsked,
    TerminalOpened,
    TerminalTyped,
)


def visible(entries: Iterable[Entry], person: Person) -> list[Entry]:
    if person.approves:
        return list(entries)
    return [replace(entry, event=_bare(entry.event)) for entry in entries]


def visible_terminal(view: TerminalView, person: Person) -> TerminalView:
    if person.approves or view.asks is None:
        return view
    return view.model_copy(update={"asks": view.asks.model_copy(update={"prompt": ""})})


def _bare(event: Event) -> Event:
    match event:
        case TerminalOpened():
            return replace(event, nonce="")
        case TerminalTyped():
            return replace(event, text=None)
        case TerminalAsked():
            return replace(event, prompt="")
        case ApprovalAnswered():
            return replace(event, input=None, content=None, comments=())
        case _:
            return event
