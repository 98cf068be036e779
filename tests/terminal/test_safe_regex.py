"""Patterns of agents and people: one dialect, and bounds on the cost of each."""

import importlib
import random
import time
from typing import Any

import anyio
import pytest

from handrail.terminal.safe_regex import MOST_CHARACTERS, REGEX_THREADS, BadPattern, compile_pattern

CATASTROPHIC = ["(a+)+$", "(a|aa)+$", "(a*)*c", "(.*)(.*)(.*)(.*)(.*)c"]
"""Each takes a backtracking engine longer than anybody lives."""


@pytest.mark.parametrize("text", ["(", "a{2,1}", "x" * 200 + "[", "a**", r"\8"])
def test_a_text_that_is_no_pattern_is_refused(text: str) -> None:
    with pytest.raises(BadPattern, match="is not a regular expression"):
        compile_pattern(text)


@pytest.mark.parametrize("text", ["a(?=b)", "a(?!b)", "(?<=a)b", "(?<!a)b", r"(a)\1", "(?P<n>a)(?P=n)"])
def test_look_around_and_backreferences_are_refused_by_name(text: str) -> None:
    with pytest.raises(BadPattern, match="look-around and backreferences are not supported"):
        compile_pattern(text)


@pytest.mark.parametrize(
    "text", ["ready", r"^(\d+) passed", "(?i)listening on", "(?s)a.b" + "x" * 500, "größe"]
)
def test_an_ordinary_pattern_is_taken(text: str) -> None:
    compile_pattern(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x" * (MOST_CHARACTERS + 1), "are possible"),
        ("a\0b", "NUL"),
        ("\ud800", "surrogate"),
        ("(?:[ab]{900}c)" * 20, "too large"),
    ],
)
def test_a_pattern_beyond_the_bounds_is_refused(text: str, why: str) -> None:
    with pytest.raises(BadPattern, match=why):
        compile_pattern(text)


def test_a_refusal_shows_the_pattern_as_it_was_given() -> None:
    with pytest.raises(BadPattern) as caught:
        compile_pattern("(unclosed", multiline=True)
    assert "(?m)" not in str(caught.value)


def test_a_match_is_given_in_bytes_and_lines_count_where_asked() -> None:
    text = "Grüße\nbereit\n".encode()
    assert compile_pattern("b.r", multiline=True).search(text) == (8, 11)
    assert compile_pattern("^bereit$", multiline=True).search(text) == (8, 14)
    assert compile_pattern("^bereit$").search(text) is None


@pytest.mark.parametrize("text", CATASTROPHIC)
def test_a_catastrophic_pattern_is_quick_on_a_megabyte(text: str) -> None:
    began = time.monotonic()
    assert compile_pattern(text).search(b"a" * (1 << 20) + b"b") is None
    assert time.monotonic() - began < 5


async def test_the_event_loop_runs_while_a_costly_search_does() -> None:
    chosen = random.Random(1)
    text = bytes(chosen.choice(b"ab") for _ in range(1 << 17))
    regex = compile_pattern("[ab]*a[ab]{400}c")
    longest, last = 0.0, time.monotonic()

    async def tick() -> None:
        nonlocal longest, last
        while True:
            await anyio.sleep(0.005)
            longest, last = max(longest, time.monotonic() - last), time.monotonic()

    async with anyio.create_task_group() as group:
        group.start_soon(tick)
        assert await REGEX_THREADS.run(regex.search, text) is None
        group.cancel_scope.cancel()
    assert longest < 0.4


def test_no_pattern_is_kept_by_the_library() -> None:
    compile_pattern("something")
    library: Any = importlib.import_module("re2")
    assert library._Regexp._make.cache_info().currsize == 0
