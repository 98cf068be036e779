"""Installs real VS Code workbenches below build/, which the tests of the extension drive: code-server from npm.

There are two: the newest that was tried, and the oldest that the extension's manifest allows. Their own packages are installed
from the lock files that they ship. No install script runs; two native modules are built, without which log views stay empty.

    python -m tests.editors.install                                          install what has changed
    python -m tests.editors.install NAME npm install --package-lock-only     any npm command beside NAME's package.json
"""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import hatch_build
from tests.real_agents.install import BUILD, SETTINGS, TESTS, PackageSet, node

QUIET = ("--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")


@dataclass(frozen=True, slots=True)
class Editor:
    """One version of code-server."""

    packages: PackageSet

    @property
    def entry(self) -> Path:
        """The script that starts it."""
        return self.packages.modules / "code-server" / "out" / "node" / "entry.js"

    @property
    def vscode(self) -> Path:
        return self.packages.modules / "code-server" / "lib" / "vscode"

    def install(self) -> None:
        """Install it, if its lock file has changed."""
        lock = hatch_build.read(self.packages.source / "package-lock.json")
        stamp = self.packages.installed / ".complete"
        if hatch_build.read(stamp) == lock and self.entry.is_file():
            return
        self.packages.install()
        for folder in (self.vscode, self.vscode / "extensions"):
            hatch_build.run_npm(folder, ["install", "--omit=dev", *QUIET])
        build_native_modules(self.vscode)
        stamp.write_text(lock)


NEWEST = Editor(PackageSet(TESTS / "editors", BUILD / "editor"))
OLDEST = Editor(PackageSet(TESTS / "editors" / "oldest", BUILD / "oldest-editor"))
EDITORS = {"newest": NEWEST, "oldest": OLDEST}


def build_native_modules(folder: Path) -> None:
    """With the headers of the Node that will run them, so that none are fetched."""
    os.environ["NPM_CONFIG_NODEDIR"] = str(node().parent.parent)
    hatch_build.run_npm(folder, ["rebuild", "@vscode/spdlog", "@vscode/native-watchdog", "--loglevel=error"])


def main(words: list[str]) -> None:
    if words[1:2] == ["npm"]:
        source = EDITORS[words[0]].packages.source
        hatch_build.run_npm(source, ["--userconfig", str(SETTINGS), *words[2:]])
        return
    for editor in EDITORS.values():
        editor.install()


if __name__ == "__main__":
    main(sys.argv[1:])
