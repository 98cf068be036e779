"""Commands that start other commands: what is inside, where it is literal and certain.

Owns the wrappers' names and how each of them is written. None is ever judged by its own name: either what is inside is
judged, or it is said that it cannot be. It does not parse a line that is inside (shell.py does, again).
"""

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass

from handrail.gate.characters import Checks
from handrail.gate.plain import Word

Words = tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """How a wrapper is written before the command that it starts."""

    flags: str = ""
    """Options without a value."""
    valued: str = ""
    """Options whose value is the next word, or is written right after them."""
    operands: int = 0
    """Words of its own before the command."""


Shapes = dict[str, Shape]

TRANSPARENT: Shapes = {
    "builtin": Shape(),
    "command": Shape("-p"),
    "env": Shape(),
    "exec": Shape("-c -l", "-a"),
    "ionice": Shape("-t", "-c -n"),
    "nice": Shape("", "-n --adjustment"),
    "nohup": Shape(),
    "setsid": Shape("-w --wait -f --fork -c --ctty"),
    "stdbuf": Shape("", "-i -o -e --input --output --error"),
    "time": Shape("-p"),
    "timeout": Shape("--foreground --preserve-status -v --verbose", "-k -s --kill-after --signal", 1),
}
"""What is inside runs as it would by itself."""

LINES: Shapes = {
    "bash": Shape("-- -e -u -x -l -eu -ex -ux -eux --norc --noprofile"),
    "dash": Shape("-- -e -u -x -eu -ex -ux -eux"),
    "sh": Shape("-- -e -u -x -eu -ex -ux -eux"),
}
"""Take a line after `-c`; other shells read a line in their own way."""

CLOSED: Checks = {
    ".": "runs the lines of a file in this shell",
    "ash": "runs another shell",
    "at": "runs it later",
    "batch": "runs it later",
    "busybox": "starts another program by name",
    "chroot": "runs it in another root folder",
    "chrt": "runs it with another priority",
    "csh": "runs another shell",
    "doas": "runs it with another user's rights",
    "entr": "runs it again and again",
    "expect": "types for a person",
    "firejail": "runs it in another space",
    "fish": "runs another shell",
    "flock": "runs it while it holds a lock",
    "gdb": "runs it under another program",
    "ksh": "runs another shell",
    "ltrace": "runs it under another program",
    "mksh": "runs another shell",
    "nsenter": "runs it in another space",
    "parallel": "adds words that are not known yet",
    "pkexec": "runs it with another user's rights",
    "rsh": "runs it on another machine",
    "run-parts": "runs every program of a folder",
    "runuser": "runs it with another user's rights",
    "screen": "runs it where it is not seen",
    "script": "runs it under another program",
    "source": "runs the lines of a file in this shell",
    "ssh": "runs it on another machine",
    "start-stop-daemon": "runs it where it is not seen",
    "strace": "runs it under another program",
    "su": "runs it with another user's rights",
    "sudo": "runs it with another user's rights",
    "systemd-run": "runs it where it is not seen",
    "taskset": "runs it on chosen processors",
    "tcsh": "runs another shell",
    "tmux": "runs it where it is not seen",
    "toybox": "starts another program by name",
    "unbuffer": "runs it under another program",
    "unshare": "runs it in another space",
    "valgrind": "runs it under another program",
    "watch": "runs it again and again",
    "xargs": "adds words that are not known yet",
    "zsh": "runs another shell",
}
"""What is inside cannot be judged by itself, or not for certain."""

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
"""How some of those are written, so that a rule that forbids what is inside can see it."""

WRAPPED: Checks = {
    "shell": "runs a script, or lines it reads, which are not shown here",
    "variables": "sets variables for the command",
    "options": "starts another command in a way that is not understood",
}


@dataclass(frozen=True, slots=True)
class Inside:
    """What a wrapper starts: words or a line; and why it cannot be judged by them alone."""

    words: Words = ()
    line: str | None = None
    why: str = ""


def look(words: Words) -> Inside | None:
    """What is inside of a wrapper; None when it is none."""
    name = posixpath.basename(words[0].text)
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


def started(words: Words) -> Iterator[Words]:
    """The commands that find starts for each file."""
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
    return Inside(rest) if rest else Inside(why=WRAPPED["options"])


def _skip(words: Words, shape: Shape) -> Words | None:
    """The words after a wrapper's own; None when they are not written as expected."""
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
    """An option with its value in the same word."""
    return text.startswith(f"{option}=" if option.startswith("--") else option)


def _shell(words: Words, shape: Shape) -> Inside:
    """The first word after `-c` that is no option; what comes after it is for expansions, which are not plain."""
    flags = shape.flags.split()
    has_line, known = False, True
    for word in words:
        if word.text.startswith(("-", "+")) or (not has_line and not known):
            takes_line = word.text == "-c" or (word.text[:-1] in flags and word.text.endswith("c"))
            has_line = has_line or takes_line
            known = known and (takes_line or word.text in flags) and not word.live
        elif has_line and not word.live:
            return Inside(line=word.text, why="" if known else WRAPPED["shell"])
        else:
            break
    return Inside(why=WRAPPED["shell"])


def _eval(words: Words) -> Inside:
    known = words and not any(word.live for word in words)
    return Inside(line=" ".join(word.text for word in words), why="" if known else WRAPPED["shell"])


def _after_options(words: Words) -> Words:
    """What is most likely the command, for rules that forbid it."""
    at = 0
    while at < len(words) and (words[at].text.startswith("-") or "=" in words[at].text):
        at += 1
    return words[at:]
