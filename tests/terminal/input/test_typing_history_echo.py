"""What counts as an echo of what was typed, and what does not."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from handrail.keeper.spool import Spool
from handrail.terminal.input import typing_history
from handrail.terminal.input.typing_history import ECHO_BYTES, read_output_after
from handrail.terminal.output.tail import Tail


def shown(text: str, data: bytes) -> bool:
    return typing_history.shown([text], data) == 1


@given(st.text(alphabet="abc*", min_size=1, max_size=12))
def test_a_mask_of_stars_never_shows_a_text_with_letters(text: str) -> None:
    masked = ("*" * len(text) + "\r\n").encode()
    assert shown(text, masked) == (set(text) == {"*"})


@given(st.text(alphabet=st.characters(categories=["L", "N", "P"]), min_size=1, max_size=60))
def test_a_plain_echo_shows_its_text(text: str) -> None:
    assert shown(text, f"\x1b[?2004h{text}\r\n\x1b[?2004l\rdone".encode())


def test_a_short_text_in_other_output_is_no_echo() -> None:
    assert not shown("y", b"*\r\nonly you know\r\n")
    assert not shown("", b"anything")


def test_an_echo_is_found_across_segments(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path / "t"), 800)
    spool.append(memoryview(b"$" * 97 + b"echo hello\r\n"))
    spool.close()
    assert shown("echo hello", read_output_after(Tail(tmp_path / "t"), 97))


def test_only_so_much_output_is_searched_for_an_echo(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path / "t"), 1 << 20)
    spool.append(memoryview(b"x" * ECHO_BYTES + b"echo hello"))
    spool.close()
    assert len(read_output_after(Tail(tmp_path / "t"), 0)) == ECHO_BYTES


def test_a_letter_that_is_masked_right_after_it_was_shown_is_hidden() -> None:
    assert not shown("hunter2", "".join(f"{letter}\b*" for letter in "hunter2").encode())


def test_lines_are_shown_as_far_as_they_stand_one_after_the_other() -> None:
    lines = ["make", "", "2", "ls -l", "hunter2"]
    assert typing_history.shown(lines, b"make\r\n\r\n2\r\nprompt> ls -l\r\ntotal 0\r\nhunter2\r\n") == 5
    assert typing_history.shown(lines, b"make\r\n\r\n2\r\nls -l\r\nPassword: *******\r\n") == 4
    assert typing_history.shown(lines, b"make\r\n\r\nls -l\r\n2\r\nhunter2\r\n") == 2
    assert typing_history.shown(lines, b"hunter2\r\nls -l\r\n") == 0


def test_empty_lines_alone_are_not_shown() -> None:
    assert typing_history.shown(["", " "], b"\r\n\r\n") == 0
    assert typing_history.shown(["", "word"], b"\r\n\r\n") == 0
