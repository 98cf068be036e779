"""Keys have names, in the spellings people use, and become the bytes a terminal sends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.terminal.input.keys import NAMES, UnknownKey, encode


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("enter", b"\r"), ("tab", b"\t"), ("shift-tab", b"\x1b[Z"), ("escape", b"\x1b"), ("backspace", b"\x7f"),
        ("space", b" "), ("delete", b"\x1b[3~"), ("insert", b"\x1b[2~"), ("home", b"\x1b[H"), ("end", b"\x1b[F"),
        ("page-up", b"\x1b[5~"), ("page-down", b"\x1b[6~"), ("up", b"\x1b[A"), ("down", b"\x1b[B"),
        ("right", b"\x1b[C"), ("left", b"\x1b[D"), ("shift-up", b"\x1b[1;2A"), ("alt-left", b"\x1b[1;3D"),
        ("ctrl-right", b"\x1b[1;5C"), ("ctrl-shift-home", b"\x1b[1;6H"), ("ctrl-delete", b"\x1b[3;5~"),
        ("f1", b"\x1bOP"), ("f4", b"\x1bOS"), ("f5", b"\x1b[15~"), ("f12", b"\x1b[24~"), ("shift-f1", b"\x1b[1;2P"),
        ("shift-f5", b"\x1b[15;2~"), ("ctrl-a", b"\x01"), ("ctrl-z", b"\x1a"), ("ctrl-space", b"\x00"),
        ("ctrl-[", b"\x1b"), ("ctrl-\\", b"\x1c"), ("ctrl-]", b"\x1d"), ("ctrl-^", b"\x1e"), ("ctrl-_", b"\x1f"),
        ("alt-x", b"\x1bx"), ("alt-enter", b"\x1b\r"), ("ctrl-alt-c", b"\x1b\x03"), ("q", b"q"), ("Q", b"Q"),
        ("é", "é".encode()), ("-", b"-"), ("+", b"+"), ("^", b"^"), (" ", b" "), ("alt--", b"\x1b-"),
    ],
)  # fmt: skip
def test_each_key_sends_what_a_terminal_sends(name: str, sent: bytes) -> None:
    assert encode([name]) == sent


@pytest.mark.parametrize(
    ("spellings", "name"),
    [
        (["C-c", "^C", "^c", "Ctrl+C", "CTRL-C", "control-c", "c-c"], "ctrl-c"),
        (["ArrowUp", "Up", "UP", "up-arrow", "Arrow Up", "cursor_up"], "up"),
        (["Enter", "RETURN", "cr"], "enter"),
        (["Esc", "^[", "ESC"], "escape"),
        (["S-Tab", "BackTab", "BTab", "Shift+Tab"], "shift-tab"),
        (["PgUp", "PageUp", "Page Up", "page_up", "prior"], "page-up"),
        (["Del", "DC"], "delete"),
        (["Back Space", "BSpace", "BS"], "backspace"),
        (["M-x", "Alt+x", "Meta-x", "option+x"], "alt-x"),
        (["C-Left", "Ctrl+ArrowLeft"], "ctrl-left"),
        (["F5"], "f5"),
        (["C-Space", "^@", "Ctrl+Space"], "ctrl-space"),
    ],
)
def test_a_key_may_be_spelt_as_people_do(spellings: list[str], name: str) -> None:
    assert {encode([spelling]) for spelling in spellings} == {encode([name])}


def test_keys_are_sent_in_order() -> None:
    assert encode(["escape", ":", "w", "q", "enter"]) == b"\x1b:wq\r"


def test_a_program_that_asked_for_application_keys_gets_them() -> None:
    assert encode(["up", "home", "ctrl-up", "enter"], application=True) == b"\x1bOA\x1bOH\x1b[1;5A\r"


def test_every_name_that_is_offered_is_a_key() -> None:
    assert all(encode([name]) for name in NAMES)
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize(
    ("wrong", "near"), [("pageupp", "page-up"), ("entr", "enter"), ("ctrl-enterr", "ctrl-e"), ("f13", "f1")]
)
def test_an_unknown_key_is_answered_with_near_ones(wrong: str, near: str) -> None:
    with pytest.raises(UnknownKey, match="There is no key called") as refused:
        encode([wrong])
    assert near in str(refused.value)


@given(st.text(max_size=30))
def test_whatever_is_asked_for_there_are_bytes_or_a_sentence(name: str) -> None:
    said = ""
    try:
        sent = encode([name])
    except UnknownKey as refused:
        sent, said = b"", str(refused)
    assert bool(sent) != said.startswith("There is no key called")
