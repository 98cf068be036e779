"""Opening a terminal that stays: which shell, where, how large, and marked so that its commands can be told apart.

Owns what is checked before anything starts, and the sentence for what cannot be. Does not know who may open one, nor
which environment it should get (but for its own id); whoever opens says whose it is.

How a shell is started so that it writes marks: with which arguments and which environment.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from handrail.store.values import Owner, TerminalKind
from handrail.terminal.terminal import Note, Terminal
from handrail.terminal.terminals import Terminals

if TYPE_CHECKING:
    Started = tuple[tuple[str, ...], dict[str, str]]


SCRIPTS = Path(__file__).parent / "shell_scripts"
COLS, ROWS = 120, 40
MOST_CELLS = 1000
"""In a row or a column: more than any screen has, and few enough to be drawn."""
OWN_ID = "HANDRAIL_TERMINAL"
"""The variable by which what runs in a terminal knows which one."""


class BadOpening(Exception):
    """A terminal cannot be opened like this; the sentence says why, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What the person's settings give to every terminal that stays."""

    environment: Mapping[str, str]
    shell: str | None
    max_bytes: int
    max_lines: int
    grace: float
    scripts: Path = SCRIPTS


def shell_for(configured: str | None, environ: Mapping[str, str]) -> str:
    """The shell nobody named: as configured, else the person's own. Its path is checked by `program`."""
    return configured or environ.get("SHELL") or _login_shell() or "/bin/sh"


def program(name: str, environ: Mapping[str, str]) -> str:
    """The path of a shell or another program, given by path or by name on the PATH."""
    found = name if name.startswith("/") else shutil.which(name, path=environ.get("PATH"))
    if "/" in name and not name.startswith("/"):
        raise BadOpening(
            f"{name} is a relative path. Give the whole path, or a name on the PATH. {_shells()}"
        )
    if found is None:
        raise BadOpening(f"There is no program {name} on the PATH. {_shells()}")
    if not Path(found).is_file():
        raise BadOpening(f"There is no file {found}. {_shells()}")
    if not os.access(found, os.X_OK):
        raise BadOpening(f"{found} cannot be run: it is not executable. {_shells()}")
    return found


def folder(cwd: str) -> str:
    """A folder in which a program may begin."""
    if not cwd.startswith("/"):
        raise BadOpening(f"{cwd} is not an absolute path. Give the whole path of a folder.")
    if not Path(cwd).is_dir():
        raise BadOpening(f"There is no folder {cwd}. Give one that exists, or leave it out.")
    if not os.access(cwd, os.X_OK):
        raise BadOpening(f"The folder {cwd} cannot be entered. Give another, or leave it out.")
    return os.path.normpath(cwd)


async def open_shell(
    terminals: Terminals,
    *,
    shell: str,
    args: Sequence[str] = (),
    cwd: str,
    env: Mapping[str, str],
    size: tuple[int, int] = (COLS, ROWS),
    of: TerminalKind,
    name: str = "",
    owner: Owner,
    call: str | None = None,
    max_bytes: int,
    max_lines: int,
    grace: float,
    scripts: Path = SCRIPTS,
    id: str | None = None,
    cwd_id: tuple[int, int] | None = None,
) -> Terminal:
    """Start a shell, or another program, that stays until it is closed. `env` is all it gets, but for its id.

    With `cwd_id`, the device and inode that `cwd` had, it starts in that very folder or not at all.
    Raises BadOpening for what cannot be, KeeperError when the keeper cannot start it.
    """
    path = program(shell, env)
    where = folder(cwd)
    _check_size(size)
    _check_words(args, env)
    terminal, nonce = id or f"t{secrets.token_hex(5)}", secrets.token_hex(8)
    argv, whole = (path, *args), {**env, OWN_ID: terminal}
    marked = integrate(argv, whole, nonce, scripts)
    if marked is not None:
        argv, whole = marked
    note = Note(
        of=of,
        name=name or Path(path).name,
        owner=owner,
        nonce=nonce if marked is not None else "",
        call=call,
    )
    return await terminals.open(
        argv,
        where,
        whole,
        size,
        max_bytes,
        cap_lines=max_lines,
        grace=grace,
        id=terminal,
        note=note,
        cwd_id=cwd_id,
    )


def _login_shell() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_shell
    except KeyError:
        return ""


def _shells() -> str:
    """What there is instead."""
    try:
        lines = Path("/etc/shells").read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    named = [line.strip() for line in lines if line.startswith("/")]
    real = {os.path.realpath(path): path for path in reversed(named) if os.access(path, os.X_OK)}
    known = ", ".join(sorted(real.values())) or "/bin/sh"
    return f"Shells on this machine: {known}."


def _check_size(size: tuple[int, int]) -> None:
    if not all(1 <= side <= MOST_CELLS for side in size):
        raise BadOpening(
            f"A terminal of {size[0]} columns and {size[1]} rows cannot be shown: "
            f"both must lie between 1 and {MOST_CELLS}."
        )


def _check_words(args: Sequence[str], env: Mapping[str, str]) -> None:
    if any("\0" in word for word in (*args, *env, *env.values())):
        raise BadOpening("An argument or a variable holds a NUL character. Remove it.")
    if any("=" in name or not name for name in env):
        raise BadOpening("The name of a variable is empty or holds `=`. Correct it.")


_BASH_LONG = {"login", "noediting", "noprofile", "norc", "rcfile", "init-file"}
_FISH_LONG = {"--login", "--interactive", "--no-config", "--private", "--init-command"}


def integrate(argv: Sequence[str], env: Mapping[str, str], nonce: str, scripts: Path) -> Started | None:
    """Arguments and environment that make an interactive bash, zsh or fish write marks; None for all else."""
    shell = {"bash": _bash, "zsh": _zsh, "fish": _fish}.get(PurePath(argv[0]).name) if argv else None
    return shell(tuple(argv), {**env, "HANDRAIL_NONCE": nonce}, scripts) if shell and nonce else None


def _bash(argv: tuple[str, ...], env: dict[str, str], scripts: Path) -> Started | None:
    if sys.platform == "darwin" and argv[0] in ("bash", "/bin/bash"):
        return None  # the system's own is of 2007
    asked = _bash_options(argv[1:])
    if asked is None:
        return None
    options, rest = asked
    script = str(scripts / "bash.sh")
    if "norc" not in options and "login" not in options:
        named = options.get("rcfile") or options.get("init-file")
        env["HANDRAIL_FILES"] = f"rc:{named}" if named else "rc"
        return (argv[0], "--rcfile", script, *rest), env
    reads = "login" in options and "noprofile" not in options
    if "ENV" in env:
        env["HANDRAIL_ENV"] = env["ENV"]
    env |= {"HANDRAIL_FILES": "login" if reads else "none", "ENV": script}
    return (argv[0], "--posix", *rest), env


def _bash_options(words: Sequence[str]) -> tuple[dict[str, str], list[str]] | None:
    """The long options by name, and the words to pass on; None when it would not be an interactive shell of ours.

    Bash takes long options with one dash too, and the last of several files.
    """
    options: dict[str, str] = {}
    rest: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        name = word.lstrip("-") if word.startswith("-") else ""
        if name in ("rcfile", "init-file"):
            if not left:
                return None
            options[name] = left.pop(0)
        elif name in _BASH_LONG:
            options[name] = ""
            rest.append(word)
        elif word[:1] in "-+" and not set(word[1:]) - set("ilabefhkmnuvxBCEHPToO") and len(word) > 1:
            if "n" in word:
                return None  # reads commands and runs none
            if "l" in word:
                options["login"] = ""
            takes = sum(letter in "oO" for letter in word[1:])
            rest += [word, *left[:takes]]
            del left[:takes]
        else:
            return None
    return options, rest


def _zsh(argv: tuple[str, ...], env: dict[str, str], scripts: Path) -> Started | None:
    for word in argv[1:]:
        if word not in ("--login", "--interactive") and (
            word[:1] != "-" or len(word) < 2 or set(word[1:]) - set("ildegkmuvxCEGHJXY")
        ):
            return None  # a command, a script, or -f: files that it would not read
    if "ZDOTDIR" in env:
        env["HANDRAIL_ZDOTDIR"] = env["ZDOTDIR"]
    return argv, env | {"ZDOTDIR": str(scripts / "zsh")}


def _fish(argv: tuple[str, ...], env: dict[str, str], scripts: Path) -> Started | None:
    left = list(argv[1:])
    while left:
        word = left.pop(0)
        name = word.partition("=")[0]
        if word in ("-C", "--init-command") and left:
            left.pop(0)
        elif name not in _FISH_LONG and not (
            word[:1] == "-" and set(word[1:]) <= set("liNP") and word != "-"
        ):
            return None
    source = f"source {shlex.quote(str(scripts / 'fish.fish'))}"
    return (argv[0], "--init-command", source, *argv[1:]), env
