"""What a shell line claims: each of its commands, what cannot be told, and the machines it names.

Owns the claims of everything that runs a line: in a terminal of its own, or typed into one that is there. It does not
read the line (gate/shell/shell.py) or its paths (mentions.py), and decides nothing.

The machines that a command's words name: in a URL, as `user@host:path`, or as such for what only connects.

The program behind a name, as the shell would find it now.
"""

import os
import re
import stat
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

from pydantic import JsonValue

from handrail.gate.risk import READERS
from handrail.gate.shell.shell_parser import MOST_PARTS, Line, Opaque, Part, parse
from handrail.gate.tool import Refusal
from handrail.store.values import Claim, Json
from handrail.tools.commands.path_words import Judged, Mentions
from handrail.tools.workspace import Place, Workspace

POSES = "holds a pattern that stands for a name which begins like an option"
ELSEWHERE = "names a program by a relative path, in another folder than the workspace itself"
SHADOWS = "starts a program of the workspace under the name of a common one"
UNFINISHED = "types a part of a line, or keys that change it"
TOO_MUCH = "holds more commands than anybody could judge"


def read_line(command: str) -> Line:
    """Its parts. Raises Refusal for a line that nobody could judge."""
    line = parse(command)
    if line.cut:
        raise Refusal(
            f"The line holds more than {MOST_PARTS} commands, or too many within each other, which nobody could judge. "
            "Nothing was run: put them into a script, or send fewer at a time."
        )
    return line


def command_claims(
    line: Line, place: Place, workspace: Workspace, path: str, variables: Iterable[str] = ()
) -> tuple[Claim, ...]:
    """Of a line that begins in `place`; `path` is its PATH, `variables` are the names of those that the call adds."""
    mentions = Mentions(place.path, workspace, path)
    claims = (
        *(
            claim
            for part in line.parts
            for claim in _part(part, mentions.judge(part), place, workspace, path)
        ),
        *(_opaque(item) for item in line.opaque),
        *_around(place, variables),
        *_connects(line),
    )
    return tuple(dict.fromkeys(claims))


def opening_claims(line: str, is_shell: bool, place: Place, variables: Iterable[str]) -> tuple[Claim, ...]:
    """Of a program that stays open. Rules about commands can forbid it, and never allow it. Raises Refusal."""
    runs = Claim(action="run", resource=line, inside=place.inside, protected=place.protected)
    if is_shell:
        return (runs, *_around(place, variables))
    read = read_line(line)
    found = (*(part.words for part in read.parts), *(item.words for item in read.opaque))
    why = "opens a terminal with something else than a plain shell"
    opaque = (replace(runs, words=words, opaque=why) for words in found or ((),))
    return tuple(dict.fromkeys((*opaque, *_around(place, variables), *_connects(read))))


def line_typed(typing: Claim, text: str) -> tuple[Claim, ...]:
    """Of a line that a shell is to read: typing it, what is opaque in it, and its commands. Raises Refusal.

    All of these are about typing, which no rule about commands allows: a shell's state may change what they mean. A
    rule that forbids a command sees it there all the same.
    """
    line = read_line(text)
    opaque = (replace(typing, resource=item.text, words=item.words, opaque=item.why) for item in line.opaque)
    return tuple(dict.fromkeys((*_typed(typing, line), *opaque)))


def text_typed(typing: Claim, text: str, *, shell: bool = False, whole: bool = True) -> tuple[Claim, ...]:
    """Of text for whatever reads it; where that is a shell, of what it will make of it.

    `whole` says that the text is followed by Enter, and by nothing else.
    """
    line = parse(text)
    wrapped = (replace(typing, words=item.words) for item in line.opaque if item.words)
    whys = [TOO_MUCH] if line.cut else []
    if shell and text.strip():
        whys += [item.why for item in line.opaque] + ([] if whole else [UNFINISHED])
    opaque = (replace(typing, opaque=why) for why in whys)
    return tuple(dict.fromkeys((*_typed(typing, line), *wrapped, *opaque)))


def _typed(typing: Claim, line: Line) -> Iterator[Claim]:
    """The typing itself, which is also that of its only command; of several, each as well."""
    if len(line.parts) == 1:
        yield replace(typing, words=line.parts[0].words)
        return
    yield typing
    yield from (replace(typing, resource=part.text, words=part.words) for part in line.parts)


def _part(part: Part, where: Judged, place: Place, workspace: Workspace, path: str) -> Iterator[Claim]:
    """One command; and what cannot be told of it by reading alone, in the folder it is started in."""
    program = part.words[0]
    yield Claim(
        action="run",
        resource=part.text,
        inside=where.inside,
        protected=where.protected,
        words=part.words,
    )
    doubts = {
        POSES: where.poses,
        ELSEWHERE: place.path != workspace.root and _is_relative(program),
        SHADOWS: program in READERS and _lies_inside(program, place, workspace, path),
    }
    yield from (
        Claim(action="run", resource=part.text, inside=True, opaque=why)
        for why, found in doubts.items()
        if found
    )


def _lies_inside(program: str, place: Place, workspace: Workspace, path: str) -> bool:
    """Whether a name on the PATH leads to a file of the workspace, which anybody may have put there."""
    match facts(program, place.path, path):
        case [str(found), *_]:
            return workspace.place(found).inside
        case _:
            return False


def _is_relative(program: str) -> bool:
    return "/" in program and not program.startswith("/")


def _opaque(item: Opaque) -> Claim:
    return Claim(action="run", resource=item.text, inside=True, words=item.words, opaque=item.why)


def _around(place: Place, variables: Iterable[str]) -> Iterator[Claim]:
    """What is said beside the line."""
    names = ", ".join(sorted(variables))
    if names:
        yield Claim(action="run", resource=names, inside=True, opaque=f"sets variables for it: {names}")
    if place.protected or not place.inside:
        yield Claim(
            action="run",
            resource=place.path,
            inside=place.inside,
            protected=place.protected,
            opaque="runs in a protected place" if place.inside else "runs outside the workspace",
        )


def _connects(line: Line) -> Iterator[Claim]:
    for words in (*(part.words for part in line.parts), *(item.words for item in line.opaque if item.words)):
        yield from (Claim(action="connect", resource=host, inside=True) for host in hosts(words))


_URL = re.compile(r"[a-z][a-z0-9+.-]*://([^/?#\s]*)", re.IGNORECASE)
_REMOTE = re.compile(r"(?:[\w.-]+@)?([\w.-]+):(?!//)")
_BARE = re.compile(r"(?:[^@/\s]*@)?([\w-]+(?:\.[\w-]+)+|localhost|[\w-]+(?=:\d))\.?(?::\d*)?(?:[/?#].*)?$")
_LOGIN = re.compile(r"(?:[\w.-]+@)?([\w-]+(?:\.[\w-]+)*)$")
_REMOTES = frozenset(("scp", "sftp", "rsync", "git"))
_FETCH = frozenset(("curl", "wget", "http", "https", "xh"))
"""Take a machine's name for a URL."""
_SSH_VALUED = frozenset("BbcDEeFIiJLlmOopQRSWw")
"""Options of ssh that are followed by a word of their own."""
_SAY_ONLY = frozenset(("echo", "printf", "grep", "egrep", "fgrep", "rg"))
"""What they are given is text."""


def hosts(words: Sequence[str]) -> Iterator[str]:
    """Each named machine, in small letters."""
    name = words[0].rpartition("/")[2]
    if name in _SAY_ONLY:
        return
    for word in words[1:]:
        yield from _in_urls(word)
        spaced = any(map(str.isspace, word))
        found = None if spaced or "://" in word else _without_url(name, word)
        if found:
            yield _clean(found.group(1))
    if name == "ssh" and (login := _login(words[1:])):
        yield login


def _in_urls(word: str) -> Iterator[str]:
    """Anywhere in a word; in one with blanks, which is most likely prose, only at its beginning."""
    is_prose = any(map(str.isspace, word.strip()))
    for found in _URL.finditer(word):
        if is_prose and word[: found.start()].strip():
            return
        for authority in dict.fromkeys((found.group(1), found.group(1).partition("\\")[0])):
            host = authority.rpartition("@")[2]
            host = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
            if host:
                yield _clean(host)


def _without_url(program: str, word: str) -> re.Match[str] | None:
    """`host:path` for what copies between machines; git also says `branch:branch`, so there it takes a user."""
    if program in _FETCH and not word.startswith("-"):
        return _BARE.match(word)
    is_remote = program in _REMOTES and (program != "git" or "@" in word.partition(":")[0])
    return _REMOTE.match(word) if is_remote else None


def _login(words: Sequence[str]) -> str:
    """The first word that is neither an option nor the value of one."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if len(words[at]) == 2 and words[at][1] in _SSH_VALUED else 1
    match = _LOGIN.match(words[at]) if at < len(words) else None
    return _clean(match.group(1)) if match else ""


def _clean(host: str) -> str:
    """One spelling of a name, however it is written."""
    return unicodedata.normalize("NFKC", unquote(host)).lower().rstrip(".")


def programs(parts: Iterable[Part], cwd: str, path: str) -> Json:
    """By name: path, device, inode, size and the kernel's own time of the last change; None where there is none."""
    names = dict.fromkeys(part.words[0] for part in parts)
    return {name: facts(name, cwd, path) for name in names}


def facts(name: str, cwd: str, path: str) -> JsonValue:
    """Of one program."""
    folders = [""] if "/" in name else path.split(":")
    for folder in folders:
        candidate = Path(cwd, folder, name)
        try:
            found = candidate.stat()
        except (OSError, ValueError):
            continue
        if os.access(candidate, os.X_OK) and not stat.S_ISDIR(found.st_mode):
            return [os.path.realpath(candidate), found.st_dev, found.st_ino, found.st_size, found.st_ctime_ns]
    return None
