"""The path and the command lines by which clients start Handrail.

The path must outlive an upgrade, so it is the script on PATH and not the target of a symlink. Clients take a program with
arguments, or a line for the shell; a home that is not the default is part of both.
"""

import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import handrail
from handrail.lazy_dataclass import dataclass

NO_ANSWER = "Handrail did not answer; refused"


@dataclass(frozen=True, slots=True)
class Launcher:
    """How clients start this Handrail."""

    path: str
    home: str = ""
    """HANDRAIL_HOME, if it is set."""

    @property
    def environment(self) -> dict[str, str]:
        return {"HANDRAIL_HOME": self.home} if self.home else {}

    def argv(self, *arguments: str) -> list[str]:
        """Program and arguments, for clients that use no shell."""
        before = ["/usr/bin/env", f"HANDRAIL_HOME={self.home}"] if self.home else []
        return [*before, self.path, *arguments]

    def line(self, *arguments: str) -> str:
        """A line for the shell."""
        before = f"HANDRAIL_HOME={shlex.quote(self.home)} " if self.home else ""
        return before + shlex.join([self.path, *arguments])

    def closed_line(self, *arguments: str) -> str:
        """A line that refuses the tool call if Handrail is missing or dies: clients run the tool on most exit statuses.

        Status 2 is Handrail's own refusal, which has printed the reason.
        """
        return f"{self.line(*arguments)} || {{ [ $? -eq 2 ] || echo '{NO_ANSWER}' >&2; exit 2; }}"

    def open_line(self, *arguments: str) -> str:
        """A line that never blocks anything, for events that only report."""
        return f"{self.line(*arguments)} || true"


def find_launcher(environ: Mapping[str, str], program: str = "") -> Launcher:
    """The launcher named by the user, else the script that runs, else the one on PATH, else the one of this Python."""
    home = environ.get("HANDRAIL_HOME", "")
    started = Path(sys.argv[0]) if sys.argv else Path()
    candidates = (
        program,
        str(started) if started.name == "handrail" and started.is_absolute() else "",
        shutil.which("handrail", path=environ.get("PATH", "")) or "",
        str(Path(sys.executable).with_name("handrail")),
    )
    path = next(each for each in candidates if each)
    return Launcher(
        str(Path(path).expanduser().absolute()), str(Path(home).expanduser().absolute()) if home else ""
    )


def find_problem(launcher: Launcher) -> str:
    """Why clients cannot rely on this path; empty if they can."""
    path = Path(launcher.path)
    if not os.access(path, os.X_OK) or path.is_dir():
        return f"There is no program {path}. Install Handrail (`uv tool install handrail`), or name one with --launcher."
    package = Path(handrail.__file__).resolve()
    inside = Path(os.path.realpath(path)).parent.parent
    if (inside / "pyvenv.cfg").exists() and not package.is_relative_to(inside.resolve()):
        return (
            f"{path} is in a source checkout. If you move or remove it, connected clients can run no tool, until you "
            "connect or disconnect them again."
        )
    return ""
