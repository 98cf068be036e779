"""Putting a file back on disk: its own mode from the start, nobody overwritten, nothing left after a failure."""

import errno
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from tests.support.tool_runner import refusal_of

from handrail.tools.files.target import Target
from handrail.tools.undo._undo_plan import target_of
from handrail.tools.undo.undo_call import remove_empty_folders, restore_file


def target(path: Path) -> Target:
    return target_of(str(path), ())


def below(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_that_comes_back_is_never_readable_to_more_than_it_was(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    fchmod = os.fchmod

    def watch(descriptor: int, mode: int) -> None:
        seen.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
        fchmod(descriptor, mode)

    monkeypatch.setattr(os, "fchmod", watch)
    umask = os.umask(0)
    try:
        restore_file(target(root / "a"), b"secret", 0o640)
    finally:
        os.umask(umask)
    assert (seen, mode(root / "a")) == ([0o600], 0o640)


def test_a_file_that_comes_back_becomes_nobodys_program(root: Path) -> None:
    restore_file(target(root / "a"), b"x", 0o4755)
    assert mode(root / "a") == 0o755


def test_a_file_whose_mode_is_not_known_comes_back_for_its_owner_alone(root: Path) -> None:
    restore_file(target(root / "a"), b"x", None)
    assert mode(root / "a") == 0o600


def test_a_file_that_appeared_meanwhile_is_not_overwritten(root: Path) -> None:
    looked_at = target(root / "a")
    (root / "a").write_text("theirs")
    assert "something replaced it meanwhile" in refusal_of(lambda: restore_file(looked_at, b"ours", 0o644))
    assert ((root / "a").read_text(), below(root)) == ("theirs", ["a"])


def test_a_file_that_changed_meanwhile_is_not_removed(root: Path) -> None:
    (root / "a").write_text("seen")
    looked_at = target(root / "a")
    (root / "a").write_text("theirs")
    refusal_of(lambda: restore_file(looked_at, None, None))
    assert ((root / "a").read_text(), below(root)) == ("theirs", ["a"])


def test_a_failed_return_leaves_no_folder_and_no_half_file(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int, mode: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    looked_at = target(root / "new" / "deep" / "a")
    monkeypatch.setattr(os, "fchmod", full)
    said = refusal_of(lambda: restore_file(looked_at, b"x", 0o644))
    assert said.endswith("could not be written: No space left on device. It is as it was before.")
    assert below(root) == []


def test_the_mode_of_a_file_that_was_swapped_after_its_content_came_back_is_not_touched(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a").write_text("new")
    (root / "a").chmod(0o755)
    looked_at = target(root / "a")

    def replace_then_swap(target: Target, content: bytes, *more: Any) -> None:
        (root / "a").unlink()
        (root / "a").write_text("theirs")
        (root / "a").chmod(0o755)

    monkeypatch.setattr("handrail.tools.undo.undo_call.replace_file", replace_then_swap)
    refusal_of(lambda: restore_file(looked_at, b"old", 0o600))
    assert mode(root / "a") == 0o755


def test_only_empty_folders_go_and_no_link_to_one(root: Path, tmp_path: Path) -> None:
    (root / "a" / "b").mkdir(parents=True)
    (root / "used" / "empty").mkdir(parents=True)
    (root / "used" / "file").write_text("x")
    outside = tmp_path / "outside"
    (outside / "inner").mkdir(parents=True)
    (root / "link").symlink_to(outside)
    folders = ("a", "a/b", "used", "used/empty", "link", "link/inner", "gone", "used/file")
    remove_empty_folders(str(root / name) for name in folders)
    assert below(root) == ["link", "used", "used/file"]
    assert (outside / "inner").is_dir()
