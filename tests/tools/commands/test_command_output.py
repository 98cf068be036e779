"""What a command printed is cut to head and tail, and the cut is told."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.terminal.output.tail import Tail
from handrail.tools.commands.command_output import MOST_CHARS, read_output


def spooled(folder: Path, *segments: tuple[int, bytes]) -> Tail:
    folder.mkdir(exist_ok=True)
    for start, data in segments:
        (folder / f"{start:020d}.seg").write_bytes(data)
    return Tail(folder, closed=True)


def test_a_short_output_is_shown_whole(tmp_path: Path) -> None:
    output = read_output(spooled(tmp_path / "t", (0, b"one\r\ntwo\r\n")))
    assert (output.text, output.bytes, output.left_out, output.captured) == ("one\ntwo\n", 10, 0, True)


def test_no_output_is_said(tmp_path: Path) -> None:
    output = read_output(Tail(tmp_path / "nothing", closed=True))
    assert (output.text, output.bytes, output.captured) == ("", 0, False)


def test_a_long_output_keeps_its_head_and_its_tail(tmp_path: Path) -> None:
    lines = b"".join(b"line %d\n" % number for number in range(1000))
    output = read_output(spooled(tmp_path / "t", (0, lines)), head_lines=3, tail_lines=2)
    assert output.text.startswith("line 0\nline 1\nline 2\n")
    assert output.text.endswith("line 999\n")
    assert "bytes left out" in output.text
    assert "line 500" not in output.text
    assert output.left_out > 0


def test_a_huge_output_is_read_from_its_ends_alone(tmp_path: Path) -> None:
    middle = b"".join(b"line %d\n" % number for number in range(400_000))
    output = read_output(spooled(tmp_path / "t", (0, b"BEGIN\n" + middle + b"END\n")))
    assert output.text.startswith("BEGIN\n")
    assert output.text.endswith("END\n")
    assert len(output.text) < 2 * MOST_CHARS
    assert output.bytes == len(middle) + 10
    assert output.left_out == pytest.approx(output.bytes, rel=0.05)


def test_a_line_without_end_does_not_crowd_out_the_rest(tmp_path: Path) -> None:
    output = read_output(spooled(tmp_path / "t", (0, b"start " + b"x" * 200_000 + b" finish")))
    assert output.text.startswith("start ")
    assert output.text.endswith(" finish")
    assert len(output.text) < 2 * MOST_CHARS


def test_what_was_dropped_at_the_start_is_counted(tmp_path: Path) -> None:
    output = read_output(spooled(tmp_path / "t", (5000, b"the rest\n")))
    assert output.text == "the rest\n"
    assert (output.bytes, output.left_out) == (5009, 5000)


@settings(max_examples=50)
@given(st.integers(0, 5), st.integers(0, 5), st.integers(0, 40))
def test_head_and_tail_never_show_more_lines_than_were_asked_for(head: int, tail: int, count: int) -> None:
    import tempfile  # noqa: PLC0415  (hypothesis and fixtures do not mix)

    with tempfile.TemporaryDirectory() as folder:
        data = b"".join(b"line %d\n" % number for number in range(count))
        output = read_output(spooled(Path(folder) / "t", (0, data)), head, tail)
    shown = [line for line in output.text.split("\n") if line.startswith("line ")]
    assert len(shown) == count or len(shown) <= head + tail
