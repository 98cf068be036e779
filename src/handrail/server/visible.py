"""What of the record is for whoever watches, and what for a person alone.

Owns that line: what terminals show, the secret of their marks, what a person wrote into an answer, and what a
conversation is called, what an operation is busy with, or an agent printed reach nobody who is not taken for a person.
An agent on this machine may watch, and must not read by watching what the gate would have asked about.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from handrail.server.access import Person
from handrail.server.terminal_wire import TerminalView
from handrail.store.event import (
    ActivityEnded,
    ActivityStarted,
    AgentEnded,
    ApprovalAnswered,
    Entry,
    Event,
    OperationEnded,
    TerminalAsked,
    TerminalOpened,
    TerminalTyped,
    ThreadOpened,
    ThreadRenamed,
)

_HIDDEN: dict[type[Event], dict[str, Any]] = {
    TerminalOpened: {"nonce": ""},
    TerminalTyped: {"text": None},
    TerminalAsked: {"prompt": ""},
    ApprovalAnswered: {"input": None, "content": None, "comments": ()},
    ThreadOpened: {"title": ""},
    ThreadRenamed: {"title": ""},
    OperationEnded: {"error": "", "cancelled_activities": ()},
    ActivityStarted: {"title": ""},
    ActivityEnded: {"detail": ""},
    AgentEnded: {"why": "", "said": ()},
}


def visible(entries: Iterable[Entry], person: Person) -> list[Entry]:
    if person.approves:
        return list(entries)
    return [replace(entry, event=_bare(entry.event)) for entry in entries]


def visible_terminal(view: TerminalView, person: Person) -> TerminalView:
    if person.approves or view.asks is None:
        return view
    return view.model_copy(update={"asks": view.asks.model_copy(update={"prompt": ""})})


def _bare(event: Event) -> Event:
    hidden = _HIDDEN.get(type(event))
    return replace(event, **hidden) if hidden else event
