"""The end of an output, cut at its start: never more bytes than wanted, never half a character, nothing lost by a guess."""

import random
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from handrail.agents.requests.agent_terminals import cut_to_last_bytes, read_last_bytes
from handrail.terminal.output.plain_text import plain_text
from handrail.terminal.output.tail import Tail

pytestmark = pytest.mark.anyio

PRINTED = st.lists(
    st.sampled_from(["a", "é", "漢", "🎉", "e\u0301", "\n", "\r\n", " ", "\x1b[31m", "\x1b[0m", "x" * 50]),
    max_size=60,
).map("".join)


def tail_of(folder: Path, *segments: bytes, first: int = 0) -> Tail:
    """An output as the keeper leaves it on disk."""
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for data in segments:
        (folder / f"{first:020d}.seg").write_bytes(data)
        first += len(data)
    return Tail(folder, closed=True)


@given(text=st.text(st.characters(codec="utf-8")), limit=st.integers(0, 50))
@example("ä" * 5, 3)
@example("🎉", 3)
@example("", 0)
def test_a_cut_keeps_as_much_of_the_end_as_whole_characters_fit(text: str, limit: int) -> None:
    kept = cut_to_last_bytes(text.encode(), limit)
    assert text.endswith(kept)
    assert len(kept.encode()) <= limit
    left = text[: len(text) - len(kept)]
    assert not left or len((left[-1] + kept).encode()) > limit, "one more character would have fitted"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("spool") / "t"


@given(printed=PRINTED, limit=st.integers(0, 300))
def test_what_is_given_is_the_end_of_the_text_and_says_whether_it_is_all(
    folder: Path, printed: str, limit: int
) -> None:
    raw = printed.encode()
    whole = plain_text(raw)
    text, truncated = read_last_bytes(tail_of(folder, raw[: len(raw) // 2], raw[len(raw) // 2 :]), limit)
    assert text == cut_to_last_bytes(whole.encode(), limit)
    assert truncated == (len(whole.encode()) > limit)
    assert "\x1b" not in text
    assert "\r" not in text


@given(seed=st.integers(0, 1 << 32), limit=st.integers(1, 2000))
@settings(max_examples=25)
def test_of_a_long_output_only_the_end_is_looked_at_and_it_is_the_same_end(
    folder: Path, seed: int, limit: int
) -> None:
    some = ["漢字", "é" * 30, "🎉 done", "plain words", ""]
    lines = random.Random(seed).choices(some, k=5000)
    raw = "".join(f"{number} {line}\r\n" for number, line in enumerate(lines)).encode()
    text, truncated = read_last_bytes(tail_of(folder, raw), limit)
    assert text == cut_to_last_bytes(plain_text(raw).encode(), limit)
    assert truncated


def test_bytes_that_show_nothing_do_not_use_up_what_is_looked_at(folder: Path) -> None:
    colours = "".join(f"\x1b[3{n % 8}m{chr(97 + n % 26)}\x1b[0m" for n in range(100_000))
    raw = ("first\n" + colours + "\nlast\n").encode()
    text, truncated = read_last_bytes(tail_of(folder, raw), 90_000)
    assert text == cut_to_last_bytes(plain_text(raw).encode(), 90_000)
    assert truncated


def test_one_endless_line_is_cut_within_itself(folder: Path) -> None:
    raw = ("ä" * 400_000).encode()
    text, truncated = read_last_bytes(tail_of(folder, raw), 1001)
    assert (text, truncated) == ("ä" * 500, True)


def test_what_the_keeper_has_dropped_is_left_out_too(folder: Path) -> None:
    assert read_last_bytes(tail_of(folder, b"kept\n", first=1000), 100) == ("kept\n", True)


def test_of_bytes_that_are_no_text_each_is_a_sign_of_its_own(folder: Path) -> None:
    text, _ = read_last_bytes(tail_of(folder, b"a\xff\xc3\n"), 100)
    assert text == "a\ufffd\ufffd\n"


def test_nothing_printed_is_nothing_left_out(folder: Path) -> None:
    assert read_last_bytes(tail_of(folder), 100) == ("", False)
    assert read_last_bytes(tail_of(folder), 0) == ("", False)
