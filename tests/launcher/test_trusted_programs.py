"""Programs are found where only root can write, whatever PATH says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.house.source import SRC

from handrail.launcher.trusted_programs import find_program, find_untrusted

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can make folders that belong to root")


@pytest.fixture
def root_owned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a program `tool`, both of root; tests run below a sticky folder such as /tmp."""
    folder = tmp_path / "bin"
    folder.mkdir()
    make_program(folder / "tool")
    monkeypatch.setattr("handrail.launcher.trusted_programs.SYSTEM_FOLDERS", ())
    return folder


def make_program(path: Path) -> None:
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)


def test_a_program_in_a_folder_of_root_is_found(root_owned: Path) -> None:
    assert find_program("tool", str(root_owned)) == str(root_owned / "tool")
    assert find_program("tool") is None


@pytest.mark.parametrize(
    "change", ["folder of a user", "folder open to all", "file of a user", "file open to all"]
)
def test_a_program_that_a_user_can_replace_is_not_found(root_owned: Path, change: str) -> None:
    changed = root_owned if change.startswith("folder") else root_owned / "tool"
    if change.endswith("user"):
        os.chown(changed, 12345, 12345)
    else:
        changed.chmod(0o777)
    assert find_program("tool", str(root_owned)) is None
    assert find_untrusted(root_owned / "tool") == changed


def test_a_user_can_replace_what_a_link_leads_to(root_owned: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    make_program(theirs / "tool")
    (root_owned / "link").symlink_to(theirs / "hop")
    (theirs / "hop").symlink_to(root_owned / "tool")
    assert find_program("link", str(root_owned)) == str(root_owned / "link")
    os.chown(theirs, 12345, 12345)
    assert find_program("link", str(root_owned)) is None, "the link in between can be replaced"


def test_a_folder_that_may_not_be_searched_is_passed_over(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    find = f"print(programs.find_program('tool', '{closed}/bin'))"
    code = f"import os, sys; sys.path.insert(0, {str(SRC)!r}); from handrail.launcher import trusted_programs as programs; programs.find_program('sh', bundled=True); os.setuid(12345); {find}"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.stdout, done.stderr) == ("None\n", "")


def test_relative_folders_of_path_are_ignored(root_owned: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root_owned)
    assert find_program("tool", os.pathsep.join(("", "."))) is None


def test_a_bundled_program_comes_first(
    root_owned: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def scripts(_: str) -> str:
        return str(tmp_path)

    monkeypatch.setattr("sysconfig.get_path", scripts)
    make_program(tmp_path / "tool")
    assert find_program("tool", str(root_owned), bundled=True) == str(tmp_path / "tool")
    assert find_program("tool", str(root_owned)) == str(root_owned / "tool")
