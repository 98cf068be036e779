"""The programs that a line would start: found as the shell finds them, with facts that identify the file."""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from pydantic import JsonValue

from handrail.gate.shell.bash_reader import RESERVED
from handrail.gate.shell.shell_parser import Line
from handrail.lazy_dataclass import dataclass
from handrail.store.values import Json
from handrail.terminal.terminals import CheckedProgram

_ELF = b"\x7fELF"
_FIRST_LINE = 256
"""Bytes of a script that the kernel reads to find its interpreter."""
_DEEPEST = 4
"""Interpreters that are scripts themselves: the kernel follows no more."""
SHELL_WORDS = RESERVED.union(
    (
        *("!", ".", ":", "alias", "bg", "bind", "break", "builtin", "caller"),
        *("cd", "command", "compgen", "complete", "compopt", "continue", "declare", "dirs", "disown"),
        *("echo", "enable", "eval", "exec", "exit", "export", "false", "fc", "fg"),
        *("getopts", "hash", "help", "history", "jobs", "kill", "let", "local", "logout"),
        *("mapfile", "popd", "printf", "pushd", "pwd", "read", "readarray", "readonly", "return"),
        *("set", "shift", "shopt", "source", "suspend", "test", "time", "times", "trap"),
        *("true", "type", "typeset", "ulimit", "umask", "unalias", "unset", "wait"),
    )
)
"""Builtins and reserved words of bash, which start no program of that name."""
_SHELL_VARIABLES = ("BASH", "ENV", "EXECIGNORE", "OLDPWD", "POSIXLY_CORRECT", "SHELLOPTS")
"""Variables, or their beginnings, that change how bash starts a command."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program file as the shell finds it."""

    path: str
    """As the shell would open it: relative to the working folder if the name or the PATH is."""
    full_path: str
    found: os.stat_result

    @property
    def identity(self) -> tuple[int, int, int, int]:
        """Device, inode, size and ctime: a file with other content differs in one of them."""
        return self.found.st_dev, self.found.st_ino, self.found.st_size, self.found.st_ctime_ns

    @property
    def facts(self) -> JsonValue:
        return [os.path.realpath(self.full_path), *self.identity]

    @property
    def checked(self) -> CheckedProgram:
        return CheckedProgram(self.path, self.identity)

    def read_begin(self) -> bytes:
        """The first bytes of the file; empty if it cannot be read."""
        try:
            descriptor = os.open(self.full_path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return b""
        try:
            return os.read(descriptor, _FIRST_LINE)
        except OSError:
            return b""
        finally:
            os.close(descriptor)


def find_program(name: str, cwd: str, path: str) -> Program | None:
    """Search a program on the PATH, as the shell would."""
    for folder in [""] if "/" in name else path.split(":"):
        own = os.path.expanduser(folder)  # noqa: PTH111 - bash expands a tilde in the PATH too
        try:
            candidate = os.path.join(cwd, own, name)  # noqa: PTH118 - runs for every folder of the PATH
            found = os.stat(candidate)  # noqa: PTH116
        except (OSError, ValueError):
            continue
        if os.access(candidate, os.X_OK) and not stat.S_ISDIR(found.st_mode):
            path_of_shell = name if "/" in name else os.path.join(own, name) if own else f"./{name}"  # noqa: PTH118
            return Program(path_of_shell, str(Path(candidate)), found)
    return None


def facts(name: str, cwd: str, path: str) -> JsonValue:
    """Facts of one program: path, device, inode, size, ctime; None when not found."""
    program = find_program(name, cwd, path)
    return None if program is None else program.facts


@dataclass(frozen=True, slots=True)
class Programs:
    """Every program that a line would start, by name; None for a name that is not found."""

    by_name: Mapping[str, Program | None]

    @property
    def bound(self) -> Json:
        """The facts that must still hold when the line runs."""
        return {name: None if found is None else found.facts for name, found in self.by_name.items()}

    @property
    def checked(self) -> tuple[CheckedProgram, ...]:
        return tuple(found.checked for found in self.by_name.values() if found is not None)


def find_programs(line: Line, cwd: str, path: str) -> Programs:
    """The programs of a line: its commands, the wrappers that start them, and the interpreters of scripts."""
    by_name: dict[str, Program | None] = {}
    names = [*(part.words[0] for part in line.parts), *line.wrappers]
    for _ in range(_DEEPEST):
        new = [name for name in dict.fromkeys(names) if name not in by_name]
        by_name |= {name: find_program(name, cwd, path) for name in new}
        names = list(_interpreters(by_name[name] for name in new))
    return Programs(by_name)


def _interpreters(programs: Iterable[Program | None]) -> Iterator[str]:
    """The interpreter in the first line of a script; for `env`, also the program that it searches on the PATH."""
    for program in programs:
        begin = b"" if program is None else program.read_begin()
        if begin.startswith(b"#!"):
            words = begin[2:].partition(b"\n")[0].decode(errors="replace").split()
            yield from words[:1]
            if words and words[0].rpartition("/")[2] == "env":
                yield from [word for word in words[1:] if not word.startswith("-") and "=" not in word][:1]


@dataclass(frozen=True, slots=True)
class ExactStart:
    """A line that is one program: executed by descriptor, so that exactly the checked file runs."""

    program: CheckedProgram
    argv: tuple[str, ...]


def find_exact_start(line: Line, programs: Programs, env: Mapping[str, str]) -> ExactStart | None:
    """How to start a line without a shell in between; None if only the shell can start it.

    A script is left to the shell: its interpreter opens it again by its path.
    """
    if not line.argv or line.argv[0] in SHELL_WORDS or "PATH" not in env:
        return None
    program = programs.by_name.get(line.argv[0])
    if program is None or any(name.startswith(_SHELL_VARIABLES) for name in env):
        return None
    return ExactStart(program.checked, line.argv) if program.read_begin().startswith(_ELF) else None
