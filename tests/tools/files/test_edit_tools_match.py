"""Exact replacement, and what is said about a near miss."""

import time

import pytest

from handrail.gate.tool import Refusal
from handrail.tools.files.edit_tools import nearest, replace_match


def test_line_endings_of_the_text_win() -> None:
    assert replace_match("a\r\nb\r\n", "a\nb", "x\ny", "f", every=False) == ("x\r\ny\r\n", 1)
    assert replace_match("a\nb\n", "a\r\nb", "x\r\ny", "f", every=False) == ("x\ny\n", 1)
    assert replace_match("a\nb\r\nc", "b\nc", "x\ny", "f", every=False) == ("a\nx\r\ny", 1)


def test_many_occurrences_are_counted_and_the_first_ten_named() -> None:
    with pytest.raises(Refusal, match=r"occurs 12 times in f \(lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 …\)"):
        replace_match("x\n" * 12, "x", "y", "f", every=False)


def test_two_occurrences_in_one_line_are_two() -> None:
    with pytest.raises(Refusal, match=r"occurs 2 times in f \(lines 1, 1\)"):
        replace_match("x x\n", "x", "y", "f", every=False)


def test_a_long_near_miss_is_shown_in_part() -> None:
    text = "".join(f"    line {number}\n" for number in range(20))
    said = nearest(text, "".join(f"line {number}\n" for number in range(10)))
    assert said.startswith("These lines differ only in white space:\n     1→    line 0\n")
    assert said.endswith("… 4 more lines")


def test_the_search_for_a_near_miss_takes_bounded_time() -> None:
    text = "".join(f"value_{number} = compute({number})\n" for number in range(200_000))
    started = time.thread_time()
    assert "The closest lines are" in nearest(text, "value_17 = computed(17)")
    assert time.thread_time() - started < 10
