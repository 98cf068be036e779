"""What a daemon tells the keeper of a terminal, so that the next daemon knows it too.

Owns the words of that note and their way into text and back. The keeper keeps the text, unread.
"""

from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError

from handrail.store.value import Owner, TerminalKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What a terminal is, besides a process: whose, called what, and of which call."""

    of: TerminalKind
    name: str
    owner: Owner
    nonce: str = ""
    """What the marks of its own shell carry; empty when it makes none."""
    call: str | None = None

    @property
    def is_agents(self) -> bool:
        """An agent opened it, so a person who types into it takes it over."""
        return self.of != "shell" and not self.owner.person


def command(name: str) -> Note:
    """Of a terminal about which nothing else is known."""
    return Note(of="command", name=name, owner=Owner(person=False, name=""))


def to_text(note: Note) -> str:
    return _notes.dump_json(note).decode()


def from_text(text: str, name: str) -> Note:
    """The note in a text; what cannot be read, or was never written, is a command's of this `name`."""
    try:
        return _notes.validate_json(text)
    except ValidationError:
        return command(name)


_notes = TypeAdapter(Note)
