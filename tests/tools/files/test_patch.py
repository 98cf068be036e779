"""Reading patches: what their heads say, and what is refused."""

import pytest
from tests.support.tool_runner import refusal_of

from handrail.tools.files.patch import Head, parse

HUNK = "@@ -1 +1 @@\n-a\n+b\n"


@pytest.mark.parametrize(
    ("diff", "head"),
    [
        (HUNK, Head()),
        (f"--- a/x\n+++ b/x\n{HUNK}", Head()),
        ("--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+b\n", Head(creates=True)),
        ("--- a/x\t2020-01-01\n+++ /dev/null\t1970-01-01\n@@ -1 +0,0 @@\n-a\n", Head(deletes=True)),
        ("diff --git a/x b/x\ndeleted file mode 100755\nindex 1..0\n", Head(deletes=True)),
        ("diff --git a/x b/x\nnew file mode 100644\nindex 0..1\n", Head(creates=True, executable=False)),
        ("diff --git a/x b/x\nold mode 100644\nnew mode 100755\n", Head(executable=True)),
        (f"old mode 100755\nnew mode 100644\n--- a/x\n+++ b/x\n{HUNK}", Head(executable=False)),
        ("<<<<<<< SEARCH\nnew mode 100755\n=======\nb\n>>>>>>> REPLACE", Head()),
        ("@@ -1,2 +1 @@\n-a\n--- /dev/null\n", Head()),
    ],
)
def test_a_head_says_what_becomes_of_the_file(diff: str, head: Head) -> None:
    assert parse(diff).head == head


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (
            "rename from a\nrename to b",
            "renames or copies the file (rename from a), which apply_diff does not",
        ),
        ("copy from a\ncopy to b", "renames or copies the file"),
        ("GIT binary patch", "more than a change of text"),
        ("new mode 100600", "gives the file mode 100600; apply_diff knows 100644 and 100755"),
        ("new file mode 120000", "a link or a submodule (mode 120000)"),
        ("deleted file mode 160000", "a link or a submodule (mode 160000)"),
        ("diff --git a/y b/y\nold mode 100644\nnew mode 100755", "of several files"),
    ],
)
def test_what_is_no_change_of_one_file_is_refused(lines: str, sentence: str) -> None:
    assert sentence in refusal_of(lambda: parse(f"diff --git a/x b/x\n{lines}\n"))
