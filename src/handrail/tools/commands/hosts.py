"""The machines that a command's words name: in a URL, as `user@host:path`, or as such for what only connects.

A literal reading: where readers of URLs differ about which machine one names, each is told. It looks no name up.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from urllib.parse import unquote

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
