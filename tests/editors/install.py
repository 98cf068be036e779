"""Installs the editor that the tests drive: code-server, which is VS Code with its extension host, below build/.

No install script of a package runs. VS Code's own packages are those of the shrinkwrap file that it ships.

    python -m tests.editors.install
"""

from pathlib import Path

import hatch_build
from tests.real_agents.install import BUILD, PackageSet

EDITORS = PackageSet(Path(__file__).resolve().parent, BUILD / "editors")
CODE_SERVER = EDITORS.modules / "code-server"
ENTRY = CODE_SERVER / "out" / "node" / "entry.js"
VSCODE = CODE_SERVER / "lib" / "vscode"
_STAMP = VSCODE / ".installed"
"""Written last: an install that was interrupted is done again."""


def install() -> None:
    EDITORS.install()
    if not _STAMP.exists():
        for folder in (VSCODE, VSCODE / "extensions"):
            hatch_build.run_npm(folder, ["install", "--omit=dev", "--ignore-scripts", "--loglevel=error"])
        _STAMP.touch()


if __name__ == "__main__":
    install()
