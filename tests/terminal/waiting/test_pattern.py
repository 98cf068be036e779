"""A pattern is read within bounds, whoever wrote it."""

import time

import anyio
import pytest

from handrail.terminal.waiting import pattern
from handrail.terminal.waiting.pattern import MOST, BadPattern, check

COSTLY = "(?i)" + "[ -\U0010fffe]" * 199
"""Takes seconds to read, although it is short enough."""


@pytest.mark.parametrize("text", ["(", "a{2,1}", "(?P<n>a)(?P<n>b)", "x" * 200 + "["])
async def test_a_pattern_that_is_none_is_said_to_be(text: str) -> None:
    with pytest.raises(BadPattern, match="is not a regular expression"):
        await check(text)


@pytest.mark.parametrize(
    "text", ["ready", r"^(\d+) passed", "(?i)listening on", "(?s)a.b" + "x" * 500, "größe"]
)
async def test_an_ordinary_pattern_is_taken(text: str) -> None:
    await check(text)


@pytest.mark.parametrize(
    ("text", "why"), [("x" * (MOST + 1), "are possible"), ("a\0b", "NUL"), ("\ud800", "half")]
)
async def test_what_cannot_be_a_pattern_gets_a_sentence(text: str, why: str) -> None:
    with pytest.raises(BadPattern, match=why):
        await check(text)


async def test_a_pattern_that_takes_long_to_read_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pattern, "SECONDS", 0.5)
    longest, last = 0.0, time.monotonic()

    async def tick() -> None:
        nonlocal longest, last
        while True:
            await anyio.sleep(0.005)
            longest, last = max(longest, time.monotonic() - last), time.monotonic()

    async with anyio.create_task_group() as group:
        group.start_soon(tick)
        with pytest.raises(BadPattern, match="took longer"):
            await check(COSTLY)
        group.cancel_scope.cancel()
    assert longest < 0.4
