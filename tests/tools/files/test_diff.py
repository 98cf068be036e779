"""Diffs: what is rendered can be applied, by us and by patch."""

import shutil
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from handrail.gate.tool import Refusal
from handrail.tools.files.diff import unified
from handrail.tools.files.edit_tools import apply
from handrail.tools.files.encoding import decode, encode
from handrail.tools.files.patch import parse

_LINES = st.lists(
    st.sampled_from(
        ["a", "b", "", " ", "-- x", "++ y", "@@ z", "--- q", "+++ r", "\\ n", "c\r", "\x0c", "\u2028"]
    )
    | st.text(alphabet=st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=4),
    max_size=12,
)
_TEXTS = st.tuples(_LINES, st.booleans()).map(lambda made: "\n".join(made[0]) + ("\n" if made[1] else ""))


@settings(deadline=None)
@given(before=_TEXTS, after=_TEXTS)
def test_a_rendered_diff_applied_to_the_old_text_gives_the_new(before: str, after: str) -> None:
    diff = unified("a.txt", before.encode(), after.encode()).text
    if before == after:
        assert diff == ""
    else:
        assert apply(before, parse(diff).hunks, "a.txt") == after


@settings(deadline=None)
@given(before=_TEXTS, after=_TEXTS, lead=st.integers(1, 40))
def test_wrong_line_numbers_never_give_a_wrong_text(before: str, after: str, lead: int) -> None:
    """Lines put in front shift everything: the diff fits elsewhere exactly, or is refused."""
    diff = unified("a.txt", before.encode(), after.encode()).text
    shifted = "".join(f"lead {number}\n" for number in range(lead))
    assume(bool(before and diff) and before.endswith("\n") and after.endswith("\n"))
    try:
        changed = apply(shifted + before, parse(diff).hunks, "a.txt")
    except Refusal:
        return
    assert changed == shifted + after


@settings(deadline=None)
@given(st.binary(max_size=60), st.binary(max_size=60))
def test_bytes_that_are_not_utf8_survive_editing(before: bytes, after: bytes) -> None:
    assert encode(decode(before)) == before
    unified("a", before, after).text.encode()


@pytest.mark.skipif(shutil.which("patch") is None, reason="there is no patch program")
def test_the_patch_program_understands_what_is_rendered(tmp_path: Path) -> None:
    before = "".join(f"line {number}\n" for number in range(60))
    after = before.replace("line 5\n", "five\n").replace("line 40\n", "") + "no newline"
    (tmp_path / "a.txt").write_text(before)
    diff = unified("a.txt", before.encode(), after.encode()).text
    subprocess.run(["patch", "-p1"], input=diff.encode(), cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "a.txt").read_text() == after


def test_a_diff_counts_lines_and_says_when_no_newline_ends_the_file() -> None:
    diff = unified("a.txt", b"one\ntwo\n", b"one\n2")
    assert (
        diff.text
        == "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n\\ No newline at end of file\n"
    )
    assert (diff.added, diff.removed) == (1, 1)


def test_a_new_file_comes_from_nowhere() -> None:
    assert unified("a.txt", None, b"one\n").text == "--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+one\n"


def test_two_far_edits_in_a_long_file_are_two_small_hunks() -> None:
    lines = [f"line {number}\n" for number in range(100_000)]
    before = "".join(lines).encode()
    lines[10], lines[99_000] = "ten\n", "far\n"
    diff = unified("a.txt", before, "".join(lines).encode())
    assert (diff.added, diff.removed) == (2, 2)
    assert diff.text.count("@@ -") == 2


def test_the_worst_texts_take_bounded_time() -> None:
    before, after = b"a\nb\n" * 50_000, b"b\na\na\n" * 50_000
    started = time.thread_time()
    diff = unified("a.txt", before, after)
    assert time.thread_time() - started < 10
    assert apply(before.decode(), parse(diff.text).hunks, "a.txt") == after.decode()
