"""Claims of a shell line: its commands, files, hosts, and the parts that cannot be analysed.

For lines run in a new terminal and for lines typed into an open one. The shell syntax is parsed in
gate/shell/, paths are followed in touched_paths.py, programs in programs.py. This module builds the claims
and extracts hosts. When unsure it claims more: outside the workspace, or opaque.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from urllib.parse import unquote

from handrail.gate.risk import READERS
from handrail.gate.shell.shell_parser import PARTS_MAX, Line, Opaque, Part, parse
from handrail.gate.tool import Refusal
from handrail.store.values import Claim
from handrail.tools.commands.programs import facts
from handrail.tools.commands.reading_line import is_reading_line
from handrail.tools.commands.touched_paths import PathTracker, TouchedPlaces
from handrail.tools.workspace import Place, Workspace

POSES = "may expand to an option: a name that begins with `-` fits the pattern"
ELSEWHERE = "names a program by a relative path, in another folder than the workspace itself"
SHADOWS = "starts a program of the workspace under the name of a common one"
UNFINISHED = "types a part of a line, or keys that change it"
TOO_MUCH = "holds more commands than anybody could judge"


def read_line(command: str) -> Line:
    """Parse a line. Raises Refusal when it holds too many commands to judge."""
    line = parse(command)
    if line.cut:
        raise Refusal(
            f"The line holds more than {PARTS_MAX} commands, or too many within each other, which nobody could judge. "
            "Nothing was run: put them into a script, or send fewer at a time."
        )
    return line


def command_claims(
    line: Line,
    place: Place,
    workspace: Workspace,
    path: str,
    variables: Iterable[str] = (),
    *,
    plain_environment: bool = True,
) -> tuple[Claim, ...]:
    """Claims of a line run in `place`; `path` is its PATH, `variables` the names the call sets.

    Without a plain environment (reading_line.py), the line is not taken for one that only reads.
    """
    tracker = PathTracker(place.path, workspace, path)
    touched = [tracker.judge(part) for part in line.parts]
    variables = tuple(variables)
    reads = plain_environment and not variables and is_reading_line(line, touched, place, workspace, path)
    claims = (
        *(
            claim
            for part, where in zip(line.parts, touched, strict=True)
            for claim in _part_claims(part, where, place, workspace, path, reads=reads)
        ),
        *(_opaque(item, line) for item in line.opaque),
        *_wrapper_claims(line, place, workspace, path),
        *_context_claims(place, variables),
        *_host_claims(line),
    )
    return tuple(dict.fromkeys(claims))


def opening_claims(line: str, is_shell: bool, place: Place, variables: Iterable[str]) -> tuple[Claim, ...]:
    """Claims of a program that stays open. Command rules can deny it, never allow it. Raises Refusal."""
    runs = Claim(action="run", resource=line, inside=place.inside, protected=place.protected)
    if is_shell:
        return (runs, *_context_claims(place, variables))
    read = read_line(line)
    found = (*(part.words for part in read.parts), *(item.words for item in read.opaque))
    why = "opens a terminal with something else than a plain shell"
    opaque = (replace(runs, words=words, opaque=why) for words in found or ((),))
    return tuple(dict.fromkeys((*opaque, *_context_claims(place, variables), *_host_claims(read))))


def typed_line_claims(typing: Claim, text: str) -> tuple[Claim, ...]:
    """Claims of a line typed into a shell: the typing, its opaque parts and its commands. Raises Refusal.

    All have the action `type`, which no command rule can allow: aliases and other shell state may change the
    meaning. A rule that denies a command still applies.
    """
    line = read_line(text)
    opaque = (
        replace(typing, resource=item.text, words=item.words, opaque=item.why, calm=line.calm)
        for item in line.opaque
    )
    return tuple(dict.fromkeys((*_typing_claims(typing, line), *opaque)))


def text_typed(typing: Claim, text: str, *, shell: bool = False, whole: bool = True) -> tuple[Claim, ...]:
    """Claims of text typed into any program; for a shell, also the commands it would run.

    `whole`: the text is followed by Enter and nothing else.
    """
    line = parse(text)
    wrapped = (replace(typing, words=item.words) for item in line.opaque if item.words)
    whys = [TOO_MUCH] if line.cut else []
    if shell and text.strip():
        whys += [item.why for item in line.opaque] + ([] if whole else [UNFINISHED])
    opaque = (replace(typing, opaque=why) for why in whys)
    return tuple(dict.fromkeys((*_typing_claims(typing, line), *wrapped, *opaque)))


def _typing_claims(typing: Claim, line: Line) -> Iterator[Claim]:
    """The claim of typing, with the words of its command; with several commands, also a claim for each."""
    if len(line.parts) == 1:
        yield replace(typing, words=line.parts[0].words)
        return
    yield typing
    yield from (replace(typing, resource=part.text, words=part.words) for part in line.parts)


def _part_claims(
    part: Part, where: TouchedPlaces, place: Place, workspace: Workspace, path: str, *, reads: bool
) -> Iterator[Claim]:
    """Claims of one command, with opaque claims for doubts that the text alone cannot settle."""
    program = part.words[0]
    yield Claim(
        action="run",
        resource=part.text,
        inside=where.inside,
        protected=where.protected,
        words=part.words,
        reads=reads,
    )
    doubts = {
        POSES: where.poses,
        ELSEWHERE: place.path != workspace.root and _is_relative(program),
        SHADOWS: program in READERS and _is_workspace_program(program, place, workspace, path),
    }
    yield from (
        Claim(action="run", resource=part.text, inside=True, opaque=why)
        for why, found in doubts.items()
        if found
    )


def _wrapper_claims(line: Line, place: Place, workspace: Workspace, path: str) -> Iterator[Claim]:
    """A wrapper is not judged by its name, so no rule can allow one that lies in the workspace."""
    for name in line.wrappers:
        if "/" not in name and _is_workspace_program(name, place, workspace, path):
            yield Claim(action="run", resource=name, inside=True, opaque=SHADOWS)


def _is_workspace_program(program: str, place: Place, workspace: Workspace, path: str) -> bool:
    """Whether a name on the PATH resolves to a workspace file, which an agent may have written."""
    match facts(program, place.path, path):
        case [str(found), *_]:
            return workspace.place(found).inside
        case _:
            return False


def _is_relative(program: str) -> bool:
    return "/" in program and not program.startswith("/")


def _opaque(item: Opaque, line: Line) -> Claim:
    return Claim(
        action="run", resource=item.text, inside=True, words=item.words, opaque=item.why, calm=line.calm
    )


def _context_claims(place: Place, variables: Iterable[str]) -> Iterator[Claim]:
    """Claims of the variables and the folder of a line."""
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


def _host_claims(line: Line) -> Iterator[Claim]:
    for words in (*(part.words for part in line.parts), *(item.words for item in line.opaque if item.words)):
        yield from (Claim(action="connect", resource=host, inside=True) for host in hosts(words))


_SHELLS = r"(/usr(/local)?)?/bin/(ba|da|z|fi|k)?sh"
HARMLESS_VARIABLES = {
    name: re.compile(pattern)
    for name, pattern in {
        "AGENT_SESSION_ID": r"[\w.:-]{1,128}",
        "COLORTERM": r"|truecolor|24bit",
        "COLUMNS": r"\d{1,5}",
        "FORCE_COLOR": r"|[0-3]|true|false",
        "GIT_PAGER": r"|cat",
        "GIT_TERMINAL_PROMPT": r"0|1",
        "LINES": r"\d{1,5}",
        "NO_COLOR": r"|0|1|true|false",
        "PAGER": r"|cat",
        "SHELL": _SHELLS,
        "TERM": r"dumb|ansi|linux|vt\d{3}|(xterm|screen|tmux)(-(16|88|256)?color)?",
    }.items()
}
"""Variables that change nothing but the display of a command, with the values for which that holds.

Agents set them for every command. `SHELL` and the pagers name programs, so only known ones are accepted."""


def is_harmless_variable(name: str, value: str) -> bool:
    pattern = HARMLESS_VARIABLES.get(name)
    return pattern is not None and pattern.fullmatch(value) is not None


def unsafe_variables(env: Mapping[str, str]) -> tuple[str, ...]:
    """The names of the variables that may change a command's effect."""
    return tuple(name for name, value in env.items() if not is_harmless_variable(name, value))


def describe_variables(env: Mapping[str, str]) -> tuple[str, ...]:
    """The variables for a person: harmless ones with their values, of the others only the names (secrets)."""
    return tuple(
        f"{name}={value}" if is_harmless_variable(name, value) else name
        for name, value in sorted(env.items())
    )


_URL = re.compile(r"(?<![a-z0-9+.-])[0-9+.-]*[a-z][a-z0-9+.-]*://([^/?#\s]*)", re.IGNORECASE)
"""Begins only where no character of a scheme stands before it, so that each run of such characters is read once."""
_REMOTE = re.compile(r"(?:[\w.-]+@)?([\w.-]+):(?!//)")
_BARE = re.compile(r"(?:[^@/\s]*@)?([\w-]+(?:\.[\w-]+)+|localhost|[\w-]+(?=:\d))\.?(?::\d*)?(?:[/?#].*)?$")
_LOGIN = re.compile(r"(?:[\w.-]+@)?([\w-]+(?:\.[\w-]+)*)$")
_REMOTES = frozenset(("scp", "sftp", "rsync", "git"))
_FETCH = frozenset(("curl", "wget", "http", "https", "xh"))
"""Programs that accept a bare host name as a URL."""
_SSH_VALUED = frozenset("BbcDEeFIiJLlmOopQRSWw")
"""Options of ssh that take a value."""
_SAY_ONLY = frozenset(("echo", "printf", "grep", "egrep", "fgrep", "rg"))
"""Programs whose arguments are text."""


def hosts(words: Sequence[str]) -> Iterator[str]:
    """Hosts named in a command, normalised."""
    name = words[0].rpartition("/")[2]
    if name in _SAY_ONLY:
        return
    for word in words[1:]:
        yield from _url_hosts(word)
        spaced = any(map(str.isspace, word))
        found = None if spaced or "://" in word else _match_remote(name, word)
        if found:
            yield _normalize_host(found.group(1))
    if name == "ssh" and (login := _ssh_host(words[1:])):
        yield login


def _url_hosts(word: str) -> Iterator[str]:
    """Hosts of URLs in a word; in a word with blanks, probably prose, only of a URL at its start."""
    if "://" not in word:
        return
    is_prose = any(map(str.isspace, word.strip()))
    for found in _URL.finditer(word):
        if is_prose and word[: found.start()].strip():
            return
        for authority in dict.fromkeys((found.group(1), found.group(1).partition("\\")[0])):
            host = authority.rpartition("@")[2]
            host = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
            if host:
                yield _normalize_host(host)


def _match_remote(program: str, word: str) -> re.Match[str] | None:
    """Match `host:path` of copy programs; for git only with a user, since `branch:branch` looks alike."""
    if program in _FETCH and not word.startswith("-"):
        return _BARE.match(word)
    is_remote = program in _REMOTES and (program != "git" or "@" in word.partition(":")[0])
    return _REMOTE.match(word) if is_remote else None


def _ssh_host(words: Sequence[str]) -> str:
    """The host argument of ssh: the first word that is neither an option nor its value."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if len(words[at]) == 2 and words[at][1] in _SSH_VALUED else 1
    match = _LOGIN.match(words[at]) if at < len(words) else None
    return _normalize_host(match.group(1)) if match else ""


def _normalize_host(host: str) -> str:
    """Normalise a host name: percent-encoding, Unicode form, case, trailing dot."""
    return unicodedata.normalize("NFKC", unquote(host)).lower().rstrip(".")
