"""Lines of a tail found by pattern: across segments, in the bytes or in the text, whatever was printed."""

import signal
import subprocess
from functools import partial
from pathlib import Path

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.keeper_terminals import BOUND

from handrail.keeper.spool import Spool
from handrail.launcher.child import start_program
from handrail.terminal import ripgrep
from handrail.terminal.output import output_search
from handrail.terminal.output.output_search import Match, SearchResult
from handrail.terminal.output.plain_text import plain_text
from handrail.terminal.output.tail import Tail
from handrail.terminal.safe_regex import BadPattern

pytestmark = pytest.mark.anyio
BARS = b"".join(b"\x1b[2Aone %d%%\x1b[K\r\ntwo %d%%\x1b[K\r\n" % (n, n) for n in range(0, 101, 10))


def tail_of(folder: Path, printed: bytes, cap: int = 1 << 20) -> Tail:
    spool = Spool(str(folder), cap)
    spool.append(memoryview(printed))
    spool.close()
    return Tail(folder, closed=True)


async def find(tail: Tail, pattern: str, **how: bool | int) -> SearchResult:
    with anyio.fail_after(BOUND):
        return await output_search.search_tail(tail, pattern, **how)  # type: ignore[arg-type]


async def test_a_line_is_found_with_its_number_its_place_and_those_around_it(tmp_path: Path) -> None:
    tail = tail_of(tmp_path / "t", b"one\r\ntwo\r\nthree\r\nfour\r\nfive")
    expected = Match(line_number=3, offset=10, text="three", before=("two",), after=("four",))
    for raw in (False, True):
        assert await find(tail, "^thr.e$", raw=raw, context=1) == SearchResult(
            matches=(expected,), more=False
        )


async def test_colours_and_overwritten_text_hide_nothing_in_text_and_are_found_in_raw(tmp_path: Path) -> None:
    tail = tail_of(tmp_path / "t", b"\x1b[31mer\x1b[1mror\x1b[0m: x\r\n10%\r\x1b[K100%\r\n")
    assert [match.text for match in (await find(tail, "error")).matches] == ["error: x"]
    assert (await find(tail, "10%$")).matches == ()
    assert (await find(tail, "^100%$")).matches[0].line_number == 2
    assert (await find(tail, "error", raw=True)).matches == ()
    assert [match.offset for match in (await find(tail, r"\x1b\[K", raw=True)).matches] == [23]


async def test_after_bars_that_went_back_over_their_lines_numbers_are_those_of_the_output(
    tmp_path: Path,
) -> None:
    printed = b"first\r\n\r\n\r\n" + BARS + b"after\r\n"
    tail = tail_of(tmp_path / "t", printed)
    found = (await find(tail, "one|after", context=1)).matches
    number = printed.count(b"\n")
    assert [(match.line_number, match.text) for match in found] == [(2, "one 100%"), (number, "after")]
    assert printed[found[1].offset :] == b"after\r\n"
    assert found[1].before == ("two 100%",)


async def test_lines_across_segments_are_found_whole_and_once(tmp_path: Path) -> None:
    printed = b"".join(b"line %05d of many\r\n" % number for number in range(2000))
    tail = tail_of(tmp_path / "t", printed, cap=50_000)
    assert len(tail.files) > 5
    for raw in (False, True):
        found = await find(tail, "^line 0[0-9]{4} of many$", raw=raw, max_results=5000)
        assert [match.text for match in found.matches] == printed.decode().split("\r\n")[:-1]
        assert [match.line_number for match in found.matches] == list(range(1, 2001))
        assert all(printed[match.offset :].startswith(match.text.encode()) for match in found.matches)


async def test_numbers_go_on_counting_from_lines_that_were_dropped(tmp_path: Path) -> None:
    tail = tail_of(tmp_path / "t", b"".join(b"line %05d\n" % number for number in range(1, 5001)), cap=20_000)
    assert tail.first > 0
    for raw in (False, True):
        (match,) = (await find(tail, "04321", raw=raw)).matches
        assert (match.line_number, match.offset) == (4321, 4320 * 11)


async def test_one_line_of_many_megabytes_shows_what_is_around_the_match(tmp_path: Path) -> None:
    tail = tail_of(tmp_path / "t", b"x" * 3_000_000 + b" needle " + b"y" * 3_000_000, cap=8 << 20)
    for raw in (False, True):
        (match,) = (await find(tail, "needle", raw=raw, context=2)).matches
        assert (match.line_number, match.offset, match.before, match.after) == (1, 0, (), ())
        assert "x needle y" in match.text
        assert len(match.text) < 10_000


async def test_more_is_said_when_there_is_more(tmp_path: Path) -> None:
    tail = tail_of(tmp_path / "t", b"same\r\n" * 10)
    for raw in (False, True):
        assert not (await find(tail, "same", raw=raw, max_results=10)).more
        found = await find(tail, "same", raw=raw, max_results=9)
        assert (len(found.matches), found.more) == (9, True)


async def test_case_may_be_ignored(tmp_path: Path) -> None:
    tail = tail_of(tmp_path / "t", b"Error\r\n")
    assert (await find(tail, "error")).matches == ()
    assert len((await find(tail, "error", case_insensitive=True)).matches) == 1


@pytest.mark.parametrize("raw", [False, True])
async def test_a_pattern_that_is_none_is_refused_with_the_reason(tmp_path: Path, raw: bool) -> None:
    with pytest.raises(BadPattern, match="unclosed group"):
        await find(tail_of(tmp_path / "t", b"text"), "(", raw=raw)


@pytest.mark.parametrize(
    ("pattern", "why"), [("a\0b", "NUL"), ("\ud800", "half"), ("x" * 200_000, "are possible")]
)
async def test_what_no_program_can_be_asked_for_gets_a_sentence(
    tmp_path: Path, pattern: str, why: str
) -> None:
    with pytest.raises(BadPattern, match=why):
        await find(tail_of(tmp_path / "t", b"text"), pattern)


async def test_an_empty_tail_has_no_lines(tmp_path: Path) -> None:
    for raw in (False, True):
        assert await find(Tail(tmp_path / "none"), "", raw=raw) == SearchResult(matches=(), more=False)


async def test_nothing_printed_is_taken_for_an_encoding_or_for_binary(tmp_path: Path) -> None:
    tail = tail_of(tmp_path / "t", b"\xff\xfea\x00b\r\nneedle \xff\r\n")
    assert [match.text for match in (await find(tail, "needle .")).matches] == ["needle \ufffd"]
    assert [match.text for match in (await find(tail, "needle", raw=True)).matches] == ["needle \ufffd"]


@pytest.mark.parametrize("raw", [False, True])
async def test_look_around_is_refused_and_a_catastrophic_pattern_is_quick(tmp_path: Path, raw: bool) -> None:
    tail = tail_of(tmp_path / "t", b"a" * (1 << 20) + b"!\r\naaa\r\n", cap=4 << 20)
    with pytest.raises(BadPattern, match="look-around and backreferences are not supported"):
        await find(tail, "a(?=b)", raw=raw)
    assert [match.line_number for match in (await find(tail, "^(a+)+$", raw=raw)).matches] == [2]


async def test_a_search_that_takes_too_long_gives_what_it_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "rg"
    script = "for word; do case $word in /dev/fd/*) printf '%s\\0001:1:0:\\n' $word;; esac; done"
    program.write_text(f"#!/bin/sh\n{script}\nexec sleep 1000\n")
    program.chmod(0o755)
    monkeypatch.setattr(ripgrep, "ripgrep", lambda: str(program))
    monkeypatch.setattr(output_search, "SECONDS", 0.5)
    found = await find(tail_of(tmp_path / "t", b"a\r\nb\r\n"), "a", raw=True)
    assert ([match.text for match in found.matches], found.more) == (["a"], True)


async def test_a_stopped_search_leaves_no_process_behind() -> None:
    asking = ripgrep.Search()
    start = partial(start_program, ["/bin/sleep", "1000"])
    with asking.hold(start) as child:
        asking.stop()
        assert await anyio.to_thread.run_sync(child.wait, BOUND) == -signal.SIGKILL
    with asking.hold(start) as late:
        assert await anyio.to_thread.run_sync(late.wait, BOUND) == -signal.SIGKILL


async def test_without_ripgrep_there_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ripgrep, "ripgrep", ripgrep.ripgrep.__wrapped__)
    monkeypatch.setattr("os.access", lambda *_: False)  # type: ignore[misc]
    with pytest.raises(ripgrep.NoRipgrep, match="Install ripgrep"):
        await find(tail_of(tmp_path / "t", b"a\r\n"), "a", raw=True)


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    printed=st.lists(
        st.sampled_from(
            [
                b"ab",
                b"\r\n",
                b"b",
                b"\x1b[31m",
                b"\r",
                b"\b",
                b"\x1b[K",
                b"\x1b[A",
                "é".encode(),
                b"\xff",
                b"\n",
            ]
        ),
        max_size=80,
    )
)
async def test_text_matches_are_the_lines_of_plain_that_match(
    tmp_path_factory: pytest.TempPathFactory, printed: list[bytes]
) -> None:
    whole = b"".join(printed)
    tail = tail_of(tmp_path_factory.mktemp("t") / "t", whole, cap=160)
    kept = whole[tail.first :]
    found = await find(tail, "b", max_results=1000)
    assert [match.text for match in found.matches] == [
        line for line in plain_text(kept).split("\n") if "b" in line
    ]
    for match in found.matches:
        assert match.offset == tail.first or whole[match.offset - 1 : match.offset] == b"\n"
        assert match.line_number == whole[: match.offset].count(b"\n") + 1


def test_raw_search_agrees_with_ripgrep_on_one_file(tmp_path: Path) -> None:
    printed = b"".join(b"\x1b[3%dmword %d\x1b[0m\r\n" % (n % 8, n * 7919 % 1000) for n in range(20_000))
    (tmp_path / "all").write_bytes(printed)
    tail = tail_of(tmp_path / "t", printed, cap=1 << 20)
    program = ripgrep.ripgrep()
    said = subprocess.run(
        [program, "-a", "-nb", "word 7.3", tmp_path / "all"], capture_output=True, check=True
    )
    found = anyio.run(lambda: output_search.search_tail(tail, "word 7.3", raw=True, max_results=10_000))
    assert [b"%d:%d:%s" % (m.line_number, m.offset, m.text.encode()) for m in found.matches] == [
        line.rstrip(b"\r") for line in said.stdout.splitlines()
    ]
