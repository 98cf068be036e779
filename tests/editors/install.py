"""Installs real VS Code workbenches below build/, which the tests of the extension drive: code-server from npm.

There are two: the newest that was tried, and the oldest that the extension's manifest allows. Their own packages are installed
from the lock files that they ship. No other install script runs than those that build two native modules, without which log views stay empty, and argon2.

    python -m tests.editors.install                                          install what has changed
    python -m tests.editors.install NAME npm install --package-lock-only     any npm command beside NAME's package.json
"""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import hatch_build
from tests.real_agents.install import BUILD, SETTINGS, TESTS, PackageSet, node
from tests.real_agents.program_cache import install_or_copy

QUIET = ("--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")


@dataclass(frozen=True, slots=True)
class Editor:
    """One version of code-server."""

    packages: PackageSet
    flags: tuple[str, ...] = ()
    """Options that only this version has."""
    builds_argon2: bool = False
    """Whether its hash of passwords, without which it does not start, comes without a binary."""

    @property
    def entry(self) -> Path:
        """The script that starts it."""
        return self.packages.modules / "code-server" / "out" / "node" / "entry.js"

    @property
    def vscode(self) -> Path:
        return self.packages.modules / "code-server" / "lib" / "vscode"

    def install(self) -> None:
        """Install it, if its lock file or this module has changed."""
        wanted = self.packages.lock() + Path(__file__).read_text()
        install_or_copy(self.packages.installed, wanted, self._install_all)

    def _install_all(self) -> None:
        self.packages.install_packages()
        for folder in (self.vscode, self.vscode / "extensions"):
            hatch_build.run_npm(folder, ["install", "--omit=dev", *QUIET])
        build_native_modules(self.vscode, "@vscode/spdlog", "@vscode/native-watchdog")
        if self.builds_argon2:
            build_native_modules(self.packages.installed, "argon2")


NEWEST = Editor(PackageSet(TESTS / "editors", BUILD / "editor"), flags=("--reconnection-grace-time", "5"))
OLDEST = Editor(PackageSet(TESTS / "editors" / "oldest", BUILD / "oldest-editor"), builds_argon2=True)
EDITORS = {"newest": NEWEST, "oldest": OLDEST}


def build_native_modules(folder: Path, *names: str) -> None:
    """With the headers of the Node that will run them, so that none are fetched. C++ (logs) is not optimised, to compile faster."""
    os.environ["NPM_CONFIG_NODEDIR"] = str(node().parent.parent)
    os.environ["CXXFLAGS"] = "-O0"
    options = ("--build-from-source", "--ignore-scripts=false", "--loglevel=error")
    hatch_build.run_npm(folder, ["rebuild", *names, *options])


def main(words: list[str]) -> None:
    if words[1:2] == ["npm"]:
        source = EDITORS[words[0]].packages.source
        hatch_build.run_npm(source, ["--userconfig", str(SETTINGS), *words[2:]])
        return
    for editor in EDITORS.values():
        editor.install()


if __name__ == "__main__":
    main(sys.argv[1:])
