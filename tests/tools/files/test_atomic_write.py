"""Putting new content in a file's place: what is kept, and what a failure leaves."""

import errno
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from tests.support.tool_runner import refusal_of

from handrail.tools.files import atomic_write
from handrail.tools.files.atomic_write import remove_file, replace_file
from handrail.tools.files.target import Target, build_notes, look
from handrail.tools.workspace import Workspace


def target_of(root: Path, path: str) -> Target:
    return look(Workspace(str(root)).place(path))


def test_other_names_of_a_file_keep_the_old_content_and_that_is_noted(root: Path) -> None:
    (root / "a").write_text("old\n")
    os.link(root / "a", root / "b")
    target = target_of(root, "a")
    assert build_notes(target, b"new\n") == (
        "The old content stays under 1 other name of the file (hard links).",
    )
    replace_file(target, b"new\n")
    assert (root / "a").read_text() == "new\n"
    assert (root / "b").read_text() == "old\n"


def test_special_mode_bits_are_dropped_and_that_is_noted(root: Path) -> None:
    (root / "a").write_text("old\n")
    (root / "a").chmod(0o4755)
    target = target_of(root, "a")
    assert "The file loses its special mode bits (mode 4755)." in build_notes(target, b"new\n")
    replace_file(target, b"new\n")
    assert stat.S_IMODE((root / "a").stat().st_mode) == 0o755


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="needs extended attributes")
def test_extended_attributes_are_kept(root: Path) -> None:
    (root / "a").write_text("old\n")
    try:
        os.setxattr(root / "a", "user.note", b"mine")
    except OSError:
        pytest.skip("this file system has no extended attributes")
    replace_file(target_of(root, "a"), b"new\n")
    assert os.getxattr(root / "a", "user.note") == b"mine"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_the_owner_is_kept(root: Path) -> None:
    (root / "a").write_text("old\n")
    os.chown(root / "a", 12345, 54321)
    replace_file(target_of(root, "a"), b"new\n")
    assert ((root / "a").stat().st_uid, (root / "a").stat().st_gid) == (12345, 54321)


def test_a_new_file_is_made_where_there_are_no_hard_links(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*args: Any, **kwargs: Any) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    replace_file(target_of(root, "a"), b"new\n")
    assert [path.name for path in root.iterdir()] == ["a"]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int, data: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    (root / "a").write_text("old\n")
    target = target_of(root, "a")
    monkeypatch.setattr(os, "write", full)
    said = refusal_of(lambda: replace_file(target, b"new\n"))
    assert said == "a could not be written: No space left on device. It is as it was before."
    assert (root / "a").read_text() == "old\n"
    assert [path.name for path in root.iterdir()] == ["a"]


def test_a_change_at_the_last_moment_outside_the_workspace_is_refused_without_telling_it(
    root: Path, tmp_path: Path
) -> None:
    (tmp_path / "far").write_text("secret one\n")
    target = target_of(root, "../far")
    (tmp_path / "far").write_text("secret two\n")
    assert "secret" not in refusal_of(lambda: replace_file(target, b"new\n"))


def test_a_file_is_replaced_where_names_cannot_change_files_in_one_step(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atomic_write, "_libc", lambda: None)
    (root / "a").write_text("old\n")
    replace_file(target_of(root, "a"), b"new\n")
    assert [(path.name, path.read_text()) for path in root.iterdir()] == [("a", "new\n")]


def test_a_file_is_taken_away_unless_it_has_changed(root: Path) -> None:
    (root / "a").write_text("old\n")
    target = target_of(root, "a")
    (root / "a").write_text("other\n")
    assert "a changed on disk" in refusal_of(lambda: remove_file(target))
    assert (root / "a").read_text() == "other\n"
    remove_file(target_of(root, "a"))
    assert list(root.iterdir()) == []


def test_a_deletion_that_the_system_forbids_leaves_the_file(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(*_: Any, **__: Any) -> None:
        raise OSError(errno.EACCES, "Permission denied")

    (root / "a").write_text("old\n")
    target = target_of(root, "a")
    monkeypatch.setattr(os, "rename", forbidden)
    assert refusal_of(lambda: remove_file(target)) == (
        "a could not be deleted: Permission denied. It is as it was before."
    )
    assert (root / "a").read_text() == "old\n"


def test_whoever_writes_twice_while_a_file_is_put_back_loses_neither(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They write just before the two change places, and again just before they change back."""
    (root / "a").write_text("old\n")
    target = target_of(root, "a")
    writes, exchange = iter(["theirs\n", "theirs again\n"]), atomic_write.exchange

    def exchange_after_a_write(folder: int, one: str, other: str) -> bool:
        content = next(writes, None)
        if content is not None:
            (root / "b").write_text(content)
            (root / "b").rename(root / "a")
        return exchange(folder, one, other)

    monkeypatch.setattr(atomic_write, "exchange", exchange_after_a_write)
    said = refusal_of(lambda: replace_file(target, b"new\n"))
    assert (root / "a").read_text() == "theirs again\n"
    (kept,) = (path for path in root.iterdir() if path.name != "a")
    assert kept.read_text() == "theirs\n"
    assert said.endswith(f"is kept beside it as {kept.name}.")


@pytest.mark.parametrize(
    ("mode", "executable", "then"), [(0o640, True, 0o750), (0o755, False, 0o644), (0o600, True, 0o700)]
)
def test_whoever_may_read_a_file_may_execute_it_when_it_is_made_executable(
    root: Path, mode: int, executable: bool, then: int
) -> None:
    (root / "a").write_text("old\n")
    (root / "a").chmod(mode)
    replace_file(target_of(root, "a"), b"new\n", executable)
    assert stat.S_IMODE((root / "a").stat().st_mode) == then
