"""Installs a real VS Code workbench below build/, which the tests of the extension drive: code-server from npm.

Its own packages are installed from the lock files that it ships. No install script runs; two of its native modules are
built, without which its log views stay empty.

    python -m tests.editors.install                                       install, if the lock file has changed
    python -m tests.editors.install npm install --package-lock-only       any npm command beside package.json
"""

import os
import sys
from pathlib import Path

import hatch_build
from tests.real_agents.install import BUILD, SETTINGS, TESTS, PackageSet, node

EDITOR = PackageSet(TESTS / "editors", BUILD / "editor")
SERVER = EDITOR.modules / "code-server"
VSCODE = SERVER / "lib" / "vscode"
ENTRY = SERVER / "out" / "node" / "entry.js"
STAMP = EDITOR.installed / ".complete"
QUIET = ("--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")


def install() -> None:
    lock = hatch_build.read(EDITOR.source / "package-lock.json")
    if hatch_build.read(STAMP) == lock and ENTRY.is_file():
        return
    EDITOR.install()
    for folder in (VSCODE, VSCODE / "extensions"):
        hatch_build.run_npm(folder, ["install", "--omit=dev", *QUIET])
    build_native_modules(VSCODE)
    STAMP.write_text(lock)


def build_native_modules(folder: Path) -> None:
    """With the headers of the Node that will run them, so that none are fetched."""
    os.environ["NPM_CONFIG_NODEDIR"] = str(node().parent.parent)
    hatch_build.run_npm(folder, ["rebuild", "@vscode/spdlog", "@vscode/native-watchdog", "--loglevel=error"])


if __name__ == "__main__":
    if sys.argv[1:2] == ["npm"]:
        hatch_build.run_npm(EDITOR.source, ["--userconfig", str(SETTINGS), *sys.argv[2:]])
    else:
        install()
