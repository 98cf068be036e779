"""Newest versions of packages, looked up by `npm view` and `pip index versions`.

The package managers know the user's registries, proxies and credentials, so Handrail asks them and not a host. It
installs nothing.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from typing import TYPE_CHECKING

from handrail.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SECONDS = 30.0
"""Bounds all lookups together: without a network, each would run into its own long timeout."""
FOLDER = "/"
"""Where the package managers run. In a project, an agent's files would be loaded: Python modules, and an `.npmrc` that names
the registry and can send it environment variables."""
AT_ONCE = 4
"""Lookups at the same time; npm takes much memory."""
_VERSION = re.compile(r"\d+(\.\d+)*([-.+]?[0-9A-Za-z]+)*")


@dataclass(slots=True)
class NewestVersions:
    """The newest version by name, and a sentence for each manager that could not be asked."""

    versions: dict[str, str] = field(default_factory=dict[str, str])
    problems: list[str] = field(default_factory=list[str])


def find_newest_versions(packages: Mapping[str, tuple[str, str]], seconds: float = SECONDS) -> NewestVersions:
    """Look up packages, given as name → (manager, package), in at most `seconds`."""
    newest, until = NewestVersions(), time.monotonic() + seconds
    commands = {
        manager: _lookup_command(manager) for manager in {manager for manager, _ in packages.values()}
    }
    newest.problems += [_MISSING[manager] for manager, command in sorted(commands.items()) if not command]
    wanted = {
        name: (*commands[manager], *_arguments(manager, package))
        for name, (manager, package) in packages.items()
        if commands[manager]
    }
    with ThreadPoolExecutor(AT_ONCE) as pool:
        lookups = {name: pool.submit(_run, command, until) for name, command in wanted.items()}
        found = {name: lookup.result() for name, lookup in lookups.items()}
    newest.versions = {name: version for name, version in found.items() if version}
    silent = [name for name, version in found.items() if not version]
    if silent and newest.versions:
        newest.problems.append(f"No version was found for {', '.join(silent)}.")
    return newest


_MISSING = {
    "npm": "npm is not installed, so agents from npm were not looked up.",
    "uv": "There is no pip, so agents from PyPI were not looked up.",
}


def _lookup_command(manager: str) -> tuple[str, ...]:
    """The program that looks up packages of a manager; empty without one."""
    if manager == "npm":
        npm = shutil.which("npm")
        return (npm, "view") if npm else ()
    for python in (sys.executable, shutil.which("python3")):
        if python and _has_pip(python):
            return (python, "-I", "-m", "pip", "index", "versions")
    return ()


def _has_pip(python: str) -> bool:
    try:
        asked = subprocess.run(
            [python, "-I", "-c", "import importlib.util as u, sys; sys.exit(u.find_spec('pip') is None)"],
            cwd=FOLDER,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return asked.returncode == 0


def _arguments(manager: str, package: str) -> tuple[str, ...]:
    name = package.partition("[")[0]
    # Agents need newer Pythons than ours may be; without this, pip names the last version for this one.
    return (name, "version") if manager == "npm" else (name, "--python-version=3.13", "--only-binary=:all:")


def _run(command: Sequence[str], until: float) -> str | None:
    """The first version in the output; None if the lookup failed or took too long."""
    remaining = until - time.monotonic()
    if remaining <= 0:
        return None
    try:
        answer = subprocess.run(
            command, cwd=FOLDER, stdin=subprocess.DEVNULL, capture_output=True, timeout=remaining, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    words = answer.stdout.decode(errors="replace").split() if answer.returncode == 0 else []
    return next((word.strip("()") for word in words if _VERSION.fullmatch(word.strip("()"))), None)
