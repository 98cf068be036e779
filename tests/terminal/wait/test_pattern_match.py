"""Watching output for a pattern."""

import random
import time

import anyio
import pytest

from handrail.terminal.safe_regex import BadPattern, compile_pattern
from handrail.terminal.wait import pattern_match
from handrail.terminal.wait.pattern_match import Hit

BOUND = 20.0


async def hits(pattern: str, *pieces: bytes) -> list[Hit | None]:
    with anyio.fail_after(BOUND):
        with pattern_match.open_matcher(pattern) as matcher:
            return [await matcher.see(piece) for piece in pieces]


async def test_a_match_may_be_cut_by_pieces_characters_and_escapes() -> None:
    whole = "Grüße\n\x1b[31mbereit\x1b[0m auf 80\n".encode()
    found = await hits(r"Grüße\nbereit auf \d+$", *(whole[at : at + 1] for at in range(len(whole))))
    assert next(item for item in found if item) == Hit(text="Grüße\nbereit auf 8", line="Grüße")


async def test_a_progress_bar_is_seen_as_it_stands() -> None:
    found = await hits("^100%$", b"10%", b"\r50%", b"\r100%")
    assert [item is not None for item in found] == [False, False, True]


async def test_old_output_is_let_go_and_the_newest_is_still_matched() -> None:
    storm = [b"noise of a line\n" * 4096] * 20
    found = await hits("needle", b"first\n", *storm, b"the needle\n")
    assert found[-1] == Hit(text="needle", line="the needle")
    assert not any(found[:-1])


async def test_a_line_without_end_is_seen_as_it_stands_and_not_kept() -> None:
    matcher = pattern_match.Matcher(compile_pattern("needle"))
    for _ in range(40):
        assert await matcher.see(b"no line end " * 4096) is None
    assert matcher.held <= 3 * pattern_match.WINDOW
    assert await matcher.see(b"the needle") is not None


async def test_many_small_pieces_cost_no_more_than_their_text() -> None:
    line = b"\r\x1b[32mprogress\x1b[0m of a bar " * 4
    began = time.monotonic()
    found = await hits("never", *([line] * 2000))
    assert not any(found)
    assert time.monotonic() - began < BOUND


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*c"])
async def test_a_catastrophic_pattern_is_quick(pattern: str) -> None:
    began = time.monotonic()
    assert not (await hits(pattern, *[b"a" * 65_536] * 16, b"b"))[-1]
    assert time.monotonic() - began < 10


async def test_a_search_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pattern_match, "SECONDS", 0.001)
    chosen = random.Random(1)
    with pytest.raises(BadPattern, match="was stopped"):
        await hits("[ab]*a[ab]{400}c", bytes(chosen.choice(b"ab") for _ in range(1 << 17)))


async def test_look_around_is_refused() -> None:
    with pytest.raises(BadPattern, match="look-around and backreferences are not supported"):
        await hits("a(?=b)", b"ab")


async def test_only_so_many_patterns_are_watched_for_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pattern_match, "MATCHERS_MAX", 2)
    refused = pytest.raises(BadPattern, match="2 patterns are waited for already")
    with pattern_match.open_matcher("a"), pattern_match.open_matcher("b"), refused:
        await hits("c", b"c")
    assert (await hits("c", b"c"))[0] is not None, "there is room again"
