"""The VS Code extension that comes with Handrail, and the editors that it can be installed in."""

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from handrail.clients.client_facts import Machine
from handrail.lazy_dataclass import dataclass

VSIX = Path(__file__).parent / "handrail.vsix"
"""Built by `make vsix`; a wheel carries it."""
EXTENSION = "handrail.handrail"
PROGRAMS = ("code", "code-insiders", "codium", "cursor", "code-server")
INSTALL_SECONDS = 120.0
"""Bounds the wait for an editor's command that hangs."""
ERROR_LINE = re.compile(r"\w*Error: ")
"""Editors print the cause above a dump of their own code, and less useful words below it."""
MOST_WORDS = 300


class NotInstalled(Exception):
    """An editor's command failed; the message has the reason that it printed."""

    def __init__(self, command: Sequence[str], why: str) -> None:
        super().__init__(f"`{' '.join(command)}` failed: {why}")


@dataclass(frozen=True, slots=True)
class EditorProgram:
    """The command of an editor on this machine."""

    path: str

    @property
    def install(self) -> tuple[str, ...]:
        return (self.path, "--install-extension", str(VSIX), "--force")

    @property
    def remove(self) -> tuple[str, ...]:
        return (self.path, "--uninstall-extension", EXTENSION)


def find_editors(machine: Machine) -> list[EditorProgram]:
    """The editors whose command is on PATH."""
    return [EditorProgram(path) for name in PROGRAMS if (path := machine.program(name))]


def run_editor(command: Sequence[str], machine: Machine) -> None:
    """Run an editor's command to its end. Raises NotInstalled."""
    try:
        done = subprocess.run(
            command,
            env=dict(machine.environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=INSTALL_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise NotInstalled(command, str(problem)) from None
    if done.returncode:
        raise NotInstalled(command, _find_reason(done.stderr or done.stdout) or f"status {done.returncode}")


def _find_reason(output: str) -> str:
    """The first line that is an error of the program, else the last line; empty where it wrote nothing."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = (line for line in lines if ERROR_LINE.match(line))
    return next(errors, lines[-1] if lines else "")[:MOST_WORDS]
