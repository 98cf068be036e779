"""Watching output for a pattern, apart from the daemon."""

import anyio
import pytest

from handrail.terminal.waiting import matching
from handrail.terminal.waiting.matching import Hit
from handrail.terminal.waiting.pattern import BadPattern

BOUND = 20.0


async def hits(pattern: str, *pieces: bytes) -> list[Hit | None]:
    with anyio.fail_after(BOUND):
        async with matching.matching(pattern) as matcher:
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


async def test_a_pattern_that_takes_for_ever_is_given_up_and_the_loop_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(matching, "SECONDS", 0.5)
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await anyio.sleep(0.01)
            ticks += 1

    async with anyio.create_task_group() as group:
        group.start_soon(tick)
        with pytest.raises(BadPattern, match="was given up"):
            await hits("(a|a)*$(?<=b)", b"a" * 60)
        group.cancel_scope.cancel()
    assert ticks > 10


async def test_a_pattern_that_needs_any_amount_of_memory_is_given_up() -> None:
    with pytest.raises(BadPattern, match="broke off"):
        await hits("(?:" + "()" * 90 + "[ab])*c", b"ab" * 120_000)


async def test_only_so_many_patterns_are_watched_for_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "MOST", 2)
    async with matching.matching("a"), matching.matching("b"):
        with pytest.raises(BadPattern, match="2 patterns are waited for already"):
            await hits("c", b"c")
    assert (await hits("c", b"c"))[0] is not None, "there is room again"
