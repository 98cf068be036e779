"""`handrail connect vscode` installs the extension, and never writes a server on stdio."""

from pathlib import Path

import pytest
from tests.support.cli_home import Home

from handrail.clients.vscode_extension import VSIX

pytestmark = pytest.mark.e2e


@pytest.fixture
def code(handrail: Home, tmp_path: Path) -> Path:
    """A `code` command that notes what it is told."""
    folder, words = tmp_path / "bin", tmp_path / "words"
    folder.mkdir()
    program = folder / "code"
    program.write_text(f'#!/bin/sh\necho "$@" >> {words}\n')
    program.chmod(0o755)
    handrail.env["PATH"] = f"{folder}:/usr/bin:/bin"
    handrail.env["HOME"] = str(tmp_path)
    return words


def test_it_installs_and_removes_the_extension_and_writes_no_entry(handrail: Home, code: Path) -> None:
    assert VSIX.is_file(), "the extension is not built; run `make vsix`"
    shown = handrail.ok("connect", "vscode", "--dry-run")
    assert "--install-extension" in shown.out
    assert not code.exists()

    handrail.ok("connect", "vscode", "--yes")
    handrail.ok("connect", "vscode", "--undo", "--yes")

    installed, removed = code.read_text().splitlines()
    assert installed == f"--install-extension {VSIX} --force"
    assert removed == "--uninstall-extension handrail.handrail"
    assert list(code.parent.rglob("mcp.json")) == []
