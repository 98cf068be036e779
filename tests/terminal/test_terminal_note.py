"""The note that the keeper keeps for the next daemon."""

import pytest

from handrail.store.values import Owner
from handrail.terminal.terminal import TerminalNote, command_note, note_from_text, note_to_text

MINE = TerminalNote(
    of="shell", name="build", owner=Owner(person=True, name="ann", workspace="/w"), nonce="ab12", call="c1"
)


def test_a_note_is_read_as_it_was_written() -> None:
    assert note_from_text(note_to_text(MINE), "bash") == MINE


@pytest.mark.parametrize("text", ["", "{}", "not json", '{"of": "command"}', '{"of": "other", "name": "x"}'])
def test_what_cannot_be_read_is_a_commands_of_that_name(text: str) -> None:
    note = note_from_text(text, "bash")
    assert (note.of, note.name, note.owner.person, note.call) == ("command", "bash", False, None)


def test_typing_takes_over_only_what_an_agent_opened() -> None:
    assert command_note("sh").is_agents
    assert not MINE.is_agents
    assert not TerminalNote(of="tracked", name="x", owner=Owner(person=True, name="ann")).is_agents
    assert TerminalNote(of="tracked", name="x", owner=Owner(person=False, name="zed")).is_agents
