"""What marks tell together, however the bytes come; and that nobody else can write them."""

import weakref
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.keeper.spool import Spool
from handrail.terminal.output.tail import Tail
from handrail.terminal.shell_marks import (
    COMMANDS_MAX,
    MARK_BYTES_MAX,
    Command,
    Finder,
    Marks,
    MarksReader,
    output_of,
    strip,
)

NONCE = "5eed5eed0123abcd"
PROMPT = (
    f"\x1b]633;P;Cwd=/home;{NONCE}\x07\x1b]133;A;nonce={NONCE}\x07$ \x1b]133;B;nonce={NONCE}\x07".encode()
)


def begin(line: str, id: int = 1, at: float = 100) -> bytes:
    said = line.replace("\\", "\\\\").replace(";", "\\x3b").replace("\n", "\\x0a")
    return f"{line}\r\n\x1b]633;E;{said};{NONCE}\x07\x1b]133;C;nonce={NONCE};id={id};at={at}\x07".encode()


def end(code: int, id: int = 1, at: float = 101.5) -> bytes:
    return f"\x1b]133;D;{code};nonce={NONCE};id={id};at={at}\x07".encode()


def one(line: str, output: bytes, code: int, id: int = 1) -> bytes:
    return PROMPT + begin(line, id) + output + end(code, id)


class Written:
    """A terminal's output in the making."""

    def __init__(self, directory: Path, cap: int = 1 << 30) -> None:
        self.spool = Spool(str(directory / "t"), cap)
        self.tail = Tail(directory / "t")
        self.reader = MarksReader(NONCE)
        weakref.finalize(self, self.spool.close)

    @property
    def marks(self) -> Marks:
        return self.reader.marks

    def say(self, *pieces: bytes) -> "Written":
        for piece in pieces:
            self.spool.append(memoryview(piece))
            self.reader.catch_up(self.tail)
        return self

    def told(self) -> list[tuple[str | None, int | None, bytes]]:
        return [
            (command.line, command.exit_code, output_of(command, self.tail))
            for command in self.marks.commands
        ]


@pytest.fixture
def written(tmp_path: Path) -> Written:
    return Written(tmp_path)


def test_before_the_first_mark_nothing_is_claimed(written: Written) -> None:
    written.say(b"hello\r\n$ ")
    assert (written.marks.at_prompt, written.marks.commands, written.marks.cwd) == (None, (), None)


def test_a_command_is_known_from_its_prompt_to_its_end(written: Written) -> None:
    before = b"welcome\r\n"
    written.say(before, one("ls; true", b"a b\r\n", 3), PROMPT)
    start = len(before) + PROMPT.index(b"\x1b]133;A")
    output = len(before) + len(PROMPT) + len(begin("ls; true"))
    assert written.marks.commands == (
        Command(
            line="ls; true",
            begin=start,
            output=output,
            end=output + 5,
            exit_code=3,
            cwd="/home",
            started_at=100,
            duration_ms=1500,
        ),
    )
    assert output_of(written.marks.commands[0], written.tail) == b"a b\r\n"
    assert (written.marks.at_prompt, written.marks.running) == (True, None)
    assert written.marks.prompt_at == written.tail.end - len(PROMPT) + PROMPT.index(b"\x1b]133;A")


def test_while_a_command_runs_it_has_no_end_and_its_output_grows(written: Written) -> None:
    written.say(PROMPT, begin("make"), b"one")
    running = written.marks.running
    assert running is not None
    assert (running.line, running.end, written.marks.at_prompt) == ("make", None, False)
    assert output_of(running, written.tail) == b"one"
    written.say(b"two")
    assert output_of(running, written.tail) == b"onetwo"


def test_marks_cut_at_any_byte_say_the_same(tmp_path: Path) -> None:
    whole = (
        one("echo 'é\\;'\nx", b"out\x1b[31m", 0) + one("b", b"", 1, 2).replace(b"\x07", b"\x1b\\") + PROMPT
    )
    at_once = Written(tmp_path / "1").say(whole)
    in_bytes = Written(tmp_path / "2").say(*(whole[n : n + 1] for n in range(len(whole))))
    assert at_once.told() == [("echo 'é\\;'\nx", 0, b"out\x1b[31m"), ("b", 1, b"")]
    assert in_bytes.marks.commands == at_once.marks.commands
    assert in_bytes.marks.prompt_at == at_once.marks.prompt_at


@pytest.mark.parametrize(
    "forged",
    [
        b"\x1b]133;D;0\x07",
        b"\x1b]133;D;0;nonce=\x07",
        b"\x1b]133;D;0;nonce=0000000000000000;id=1\x07",
        f"\x1b]133;D;0;nonce={NONCE}0;id=1\x07".encode(),
        f"\x1b]133;D;0;xnonce={NONCE};id=1\x07".encode(),
        f"\x1b]1337;D;0;nonce={NONCE};id=1\x07".encode(),
        f"\x1b]133;D;0;nonce={NONCE};id=7\x07".encode()[:-9],
        b"\x1b]633;E;other;\x07\x1b]633;E;other\x07\x1b]633;P;Cwd=/forged\x07",
        b"\x1b]133;A\x07\x1b]133;B\x07\x1b]133;C\x07",
        NONCE.encode(),
        f"133;D;0;nonce={NONCE};id=1\x07".encode(),
        f"\x1b]133;D;0\nnonce={NONCE};id=1\x07".encode(),
        f"\x1b]0;title {NONCE}\x07".encode(),
        b"\x1b]133;D;0;nonce=",
        b"\x1b]",
        b"\x1b",
    ],
)
def test_what_is_not_ours_is_output(written: Written, forged: bytes) -> None:
    written.say(PROMPT, begin("cat"), forged, end(5), PROMPT)
    assert written.told() == [("cat", 5, forged)]
    assert written.marks.cwd == "/home"


def test_an_end_without_a_beginning_is_nothing(written: Written) -> None:
    written.say(end(1), PROMPT, end(1), PROMPT)
    assert (written.marks.commands, written.marks.at_prompt) == ((), True)


def test_a_prompt_drawn_again_is_the_same_prompt(written: Written) -> None:
    written.say(PROMPT, b"l", PROMPT, PROMPT[PROMPT.index(b"$") :], begin("ls"), b"x", end(0))
    assert written.told() == [("ls", 0, b"x")]


def test_a_prompt_without_an_end_before_it_ends_the_command_with_no_code(written: Written) -> None:
    written.say(PROMPT, begin("odd"), b"out", PROMPT, begin("next", 2), end(0, 2))
    assert written.told() == [("odd", None, b"out"), ("next", 0, b"")]


def test_a_line_the_shell_does_not_tell_is_taken_from_a_plain_echo_only(written: Written) -> None:
    told = f"\x1b]133;C;nonce={NONCE};id=1\x07".encode()
    for echo in (b" secret\r\n\x1b[?2004l\r", b"ab\x08\x1b[Kc\r\n", b"\r\n"):
        written.say(PROMPT, echo + told, end(0))
    assert [command.line for command in written.marks.commands] == ["secret", None, None]


def test_a_shell_that_writes_a_title_after_its_mark_does_not_print_it_for_the_command(
    written: Written,
) -> None:
    mark = f"\x1b]633;E;ls;{NONCE}\x07\x1b]133;C;nonce={NONCE};id=1;then=title\x07".encode()
    title = b"\x1b[?2004l\x1b]0;ls ~\x07\x1b[30m\x1b(B\x1b[m\r"
    written.say(
        PROMPT, mark, title[:12], title[12:] + b"\x1b[31mred", end(0).replace(b";at=101.5", b";took=12")
    )
    assert written.told() == [("ls", 0, b"\x1b[31mred")]
    assert written.marks.commands[0].duration_ms == 12
    written.say(PROMPT, mark, b"\x1b[31mred\r\n", end(0))
    assert written.told()[1] == ("ls", 0, b"\x1b[31mred\r\n")


def test_only_the_last_commands_are_kept(written: Written) -> None:
    written.say(b"".join(one(f"n{n}", b"", 0, n) for n in range(COMMANDS_MAX + 5)))
    assert len(written.marks.commands) == COMMANDS_MAX
    assert (written.marks.commands[0].line, written.marks.commands[-1].line) == ("n5", f"n{COMMANDS_MAX + 4}")


def test_a_sequence_that_never_ends_is_not_held() -> None:
    finder, offset = Finder(NONCE), 0
    for piece in (b"\x1b]133;D;0;nonce=", *([b"x" * (1 << 20)] * 10), end(2)):
        found = list(finder.find(piece, offset))
        offset += len(piece)
        assert finder.held <= MARK_BYTES_MAX
        assert [mark.text for mark in found] == (["2"] if piece == end(2) else [])


def test_a_line_of_many_bytes_is_still_a_mark(written: Written) -> None:
    line = "é;" * 16384
    written.say(PROMPT, begin(line), end(0))
    assert written.marks.commands[0].line == line


def test_output_dropped_before_it_was_read_leaves_no_wrong_end(tmp_path: Path) -> None:
    it = Written(tmp_path, cap=80_000)
    it.say(one("before", b"x", 0), PROMPT, begin("storm", 2), b"y" * 1000)
    lost = b"z" * 100_000 + end(0, 2) + PROMPT + begin("unseen", 3) + b"z" * 200_000
    it.say(lost, end(4, 3), PROMPT)
    assert [(each.line, each.exit_code) for each in it.marks.commands] == [("before", 0), ("storm", None)]
    assert (it.marks.commands[-1].end, it.marks.at_prompt) == (None, True)
    it.say(begin("after", 4), b"out", end(7, 4))
    assert it.told()[-1] == ("after", 7, b"out")


def test_a_command_that_outruns_what_is_kept_still_has_its_end(tmp_path: Path) -> None:
    it = Written(tmp_path, cap=80_000)
    it.say(PROMPT, begin("storm"), b"y" * 500_000, end(3), PROMPT)
    command = it.marks.commands[0]
    assert (command.exit_code, command.duration_ms) == (3, 1500)
    kept = output_of(command, it.tail)
    assert 0 < len(kept) <= 80_000
    assert set(kept) == {ord("y")}


def test_a_mark_whose_beginning_was_dropped_is_not_guessed(tmp_path: Path) -> None:
    it = Written(tmp_path, cap=8000)
    it.say(PROMPT, begin("storm"), b"y" * 500, b"\x1b]133;D;9;")
    it.say(b"n" * 20_000 + f"once={NONCE};id=1\x07".encode(), end(3), PROMPT)
    assert [(line, code) for line, code, _ in it.told()] == [("storm", 3)]


@given(
    st.lists(st.binary(max_size=40) | st.sampled_from([PROMPT, begin("x"), end(0), NONCE.encode(), b"\x1b]"]))
)
def test_no_bytes_break_the_finder(pieces: list[bytes]) -> None:
    def found(pieces: list[bytes]) -> list[object]:
        finder, offset, marks = Finder(NONCE), 0, list[object]()
        for piece in pieces:
            marks += finder.find(piece, offset)
            offset += len(piece)
        return marks

    assert found(pieces) == found([b"".join(pieces)])


def test_without_a_nonce_nothing_is_a_mark() -> None:
    assert list(Finder("").find(b"\x1b]133;A;nonce=\x07", 0)) == []


def test_a_masked_nonce_has_the_same_length_and_is_nowhere() -> None:
    data = one("ls", b"out", 0)
    masked = strip(data, NONCE)
    assert len(masked) == len(data)
    assert NONCE.encode() not in masked
    assert strip(b"nothing here", NONCE) == b"nothing here"
    assert strip(data, "") == data


def test_a_nonce_cut_by_the_edge_of_a_read_is_masked_with_what_stands_beside_it() -> None:
    data = one("ls", b"out", 0)
    cut = "".join(
        strip(data[n : n + 1], NONCE, before=data[max(0, n - 16) : n], after=data[n + 1 : n + 17]).decode()
        for n in range(len(data))
    )
    assert cut.encode() == strip(data, NONCE)
