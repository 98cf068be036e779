"""Runs a client's own program for a person's command: for its version, its configuration and its hooks.

The only module here that starts processes. The daemon does not import it.
"""

import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from handrail.clients.client_facts import Client, Machine
from handrail.clients.config_edit import is_object

VERSION_SECONDS = 5.0
"""Bounds a client that hangs when it is asked for its version."""


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """How a program ended, and its output."""

    status: int
    stdout: str
    stderr: str


def run_program(
    command: Sequence[str],
    environ: Mapping[str, str],
    seconds: float,
    *,
    input: str = "",
    cwd: str | None = None,
) -> ProgramResult:
    """Run a program to its end. Raises OSError if it cannot be run, TimeoutError if it takes too long."""
    try:
        done = subprocess.run(
            command,
            input=input,
            check=False,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            env=dict(environ),
            cwd=cwd,
        )
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"it took longer than {seconds:.0f} s") from None
    return ProgramResult(done.returncode, done.stdout, done.stderr)


def find_version(client: Client, machine: Machine) -> str:
    """The version of the installed program: from its package if it has one, else from the program itself."""
    program = client.program(machine)
    if program is None:
        return ""
    return _version_of_package(Path(os.path.realpath(program))) or _ask_version(program, machine)


def _version_of_package(program: Path) -> str:
    """From npm's package.json, which takes no time to read; or from a folder that is named by the version."""
    if re.fullmatch(r"\d+\.\d+\.\d+", program.name):
        return program.name
    for folder in program.parents[:4]:
        try:
            package = json.loads((folder / "package.json").read_text())
        except (OSError, ValueError):
            continue
        version = package.get("version") if is_object(package) else None
        if isinstance(version, str):
            return version
    return ""


def _ask_version(program: str, machine: Machine) -> str:
    try:
        done = run_program([program, "--version"], machine.environ, VERSION_SECONDS)
    except OSError:
        return ""
    numbers = re.search(r"\d+\.\d+(?:\.\d+)?", done.stdout)
    return numbers[0] if numbers else ""
