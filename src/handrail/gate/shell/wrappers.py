"""Wrappers: commands that start other commands.

A wrapper is never judged by its own name: either the command inside is judged, or the wrapper is opaque with a reason.
A line inside (`sh -c`) is parsed by shell_parser.py.
"""

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass, replace

from handrail.gate.shell.bash_reader import Word
from handrail.gate.shell.characters import Checks

Words = tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """The arguments of a wrapper before the command that it starts."""

    flags: str = ""
    """Options without a value, separated by spaces."""
    valued: str = ""
    """Options with a value, in the next word or attached."""
    operands: int = 0
    """Number of positional arguments before the command."""
    odd: str = ""
    """Options that change how the command inside runs."""


Shapes = dict[str, Shape]

TRANSPARENT: Shapes = {
    "builtin": Shape(),
    "command": Shape("-p", odd="-p"),
    "env": Shape(),
    "exec": Shape("-l", "-a", odd="-a"),
    "ionice": Shape("-t", "-c -n"),
    "nice": Shape("", "-n --adjustment"),
    "setsid": Shape("-w --wait -f --fork -c --ctty"),
    "stdbuf": Shape("", "-i -o -e --input --output --error"),
    "time": Shape("-p"),
    "timeout": Shape("--foreground --preserve-status -v --verbose", "-k -s --kill-after --signal", 1),
}
"""Wrappers that run the command inside unchanged."""

LINES: Shapes = {
    "bash": Shape("-e -u -x -l -eu -ex -ux -eux --norc --noprofile"),
    "dash": Shape("-e -u -x -eu -ex -ux -eux"),
    "sh": Shape("-e -u -x -eu -ex -ux -eux"),
}
"""Shells that take a line after `-c`. Other shells have another syntax and are in `CLOSED`."""

CLOSED: Checks = {
    ".": "runs the lines of a file in this shell",
    "ash": "runs another shell",
    "at": "runs it later",
    "batch": "runs it later",
    "busybox": "starts another program by name",
    "bwrap": "runs it in another space",
    "caffeinate": "runs it under another program",
    "capsh": "runs it with another user's rights",
    "catchsegv": "runs it under another program",
    "cgexec": "runs it in another space",
    "chpst": "runs it with another user's rights",
    "chroot": "runs it in another root folder",
    "chrt": "runs it with another priority",
    "cpulimit": "runs it under another program",
    "csh": "runs another shell",
    "daemonize": "runs it where it is not seen",
    "dbus-run-session": "runs it under another program",
    "doas": "runs it with another user's rights",
    "dumb-init": "runs it under another program",
    "eatmydata": "runs it under another program",
    "entr": "runs it again and again",
    "expect": "types for a person",
    "fakeroot": "runs it under another program",
    "faketime": "runs it under another program",
    "firejail": "runs it in another space",
    "fish": "runs another shell",
    "flock": "runs it while it holds a lock",
    "gdb": "runs it under another program",
    "gosu": "runs it with another user's rights",
    "gtimeout": "runs it under another program",
    "gxargs": "adds words that are not known yet",
    "hyperfine": "runs it again and again",
    "ksh": "runs another shell",
    "linux32": "runs it under another program",
    "linux64": "runs it under another program",
    "ltrace": "runs it under another program",
    "mksh": "runs another shell",
    "mosh": "runs it on another machine",
    "mpiexec": "runs it again and again",
    "mpirun": "runs it again and again",
    "newgrp": "runs it with another user's rights",
    "nohup": "writes what it prints to a file, wherever a link of that name leads",
    "nsenter": "runs it in another space",
    "nsjail": "runs it in another space",
    "numactl": "runs it on chosen processors",
    "parallel": "adds words that are not known yet",
    "perf": "runs it under another program",
    "pkexec": "runs it with another user's rights",
    "prlimit": "runs it under another program",
    "proot": "runs it in another space",
    "proxychains": "runs it under another program",
    "proxychains4": "runs it under another program",
    "rlwrap": "runs it under another program",
    "rr": "runs it under another program",
    "rsh": "runs it on another machine",
    "run-parts": "runs every program of a folder",
    "runcon": "runs it with another user's rights",
    "runuser": "runs it with another user's rights",
    "schroot": "runs it in another space",
    "screen": "runs it where it is not seen",
    "script": "runs it under another program",
    "setarch": "runs it under another program",
    "setpriv": "runs it with another user's rights",
    "sg": "runs it with another user's rights",
    "socat": "starts another program by name",
    "source": "runs the lines of a file in this shell",
    "ssh": "runs it on another machine",
    "sshpass": "runs it under another program",
    "start-stop-daemon": "runs it where it is not seen",
    "strace": "runs it under another program",
    "su": "runs it with another user's rights",
    "su-exec": "runs it with another user's rights",
    "sudo": "runs it with another user's rights",
    "systemd-inhibit": "runs it under another program",
    "systemd-run": "runs it where it is not seen",
    "taskset": "runs it on chosen processors",
    "tcsh": "runs another shell",
    "tini": "runs it under another program",
    "tmux": "runs it where it is not seen",
    "torify": "runs it under another program",
    "torsocks": "runs it under another program",
    "toybox": "starts another program by name",
    "uftrace": "runs it under another program",
    "unbuffer": "runs it under another program",
    "unshare": "runs it in another space",
    "valgrind": "runs it under another program",
    "watch": "runs it again and again",
    "xargs": "adds words that are not known yet",
    "xvfb-run": "runs it under another program",
    "zsh": "runs another shell",
}
"""Wrappers that change how the command inside runs, so that it cannot be judged on its own: always opaque."""

INNER: Shapes = {
    "chroot": Shape("", "--userspec --groups", 1),
    "doas": Shape("-n -s", "-u -C"),
    "flock": Shape("-n -x -s -e -u -o", "-w -E", 1),
    "ssh": Shape("-t -T -n -q -A -x", "-p -i -l -o -F -J -L -R -D", 1),
    "strace": Shape("-f -c -t", "-e -o -p -s -u"),
    "sudo": Shape("-n -E -H -i -s -b -k -S", "-u -g -h -p -C -D -R -T"),
    "taskset": Shape("-a", "", 1),
    "watch": Shape("-d -t -c -x -g", "-n --interval"),
    "xargs": Shape("-0 -r -t -p -x", "-I -n -P -L -d -a -E -s"),
}
"""The arguments of some of those, so that a deny rule can match the command inside."""

BUILTINS = frozenset((".", "builtin", "command", "eval", "exec", "source"))
"""Wrappers that bash carries out itself, without a program."""

SYSTEM = ("/bin", "/usr/bin")
"""Folders in which a wrapper's name can be trusted."""

WRAPPED: Checks = {
    "shell": "runs a script, or lines it reads, which are not shown here",
    "variables": "sets variables for the command",
    "options": "starts another command in a way that is not understood",
    "path": "names what starts another command by a path, where anything may lie under that name",
}


@dataclass(frozen=True, slots=True)
class Inside:
    """The command inside a wrapper, as words or as a line; `why` is set if it cannot be judged by them alone."""

    words: Words = ()
    line: str | None = None
    why: str = ""


def unwrap(words: Words) -> Inside | None:
    """The command inside a wrapper; None if the command is not a wrapper."""
    folder, name = posixpath.split(words[0].text)
    if name == "git" and len(words) > 2 and words[1].text == "--no-pager":
        return Inside((words[0], *words[2:]))  # the same command for every rule
    inside = _look(name, words)
    if inside is None or not folder or folder in SYSTEM:
        return inside
    return replace(inside, why=inside.why or WRAPPED["path"])


def _look(name: str, words: Words) -> Inside | None:
    if name == "command" and len(words) > 1 and words[1].text in ("-v", "-V"):
        return None
    if name == "eval":
        return _eval(words[1:])
    if name in LINES:
        return _shell(words[1:], LINES[name])
    if name in TRANSPARENT:
        return _transparent(words[1:], TRANSPARENT[name])
    if CLOSED.get(name):
        rest = _skip(words[1:], INNER.get(name, Shape()))
        return Inside(_after_options(words[1:]) if rest is None else rest, why=CLOSED[name])
    return None


def find_started(words: Words) -> Iterator[Words]:
    """The commands that `find` starts for each file."""
    begin = None
    for at, word in enumerate(words):
        if begin is None and word.text in ("-exec", "-execdir", "-ok", "-okdir"):
            begin = at + 1
        elif begin is not None and word.text in (";", "+"):
            yield words[begin:at]
            begin = None


def _transparent(words: Words, shape: Shape) -> Inside:
    rest = _skip(words, shape)
    if rest is None or any(word.live for word in words[: len(words) - len(rest)]):
        return Inside(_after_options(words), why=WRAPPED["options"])
    if rest and "=" in rest[0].text:
        return Inside(_after_options(rest), why=WRAPPED["variables"])
    if any(
        word.text.startswith(odd) for word in words[: len(words) - len(rest)] for odd in shape.odd.split()
    ):
        return Inside(rest, why=WRAPPED["options"])
    return Inside(rest) if rest else Inside(why=WRAPPED["options"])


def _skip(words: Words, shape: Shape) -> Words | None:
    """The words after the wrapper's arguments; None if its arguments do not have the expected shape."""
    flags, valued = shape.flags.split(), shape.valued.split()
    at = 0
    while at < len(words) and words[at].text.startswith("-"):
        text = words[at].text
        if text in flags:
            at += 1
        elif text in valued:
            at += 2
        elif any(_holds(text, option) for option in valued):
            at += 1
        else:
            return None
    return words[at + shape.operands :] if at + shape.operands <= len(words) else None


def _holds(text: str, option: str) -> bool:
    """Whether the word is this option with its value attached."""
    return text.startswith(f"{option}=" if option.startswith("--") else option)


def _shell(words: Words, shape: Shape) -> Inside:
    """The line of `sh -c`: the first word after `-c` that is not an option. Later words are only used by expansions."""
    flags = shape.flags.split()
    has_line, known, ended = False, True, False
    for word in words:
        if word.text == "--" and not ended:
            known = known and has_line  # before `-c`, it makes `-c` the name of a script
            ended = has_line
        elif not ended and (word.text.startswith(("-", "+")) or (not has_line and not known)):
            takes_line = word.text == "-c" or (word.text[:-1] in flags and word.text.endswith("c"))
            has_line = has_line or takes_line
            known = known and (takes_line or word.text in flags) and not word.live
        elif has_line and not word.live:
            return Inside(line=word.text, why="" if known else WRAPPED["shell"])
        else:
            break
    return Inside(why=WRAPPED["shell"])


def _eval(words: Words) -> Inside:
    words = words[1:] if words and words[0].text == "--" else words
    known = words and not any(word.live for word in words) and not words[0].text.startswith("-")
    return Inside(line=" ".join(word.text for word in words), why="" if known else WRAPPED["shell"])


def _after_options(words: Words) -> Words:
    """A guess at the command after unknown options, for deny rules."""
    at = 0
    while at < len(words) and (words[at].text.startswith("-") or "=" in words[at].text):
        at += 1
    return words[at:]
