"""A program for people hides its memory before it does anything else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from handrail import hardening

PR_GET_DUMPABLE = 3
PROGRAM = f"""
import ctypes, sys
from handrail.hardening import hide_memory
told = ctypes.CDLL(None).prctl
before = told({PR_GET_DUMPABLE}, 0, 0, 0, 0)
hide_memory()
print(before, told({PR_GET_DUMPABLE}, 0, 0, 0, 0), "handrail.cli.command_line" in sys.modules, "typer" in sys.modules)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has it")
def test_it_is_hidden_before_anything_large_is_imported() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == ["1", "0", "False", "False"]


def test_elsewhere_nothing_is_asked_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardening.sys, "platform", "darwin")
    monkeypatch.setitem(sys.modules, "ctypes", None)  # whoever imports it now fails
    hardening.hide_memory()
    monkeypatch.setattr(hardening.sys, "platform", "linux")
    with pytest.raises(ImportError):
        hardening.hide_memory()


def test_no_plugin_of_another_package_is_loaded(tmp_path: Path) -> None:
    info = tmp_path / "planted-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: planted\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[pydantic]\nplanted = planted:plugin\n")
    (tmp_path / "planted.py").write_text("print('planted')\nclass plugin: ...\n")
    lines = ["from handrail.hardening import ignore_plugins", "ignore_plugins()"]
    define = ["from pydantic import BaseModel", "class Model(BaseModel): ...", "print(Model())"]

    assert run_lines(define, tmp_path).startswith("planted")
    assert "planted" not in run_lines(lines + define, tmp_path)


def run_lines(lines: list[str], folder: Path) -> str:
    """The output of a program that finds packages in this folder too."""
    return subprocess.run(
        [sys.executable, "-c", "\n".join(lines)],
        env={**os.environ, "PYTHONPATH": str(folder)},
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    ).stdout
