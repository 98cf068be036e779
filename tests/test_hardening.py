"""A program for people hides its memory before it does anything else."""

import subprocess
import sys

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
