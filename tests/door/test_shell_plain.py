"""Which shell a person gets, and which file a name stands for."""

import os
from pathlib import Path

import pytest

from handrail.door import shell as plain


def test_the_shell_is_the_callers_if_there_is_such_a_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell = tmp_path / "mysh"
    shell.write_text("#!/bin/sh\n")
    monkeypatch.setenv("SHELL", str(shell))
    assert plain.shell() != str(shell)  # it cannot be run
    shell.chmod(0o755)
    assert plain.shell() == str(shell)
    monkeypatch.delenv("SHELL")
    assert os.access(plain.shell(), os.X_OK)


def test_a_name_is_found_on_the_path_and_a_path_is_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "tool"
    program.touch(mode=0o755)
    (tmp_path / "folder").mkdir()
    monkeypatch.setenv("PATH", f"/nonexistent:{tmp_path}")
    assert plain.find("tool") == str(program)
    assert plain.find(str(program)) == str(program)
    assert plain.find("folder") is None
    assert plain.find(str(tmp_path)) is None
    assert plain.find("nothing") is None
