"""Files of a workspace by some letters of their path."""

from pathlib import Path

import pytest

from handrail.server.api._mention_search import rank_paths, search_mentions


def test_names_that_begin_with_the_letters_come_first() -> None:
    paths = ["src/auth/login.py", "auth.md", "docs/reauth.md", "lib/author.py", "a/u/t/x/h.py", "zebra"]
    assert rank_paths(paths, "auth", 10) == [
        "auth.md",
        "lib/author.py",
        "docs/reauth.md",
        "src/auth/login.py",
        "a/u/t/x/h.py",
    ]
    assert rank_paths(paths, "AUTH", 1) == ["auth.md"]


@pytest.mark.anyio
async def test_ignored_files_and_folders_that_are_gone_give_nothing(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("secret.txt\n")
    (tmp_path / "secret.txt").write_text("x")
    (tmp_path / "seen.txt").write_text("x")
    assert await search_mentions(str(tmp_path), "txt", 10) == ["seen.txt"]
    assert await search_mentions(str(tmp_path / "gone"), "", 10) == []
