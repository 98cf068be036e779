"""Opening a terminal that stays: which shell, where, how large, and marked so that its commands can be told apart.

Owns what is checked before anything starts, and the sentence for what cannot be. Does not know who may open one, nor
which environment it should get (but for its own id); whoever opens says whose it is.
"""

import os
import pwd
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from handrail.store.value import Owner, TerminalKind
from handrail.terminal.note import Note
from handrail.terminal.shells.integration import integrate
from handrail.terminal.terminal import Terminal
from handrail.terminal.terminals import Terminals

SCRIPTS = Path(__file__).parent / "shells"
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
