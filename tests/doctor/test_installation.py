"""What an approved command could change or trace is reported, with the remedy."""

import os
import sys
from pathlib import Path

import pytest

from handrail.doctor import installation
from handrail.doctor.installation import check_installation, check_ptrace, check_search_path, harden_commands

OTHER = 12345


@pytest.fixture
def ordinary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks believe that an ordinary user runs them. pytest makes its folder before that: it checks its owner."""
    monkeypatch.setattr("os.getuid", lambda: OTHER)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has it")
@pytest.mark.parametrize(("value", "level"), [("0\n", "warn"), ("1\n", "ok"), ("2\n", "ok"), (None, "warn")])
def test_an_open_or_missing_ptrace_scope_is_a_warning(tmp_path: Path, value: str | None, level: str) -> None:
    scope = tmp_path / "ptrace_scope"
    if value is not None:
        scope.write_text(value)
    (found,) = check_ptrace(scope)
    assert found.level == level
    assert (found.fix is None) == (level == "ok")


@pytest.mark.usefixtures("ordinary")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make folders of another user")
def test_folders_of_path_that_the_user_can_write_are_named(tmp_path: Path) -> None:
    roots, theirs = tmp_path / "roots", tmp_path / "theirs"
    roots.mkdir()
    theirs.mkdir()
    assert check_search_path({"PATH": f"{roots}:{tmp_path / 'missing'}"}).level == "ok"
    os.chown(theirs, OTHER, OTHER)
    found = check_search_path({"PATH": f"{theirs}:{roots}"})
    assert found.level == "warn"
    assert f"Your user can write {theirs}, on PATH" in found.says


@pytest.mark.usefixtures("ordinary")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make folders of another user")
def test_an_installation_that_the_user_can_write_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site-packages" / "handrail"
    package.mkdir(parents=True)
    for path in (package / "__init__.py", tmp_path / "python"):
        path.touch()
    monkeypatch.setattr(installation.handrail, "__file__", str(package / "__init__.py"))
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    folders = dict.fromkeys(("purelib", "platlib", "stdlib", "scripts"), str(package.parent))
    monkeypatch.setattr("sysconfig.get_paths", lambda: folders)
    monkeypatch.setattr("sys.path", ["", str(package.parent)])
    monkeypatch.setattr("site.ENABLE_USER_SITE", False)
    assert check_installation().level == "ok"
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, OTHER, OTHER)
    monkeypatch.setattr("sys.path", ["", "/usr/lib/missing.zip", str(home / "lib"), str(package.parent)])
    assert f"Your user can write {home}" in check_installation().says  # by PYTHONPATH
    monkeypatch.setattr("sys.path", ["", "/usr/lib/missing.zip", str(package.parent)])
    assert check_installation().level == "ok"
    monkeypatch.setattr("site.ENABLE_USER_SITE", True)  # not in a virtual environment
    monkeypatch.setattr("site.getusersitepackages", lambda: str(home / "lib" / "site-packages"))
    assert f"Your user can write {home}" in check_installation().says
    monkeypatch.setattr("site.ENABLE_USER_SITE", False)
    os.chown(package / "__init__.py", OTHER, OTHER)
    found = check_installation()
    assert (found.level, found.fix) == ("warn", installation.HARDEN)
    assert f"Your user can write {package / '__init__.py'}" in found.says


@pytest.mark.skipif(os.geteuid() != 0, reason="as root")
def test_root_is_told_to_use_another_user() -> None:
    assert check_installation().fix == "Run it as an ordinary user."


def test_the_commands_install_for_root_and_name_absolute_paths() -> None:
    lines = [line for line in harden_commands().splitlines() if line.startswith("sudo")]
    python, pip = (line.split()[1] for line in lines[:2])
    assert python.startswith("/")
    assert pip == "/opt/handrail/bin/python"
    # A module of the working folder would run as root.
    assert all(" -I -m " in line for line in lines if " -m " in line)
