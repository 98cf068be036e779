"""Risk of a call: a level and reasons, computed from its claims alone.

Pure functions. They never read an agent's prose, and decide nothing (rules/policy.py).
"""

import posixpath
import re
from collections.abc import Iterator, Sequence

from handrail.lazy_dataclass import dataclass
from handrail.store.values import Action, Claim, Risk

_LOOKED_AT = 2000
"""Characters of a command matched against the dangerous patterns: bounds the time for a long command."""
_ORDER: tuple[Risk, ...] = ("low", "medium", "high")


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """A risk level and the reasons for exactly that level."""

    level: Risk
    reasons: tuple[str, ...]


def assess(claims: Sequence[Claim]) -> Assessment:
    reasons = [item for claim in claims for item in _reasons(claim)]
    level = _ORDER[max((_ORDER.index(level) for level, _ in reasons), default=0)]
    return Assessment(
        level=level, reasons=tuple(dict.fromkeys(why for each, why in reasons if each == level))
    )


def _reasons(claim: Claim) -> Iterator[tuple[Risk, str]]:
    """Every reason for high risk; if there are none, the single reason for its level."""
    high = [claim.opaque] if claim.opaque and not claim.calm else []
    high += dangers(claim.words)
    if claim.protected:
        high.append(_PROTECTED[claim.action])
    if not claim.inside and not (claim.protected and claim.action in ("stop", "type")):
        high.append(_OUTSIDE[claim.action])
    for reason in high:
        yield "high", reason
    if high:
        return
    if claim.calm:
        yield "medium", claim.opaque
    elif claim.action == "run":
        yield _weigh_run(claim)
    else:
        yield _INSIDE[claim.action]


def _weigh_run(claim: Claim) -> tuple[Risk, str]:
    """The level of a command inside the workspace that is not known to be dangerous."""
    if claim.server:
        return "medium", f"the MCP server {claim.server} does it, and Handrail cannot see how"
    if claim.reads or _only_reads(claim.words):
        return "low", "only reads in the workspace"
    name = posixpath.basename(claim.words[0]) if claim.words else ""
    if language := _find_code(name, claim.words[1:]):
        return "medium", f"runs {language} code from the command line"
    return "medium", f"runs {name}" if _NAME.fullmatch(name) else "runs a program"


_NAME = re.compile(r"[\w.+-]{1,40}")
_CODE = {
    "python": ("Python", "c"),
    "perl": ("Perl", "eE"),
    "ruby": ("Ruby", "e"),
    "node": ("JavaScript", "ep"),
    "deno": ("JavaScript", ""),
    "bun": ("JavaScript", "e"),
    "php": ("PHP", "r"),
    "lua": ("Lua", "e"),
    "Rscript": ("R", "e"),
}
"""Interpreters: the language, and the short options that take code."""


def _find_code(program: str, words: Sequence[str]) -> str:
    """The language of code that is given as an argument, or empty."""
    language, options = _CODE.get(program.rstrip("0123456789."), ("", ""))
    for word in words if language else ():
        if not word.startswith("-"):
            return language if word == "eval" else ""
        if word in ("--eval", "--print", "-") or (word[1] != "-" and not {*options}.isdisjoint(word[1:])):
            return language
    return ""


def dangers(words: Sequence[str]) -> Iterator[str]:
    """Irreversible or far-reaching effects that a command is known to have."""
    if words:
        line = " ".join((posixpath.basename(words[0]).casefold(), *words[1:]))[:_LOOKED_AT]
        yield from dict.fromkeys(reason for pattern, reason in _DANGERS if pattern.match(line))


_DANGERS = tuple(
    (re.compile(rf"(?:{pattern})(?: |$)", re.DOTALL), reason)
    for pattern, reason in (
        (r"rm|rmdir|unlink|shred|truncate", "deletes files"),
        (r"git (.* )?(clean|rm)|git branch (.* )?(-[a-zA-Z]*[dD]|--delete)", "deletes files or branches"),
        (r"find .*-delete|rsync (.* )?--del\S*", "deletes files"),
        (r"(docker|podman) (.* )?(rm|rmi|prune)|kubectl (.* )?delete|dropdb|aws (.* )?(rm|delete\S*|terminate\S*)", "deletes containers, images or data that others may use"),
        (r"mkfs\S*|dd|fdisk|parted|wipefs", "overwrites whole disks"),
        (r"sudo", "runs as root (sudo)"),
        (r"doas", "runs as root (doas)"),
        (r"pkexec", "runs as root (pkexec)"),
        (r"su|runuser", "runs as another user (su)"),
        (r"passwd|useradd|usermod|visudo", "changes users or their passwords"),
        (r"setcap|chown|chmod (.* )?([0-7]*7[0-7]*7|\S*s\S*|a\+w|o\+w)", "changes who may use a file"),
        (r"git (.* )?push|(npm|pnpm|yarn|cargo|poetry|uv|flit|vsce|hatch) (.* )?publish", "publishes"),
        (r"twine (.* )?upload|gem (.* )?push|(docker|podman|helm) (.* )?push|gh (.* )?(release|pr|repo|gist|api) .*", "publishes"),
        (r"terraform (.* )?(apply|destroy)|kubectl (.* )?(apply|create|replace|patch)|ansible-playbook", "publishes"),
        (r"git (.* )?(reset (.* )?--hard|rebase|filter-branch|filter-repo)", "rewrites git history or discards changes"),
        (r"git (.* )?push (.* )?(-f|--force\S*|\+\S*)", "rewrites git history or discards changes"),
        (r"git (.* )?(commit (.* )?--amend|reflog (expire|delete)|stash (drop|clear))", "rewrites git history or discards changes"),
        (r"git (.* )?(checkout (.* )?(--|-f|\.)|restore .*|switch (.* )?(-f|--discard-changes))", "rewrites git history or discards changes"),
        (r"kill|killall|pkill|shutdown|reboot|halt|poweroff|systemctl|launchctl|crontab", "stops or schedules programs"),
    )
)  # fmt: skip
"""Patterns match from the start of the command, its words joined by spaces."""

READERS = frozenset(
    (
        *(
            "ls",
            "cat",
            "head",
            "tail",
            "wc",
            "pwd",
            "echo",
            "printf",
            "true",
            "false",
            "cd",
            "test",
            "[",
            "exit",
            "sleep",
        ),
        *("whoami", "id", "groups", "uname", "nproc", "which", "type", "stat", "du", "df", "seq"),
        *("basename", "dirname", "realpath", "readlink", "grep", "egrep", "fgrep", "cut", "tr", "nl", "tac"),
        *("rev", "comm", "cmp", "md5sum", "sha1sum", "sha256sum", "cksum", "od", "fold", "paste"),
    )
)
"""Programs that can neither write nor start anything, with any flags."""
_WANDERS = {
    **dict.fromkeys(("grep", "egrep", "fgrep"), re.compile(r"-[a-zA-Z]*[rRd]")),
    **dict.fromkeys(("md5sum", "sha1sum", "sha256sum", "cksum"), re.compile(r"-[a-zA-Z]*c")),
    "du": re.compile(r"-[a-zA-Z]*[DHLX]"),
    "ls": re.compile(r"-[a-zA-Z]*[HL]|--d"),
}
"""Options that read files not named on the command line: recursion, symlinks, or a list file."""
_PLAIN_OPTIONS = frozenset(
    (
        *("after-context", "all", "before-context", "binary", "bytes", "canonicalize", "color", "colour", "context"),
        *("count", "exclude", "exclude-dir", "extended-regexp", "files-with-matches", "files-without-match", "fixed-strings"),
        *("follow", "help", "human-readable", "ignore-case", "include", "invert-match", "line-number", "line-regexp", "lines"),
        *("max-count", "max-depth", "no-filename", "no-messages", "number", "only-matching", "perl-regexp", "quiet"),
        *("regexp", "silent", "squeeze-blank", "summarize", "total", "version", "with-filename", "word-regexp", "words"),
    )
)  # fmt: skip
"""Harmless long options. An allowlist, because programs accept any unique prefix of a long option."""
_NAMES_ONLY = frozenset(("[", "ls", "stat", "df", "pwd", "echo", "printf", "cd", "test", "tr", "seq", "exit"))


def _only_reads(words: Sequence[str]) -> bool:
    """Whether a command only reads the files it names; that those are inside, the claim has already checked."""
    return bool(words) and words[0] in READERS and not any(_wanders(words[0], word) for word in words[1:])


def _wanders(program: str, word: str) -> bool:
    pattern = _WANDERS.get(program)
    if pattern is not None and pattern.match(word):
        return True
    is_long = word.startswith("--") and len(word) > 2
    return program not in _NAMES_ONLY and is_long and word[2:].partition("=")[0] not in _PLAIN_OPTIONS


_INSIDE: dict[Action, tuple[Risk, str]] = {
    "recall": ("low", "reads Handrail's own record"),
    "plan": ("low", "touches nothing outside of the agent"),
    "read": ("low", "reads in the workspace"),
    "stop": ("low", "ends a terminal that agents of this workspace opened"),
    "write": ("medium", "changes a file in the workspace"),
    "delete": ("high", "deletes a file"),
    "run": ("medium", "runs a program"),
    "connect": ("medium", "connects to another machine"),
    "type": ("medium", "types into a terminal, where aliases and state may change its meaning"),
}
_OUTSIDE: dict[Action, str] = {
    "plan": "touches nothing outside of the agent",
    "recall": "reads outside the workspace",
    "read": "reads outside the workspace",
    "stop": "ends a terminal of another workspace",
    "write": "writes outside the workspace",
    "delete": "deletes outside the workspace",
    "run": "reaches outside the workspace",
    "connect": "connects to another machine",
    "type": "types into a terminal of another workspace",
}
_PROTECTED: dict[Action, str] = {
    "plan": "touches nothing outside of the agent",
    "recall": "reads a protected place",
    "read": "reads a protected place",
    "stop": "ends your own terminal",
    "write": "writes a protected place",
    "delete": "deletes a protected place",
    "run": "touches a protected place",
    "connect": "connects to another machine",
    "type": "types into your own terminal",
}
"""For terminals, those opened by a person are protected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallAssessment:
    """The assessment of a whole call, and of each claim in order."""

    level: Risk
    reasons: tuple[str, ...]
    parts: tuple[Assessment, ...]


def assess_call(claims: Sequence[Claim]) -> CallAssessment:
    whole = assess(claims)
    parts = tuple(assess((claim,)) for claim in claims)
    return CallAssessment(level=whole.level, reasons=whole.reasons, parts=parts)
