"""Names that change files in one step, and names that are taken only where they are free; with the system's help or without."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail.tools.files import atomic_write
from handrail.tools.files.atomic_write import appear, exchange


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "one").write_text("1")
    (tmp_path / "other").write_text("2")
    descriptor = os.open(tmp_path, os.O_RDONLY)
    yield descriptor
    os.close(descriptor)


def held(path: Path) -> dict[str, str]:
    return {entry.name: entry.read_text() for entry in path.iterdir()}


def test_two_names_change_their_files(folder: int, tmp_path: Path) -> None:
    if not exchange(folder, "one", "other"):
        pytest.skip("this file system cannot")
    assert held(tmp_path) == {"one": "2", "other": "1"}
    with pytest.raises(FileNotFoundError):
        exchange(folder, "one", "missing")


def test_a_file_gets_a_name_that_is_free(folder: int, tmp_path: Path) -> None:
    appear(folder, "one", "new")
    assert held(tmp_path) == {"new": "1", "other": "2"}


def test_a_file_does_not_get_a_name_that_is_taken(folder: int, tmp_path: Path) -> None:
    with pytest.raises(FileExistsError):
        appear(folder, "one", "other")
    assert held(tmp_path) == {"one": "1", "other": "2"}


@pytest.fixture
def without_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atomic_write, "_libc", lambda: None)


@pytest.mark.usefixtures("without_the_call")
def test_where_the_system_has_no_such_step_that_is_said_and_nothing_is_done(
    folder: int, tmp_path: Path
) -> None:
    assert not exchange(folder, "one", "other")
    assert held(tmp_path) == {"one": "1", "other": "2"}


@pytest.mark.usefixtures("without_the_call")
def test_a_free_name_is_given_by_a_hard_link(folder: int, tmp_path: Path) -> None:
    with pytest.raises(FileExistsError):
        appear(folder, "one", "other")
    appear(folder, "one", "new")
    assert held(tmp_path) == {"new": "1", "other": "2"}


@pytest.mark.usefixtures("without_the_call")
def test_a_name_is_given_by_a_rename_where_there_are_no_hard_links(
    folder: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*_: Any, **__: Any) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    appear(folder, "one", "new")
    assert held(tmp_path) == {"new": "1", "other": "2"}
