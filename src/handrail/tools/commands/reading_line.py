"""Whether a whole line only reads: all its commands are reading commands, of trusted programs, in a plain environment.

The table of commands is in gate/shell/reading_commands.py. This module checks what the words alone do not tell: the places
that a command touches, the file of its program, the settings of a git repository, and variables. In doubt, a line does
not only read, and is decided as any other.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from handrail.gate.shell.reading_commands import BUILTINS, SCRIPTS, find_git_reader, is_reading_command
from handrail.gate.shell.shell_parser import Line, Part
from handrail.launcher.trusted_programs import SYSTEM_FOLDERS, find_untrusted
from handrail.tools.commands._git_repository import read_repository
from handrail.tools.commands.programs import Program, find_program
from handrail.tools.commands.touched_paths import TouchedPlaces
from handrail.tools.tool_context import add_git_setting
from handrail.tools.workspace import Place, Workspace

_OBEYED = (
    *("BASH", "CDPATH", "DYLD_", "ENV", "GCONV_PATH", "GLIBC_TUNABLES", "GLOBIGNORE", "GREP_OPTIONS", "IFS", "LD_"),
    *("LOCPATH", "MAGIC", "NLSPATH", "POSIXLY_CORRECT", "RIPGREP_CONFIG_PATH", "SHELLOPTS", "TREE_", "XDG_CONFIG_HOME"),
)  # fmt: skip
"""Beginnings of the variables that the shell, the loader or a reading program obeys."""
_PLAIN_GIT = ("GIT_PAGER", "GIT_TERMINAL_PROMPT")


def has_plain_environment(env: Mapping[str, str]) -> bool:
    """Whether no variable changes what reading commands do. Our own git setting does not."""
    ours = ("GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0", "GIT_CONFIG_VALUE_0")
    if env.get("GIT_CONFIG_COUNT", "1") != "1" or env.get("GIT_CONFIG_KEY_0") not in (
        None,
        "safe.bareRepository",
    ):
        return False
    return not any(
        name.startswith(_OBEYED) or (name.startswith("GIT_") and name not in (*ours, *_PLAIN_GIT))
        for name in env
    )


def without_index_writes(env: Mapping[str, str]) -> dict[str, str]:
    """The environment in which git does not refresh its index while it reads."""
    quiet = {**env, "GIT_OPTIONAL_LOCKS": "0"}
    return add_git_setting(quiet, "diff.autoRefreshIndex", "false")


def is_reading_line(
    line: Line, touched: Sequence[TouchedPlaces], place: Place, workspace: Workspace, path: str
) -> bool:
    """Whether a line only reads; `touched` has the places of each of its commands, `path` is its PATH."""
    if not line.plain or line.cut or not line.parts or not _has_plain_wrappers(line):
        return False
    if workspace.root is None or not place.inside or place.protected:
        return False
    return all(
        is_reading_command(part.words, part.live)
        and where.inside
        and not (where.protected or where.poses)
        and not where.special
        and all(_has_trusted_program(part.words[0], folder, path) for folder in where.folders)
        and _may_read_repository(part, where.folders, workspace.root)
        for part, where in zip(line.parts, touched, strict=True)
    )


def _has_plain_wrappers(line: Line) -> bool:
    """`git --no-pager` counts as a wrapper of git; any other may change what the command inside does."""
    if any(name.rpartition("/")[2] != "git" for name in line.wrappers):
        return False
    return all(not part.nested or part.words[0].rpartition("/")[2] == "git" for part in line.parts)


def _has_trusted_program(name: str, cwd: str, path: str) -> bool:
    """Whether bash carries it out itself, or only root can have written the file that it would start."""
    if name in BUILTINS:
        return True
    program = find_program(name, cwd, path)
    return program is not None and _is_trusted(name, program.full_path, program.identity)


@lru_cache(256)
def _is_trusted(name: str, path: str, identity: tuple[int, ...]) -> bool:  # noqa: ARG001
    """`identity` renews the answer when the file changes."""
    if os.path.dirname(path) not in SYSTEM_FOLDERS or find_untrusted(Path(path)) is not None:  # noqa: PTH120
        return False
    return name.rpartition("/")[2] in SCRIPTS or not _is_script(path)


def _is_script(path: str) -> bool:
    """A script may start programs from the PATH, under names that are not checked."""
    return Program(path, path, os.stat(path)).read_begin()[:2] in (b"#!", b"")  # noqa: PTH116


def _may_read_repository(part: Part, folders: Iterable[str], root: str) -> bool:
    if part.words[0].rpartition("/")[2] != "git":
        return True
    reader = find_git_reader(part.words[1:])
    if reader is None or not reader.words[0].startswith("-"):
        home = os.path.expanduser("~")  # noqa: PTH111
        found = [read_repository(folder, root, home) for folder in folders]
        return reader is not None and all(each is not None and each.may_read(reader.uses) for each in found)
    return True
