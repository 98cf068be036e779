"""Which folder is meant: as for an agent that is launched in the same place."""

from pathlib import Path

import pytest

from handrail.cli.failure import Failure
from handrail.cli.folder import project, top_level, workspace


@pytest.fixture(autouse=True)
def nowhere_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HANDRAIL_WORKSPACE", raising=False)


def test_where_one_stands_is_widened_to_the_repository_and_what_is_named_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = tmp_path / "repo" / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "repo" / ".git").mkdir()
    monkeypatch.chdir(inner)
    assert workspace(None) == tmp_path / "repo" == top_level(inner)
    assert workspace(inner) == inner
    assert workspace(Path()) == inner
    monkeypatch.setenv("HANDRAIL_WORKSPACE", str(tmp_path))
    assert workspace(None) == tmp_path
    assert workspace(inner) == inner


def test_the_root_and_home_are_no_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir("/")
    assert workspace(None) is None
    assert workspace(tmp_path) is None
    with pytest.raises(Failure, match=r"/ is too wide for a workspace\. Name a project with --workspace\."):
        project(None)


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(Failure, match=r"is not a directory\. Name one that exists with --workspace\."):
        workspace(tmp_path / "missing")
