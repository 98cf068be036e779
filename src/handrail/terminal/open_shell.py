"""Open a long-lived terminal: resolve the shell, validate the request, inject shell integration.

`integrate` changes the arguments and environment of bash, zsh and fish so that they write marks (shell_marks.py).
The caller decides permission, owner and environment; only the terminal's id is added here.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from handrail.lazy_dataclass import dataclass
from handrail.store.values import Owner, TerminalKind
from handrail.terminal.terminal import Terminal, TerminalNote
from handrail.terminal.terminals import Terminals

if TYPE_CHECKING:
    Started = tuple[tuple[str, ...], dict[str, str]]


SCRIPTS = Path(__file__).parent / "shell_scripts"
COLS, ROWS = 120, 40
MOST_CELLS = 1000
"""Upper bound for columns and for rows: more than any real screen, few enough to render."""
OWN_ID = "HANDRAIL_TERMINAL"
"""Environment variable that holds the terminal's id."""


class OpenRefused(Exception):
    """The request to open a terminal is invalid; the message gives the reason and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalSettings:
    """Settings that apply to every long-lived terminal."""

    environment: Mapping[str, str]
    shell: str | None
    max_bytes: int
    max_lines: int
    grace: float
    scripts: Path = SCRIPTS


def default_shell(configured: str | None, environ: Mapping[str, str]) -> str:
    """The default shell: the configured one, else the user's login shell. `resolve_program` checks the path."""
    return configured or environ.get("SHELL") or _login_shell() or "/bin/sh"


def resolve_program(name: str, environ: Mapping[str, str]) -> str:
    """Resolve a shell or another program by absolute path or by name on the PATH. Raises BadOpening."""
    path = name if name.startswith("/") else shutil.which(name, path=environ.get("PATH"))
    if "/" in name and not name.startswith("/"):
        raise OpenRefused(
            f"{name} is a relative path. Give the whole path, or a name on the PATH. {_list_shells()}"
        )
    if path is None:
        raise OpenRefused(f"There is no program {name} on the PATH. {_list_shells()}")
    if not Path(path).is_file():
        raise OpenRefused(f"There is no file {path}. {_list_shells()}")
    if not os.access(path, os.X_OK):
        raise OpenRefused(f"{path} cannot be run: it is not executable. {_list_shells()}")
    return path


def folder(cwd: str) -> str:
    """Validate a working directory and return it normalized. Raises BadOpening."""
    if not cwd.startswith("/"):
        raise OpenRefused(f"{cwd} is not an absolute path. Give the whole path of a folder.")
    if not Path(cwd).is_dir():
        raise OpenRefused(f"There is no folder {cwd}. Give one that exists, or leave it out.")
    if not os.access(cwd, os.X_OK):
        raise OpenRefused(f"The folder {cwd} cannot be entered. Give another, or leave it out.")
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
    """Start a shell, or another program, that runs until it is closed. Its environment is `env` plus its id.

    `cwd_id` is the device and inode that `cwd` must still have when the program starts.
    Raises BadOpening for an invalid request, KeeperError when the keeper cannot start the program.
    """
    path = resolve_program(shell, env)
    where = folder(cwd)
    _check_size(size)
    _check_strings(args, env)
    terminal, nonce = id or f"t{secrets.token_hex(5)}", secrets.token_hex(8)
    argv, environment = (path, *args), {**env, OWN_ID: terminal}
    integrated = integrate(argv, environment, nonce, scripts)
    if integrated is not None:
        argv, environment = integrated
    note = TerminalNote(
        of=of,
        name=name or Path(path).name,
        owner=owner,
        nonce=nonce if integrated is not None else "",
        call=call,
    )
    return await terminals.open(
        argv,
        where,
        environment,
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


def _list_shells() -> str:
    """A sentence that lists the installed shells, for error messages."""
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
        raise OpenRefused(
            f"A terminal of {size[0]} columns and {size[1]} rows cannot be shown: "
            f"both must lie between 1 and {MOST_CELLS}."
        )


def _check_strings(args: Sequence[str], env: Mapping[str, str]) -> None:
    if any("\0" in word for word in (*args, *env, *env.values())):
        raise OpenRefused("An argument or a variable holds a NUL character. Remove it.")
    if any("=" in name or not name for name in env):
        raise OpenRefused("The name of a variable is empty or holds `=`. Correct it.")


_BASH_LONG = {"login", "noediting", "noprofile", "norc", "rcfile", "init-file"}
_FISH_LONG = {"--login", "--interactive", "--no-config", "--private", "--init-command"}


def integrate(argv: Sequence[str], env: Mapping[str, str], nonce: str, scripts: Path) -> Started | None:
    """Arguments and environment that make an interactive bash, zsh or fish write marks; None for other programs."""
    shell = (
        {"bash": _integrate_bash, "zsh": _integrate_zsh, "fish": _integrate_fish}.get(PurePath(argv[0]).name)
        if argv
        else None
    )
    return shell(tuple(argv), {**env, "HANDRAIL_NONCE": nonce}, scripts) if shell and nonce else None


def _integrate_bash(argv: tuple[str, ...], env: dict[str, str], scripts: Path) -> Started | None:
    if sys.platform == "darwin" and argv[0] in ("bash", "/bin/bash"):
        return None  # macOS ships bash 3.2, which lacks PS0
    parsed = _parse_bash_options(argv[1:])
    if parsed is None:
        return None
    options, rest = parsed
    script = str(scripts / "bash.sh")
    if "norc" not in options and "login" not in options:
        rc_file = options.get("rcfile") or options.get("init-file")
        env["HANDRAIL_FILES"] = f"rc:{rc_file}" if rc_file else "rc"
        return (argv[0], "--rcfile", script, *rest), env
    reads_profile = "login" in options and "noprofile" not in options
    if "ENV" in env:
        env["HANDRAIL_ENV"] = env["ENV"]
    env |= {"HANDRAIL_FILES": "login" if reads_profile else "none", "ENV": script}
    return (argv[0], "--posix", *rest), env


def _parse_bash_options(words: Sequence[str]) -> tuple[dict[str, str], list[str]] | None:
    """The long options by name, and the words to pass on; None when bash would not run as a plain interactive shell.

    Bash also accepts long options with one dash, and uses the last of several rc files.
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
                return None  # -n: bash parses commands but does not run them
            if "l" in word:
                options["login"] = ""
            takes = sum(letter in "oO" for letter in word[1:])
            rest += [word, *left[:takes]]
            del left[:takes]
        else:
            return None
    return options, rest


def _integrate_zsh(argv: tuple[str, ...], env: dict[str, str], scripts: Path) -> Started | None:
    for word in argv[1:]:
        if word not in ("--login", "--interactive") and (
            word[:1] != "-" or len(word) < 2 or set(word[1:]) - set("ildegkmuvxCEGHJXY")
        ):
            return None  # a command, a script, or -f, with which zsh would skip our .zshenv
    if "ZDOTDIR" in env:
        env["HANDRAIL_ZDOTDIR"] = env["ZDOTDIR"]
    return argv, env | {"ZDOTDIR": str(scripts / "zsh")}


def _integrate_fish(argv: tuple[str, ...], env: dict[str, str], scripts: Path) -> Started | None:
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
