"""Installs real VS Code workbenches below build/, which the tests of the extension drive: code-server from npm.

There are two: the newest that was tried, and the oldest that the extension's manifest allows. Their own packages are installed
from the lock files that they ship. No other install script runs than those that build native modules which come without a binary: of logs,
of a watchdog, and of passwords. What the other install scripts of the oldest would download or build is made here.

    python -m tests.editors.install                                          install what has changed
    python -m tests.editors.install NAME npm install --package-lock-only     any npm command beside NAME's package.json
"""

import json
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import hatch_build
from tests.real_agents.install import BUILD, SETTINGS, TESTS, PackageSet, node
from tests.real_agents.program_cache import install_or_copy

from handrail.terminal.ripgrep import ripgrep

QUIET = ("--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")


@dataclass(frozen=True, slots=True)
class Editor:
    """One version of code-server."""

    packages: PackageSet
    flags: tuple[str, ...] = ()
    """Options that only this version has."""
    node_flags: tuple[str, ...] = ()
    """What makes the Node of the wheel like the one that this version is made for."""
    lacks_binaries: bool = False
    """Whether its hash of passwords, its terminals and its search of files come without binaries. It does not start without the first."""

    @property
    def version(self) -> str:
        """Of code-server, as its package.json here names it: it need not be installed."""
        return json.loads((self.packages.source / "package.json").read_text())["dependencies"]["code-server"]

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
        os.environ["NPM_CONFIG_NODEDIR"] = str(node().parent.parent)  # its headers, so that none are fetched
        os.environ["CXXFLAGS"] = "-O0"  # compiles faster
        self.packages.install_packages()
        for folder in (self.vscode, self.vscode / "extensions"):
            hatch_build.run_npm(folder, ["install", "--omit=dev", *QUIET])
        build_native_modules(self.vscode, "@vscode/spdlog", "@vscode/native-watchdog", "native-watchdog")
        if self.lacks_binaries:
            build_native_modules(self.packages.installed, "argon2")
            build_terminals(self.vscode)
            copy_ripgrep(self.vscode / "node_modules" / "@vscode" / "ripgrep" / "bin")


NEWEST = Editor(PackageSet(TESTS / "editors", BUILD / "editor"), flags=("--reconnection-grace-time", "5"))
OLDEST = Editor(
    PackageSet(TESTS / "editors" / "oldest", BUILD / "oldest-editor"),
    # Node 20 has no `navigator`. Where there is one, its TypeScript takes itself to run in a browser, and checks no types.
    node_flags=("--no-experimental-global-navigator",),
    lacks_binaries=True,
)
EDITORS = {"newest": NEWEST, "oldest": OLDEST}


def build_native_modules(folder: Path, *names: str) -> None:
    """Names that the folder does not have are ignored."""
    options = ("--build-from-source", "--ignore-scripts=false", "--loglevel=error")
    hatch_build.run_npm(folder, ["rebuild", *names, *options])


def build_terminals(vscode: Path) -> None:
    """Without `npm rebuild`: the install script of node-pty goes on to start `npx`, which the Node of the wheel does not have."""
    hatch_build.run_npm(vscode, ["explore", "node-pty", "--", "node-gyp", "rebuild", "--loglevel=error"])


def copy_ripgrep(folder: Path) -> None:
    """The program that Handrail uses too: the editor's own package has an install script download it from GitHub."""
    folder.mkdir(exist_ok=True)
    shutil.copy2(ripgrep(), folder / "rg")


def main(words: list[str]) -> None:
    if words[1:2] == ["npm"]:
        source = EDITORS[words[0]].packages.source
        hatch_build.run_npm(source, ["--userconfig", str(SETTINGS), *words[2:]])
        return
    for editor in EDITORS.values():
        editor.install()


if __name__ == "__main__":
    main(sys.argv[1:])
