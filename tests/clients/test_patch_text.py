"""The patch format of apply_patch becomes edits of files."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.clients.hook_event import Edit, Work
from handrail.clients.patch_text import edits_from_patch, work_from_shell_patch


def patch(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


def test_a_patch_adds_deletes_updates_and_moves_files() -> None:
    edits = edits_from_patch(
        patch(
            "*** Add File: new.txt",
            "+one",
            "+",
            "*** Delete File: gone.txt",
            "*** Update File: old.py",
            "*** Move to: moved.py",
            "@@ def f():",
            " context",
            "-old",
            "+new",
            "@@ class X:",
            "+    added",
            "*** End of File",
        )
    )

    assert edits == (
        Edit(path="new.txt", content="one\n\n"),
        Edit(path="gone.txt", delete=True),
        Edit(
            path="old.py",
            replacements=(("context\nold\n", "context\nnew\n"), ("class X:\n", "class X:\n    added\n")),
            move_to="moved.py",
        ),
    )


def test_added_lines_without_a_place_go_to_the_end_of_the_file() -> None:
    assert edits_from_patch(patch("*** Update File: a", "@@", "+last")) == (
        Edit(path="a", content="last\n", appended=True),
    )


def test_an_empty_line_of_a_hunk_is_an_empty_line_of_context() -> None:
    (edit,) = edits_from_patch(patch("*** Update File: a", "@@", " x", "", "-y", "+z"))

    assert edit.replacements == (("x\n\ny\n", "x\n\nz\n"),)


@pytest.mark.parametrize("text", ["", "ls", "*** Begin Patch", patch(), patch("+ no file"), "*** End Patch"])
def test_a_text_that_is_no_patch_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match=r"^(A|The) patch .*\.$"):
        edits_from_patch(text)


DELETION = patch("*** Delete File: a")


@pytest.mark.parametrize(
    ("line", "path"),
    [
        (f"apply_patch <<'EOF'\n{DELETION}\nEOF", "a"),
        (f'apply_patch <<"EOF"\n{DELETION}\nEOF\n', "a"),
        (f"apply_patch <<EOF\n{DELETION}\nEOF", "a"),
        (f"cd sub/dir && apply_patch <<'EOF'\n{DELETION}\nEOF", "sub/dir/a"),
        (f"cd '/my files' && apply_patch <<'EOF'\n{DELETION}\nEOF", "/my files/a"),
    ],
)
def test_a_shell_line_that_only_applies_a_patch_is_an_edit(line: str, path: str) -> None:
    assert work_from_shell_patch(line) == Work(sort="edit", edits=(Edit(path=path, delete=True),))


@pytest.mark.parametrize(
    "line",
    [
        f"apply_patch <<'EOF'\n{DELETION}\nEOF\nrm -rf /",
        f"rm x; apply_patch <<'EOF'\n{DELETION}\nEOF",
        f"cd $(rm x) && apply_patch <<'EOF'\n{DELETION}\nEOF",
        "apply_patch <<EOF\n" + patch("*** Add File: a", "+$(rm x)") + "\nEOF",
        "apply_patch <<EOF\n" + patch("*** Add File: a", "+`rm x`") + "\nEOF",
        f"apply_patch <<'EOF' | sh\n{DELETION}\nEOF",
        f"apply_patch <<'EOF'\n{DELETION}\nEOF\nEOF",
        "apply_patch <<'EOF'\nno patch\nEOF",
        "ls",
    ],
)
def test_a_shell_line_that_does_more_stays_a_command(line: str) -> None:
    assert work_from_shell_patch(line) is None


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["*** Add File: a", "*** Update File: b", "@@", "+x", "-y", " z", "", "*** Move to: c"]
        )
    )
)
def test_any_lines_are_edits_or_refused(lines: list[str]) -> None:
    try:
        edits = edits_from_patch(patch(*lines))
    except ValueError:
        return
    assert edits
