"""How a shell is started so that it writes marks: with which arguments and which environment.

Owns which programs and options that works for, and how our scripts (shells/) come before the user's own files without
changing one. It does not know what a mark looks like (mark.py), nor who starts the shell.

bash: our script in place of ~/.bashrc, which it then reads. A login shell, and one told to read no files, has no such
place: it is started in POSIX mode, where the file named by ENV is read, and leaves that mode at once. · zsh: ZDOTDIR
names our directory, whose .zshenv gives it back before anything else. · fish: a command to run after its files.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Started = tuple[tuple[str, ...], dict[str, str]]

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
