"""The rules of .gitignore, held against git itself."""

import os
import subprocess
from pathlib import Path

import pytest

from handrail.tools.search.gitignore import Ignore, Rules, is_in_git, read_rules

RULES = "\n".join([
    "*.log", "!keep.log", "/top", "build/", "doc/*.txt", "a/**/z", "**/cache", "tail/**", "\\!bang", "\\#hash", "space\\ ", "trailing   ", "[ab]c", "q?",
])  # fmt: skip
PATHS = [
    "x.log", "keep.log", "sub/keep.log", "top", "sub/top", "build/o", "sub/build/o", "file/build", "doc/a.txt",
    "doc/sub/a.txt", "a/z", "a/b/z", "a/b/c/z", "b/a/z", "cache", "sub/cache/o", "tail/x", "sub/tail/x", "!bang",
    "#hash", "space ", "space", "trailing", "ac", "cc", "qx", "q", "qxx", "x.LOG",
]  # fmt: skip


def hidden(rules: Rules, path: str) -> bool:
    """As a walk meets it: a folder that is hidden hides what is below."""
    parts = path.split("/")
    ignore = Ignore(((rules, ""),))
    for folder in parts[:-1]:
        if ignore.hides(folder, folder=True):
            return True
        ignore = ignore.below(folder, None)
    return ignore.hides(parts[-1], folder=False)


def test_the_rules_hide_what_git_says_they_hide(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / ".gitignore").write_text(RULES)
    for path in PATHS:
        found = subprocess.run(["git", "check-ignore", "-q", "--no-index", path], cwd=tmp_path, check=False)
        assert hidden(Rules(RULES), path) is (found.returncode == 0), path


def test_git_is_found_above_a_folder_and_a_pipe_for_rules_is_no_trap(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    assert not is_in_git(str(tmp_path / "sub"))
    (tmp_path / ".git").touch()
    assert is_in_git(str(tmp_path / "sub"))
    os.mkfifo(tmp_path / "sub" / ".gitignore")
    assert read_rules(str(tmp_path / "sub" / ".gitignore")) is None


@pytest.mark.parametrize("name", [".git"])
def test_gits_own_folder_is_always_hidden(name: str) -> None:
    assert Ignore().hides(name, folder=True)
