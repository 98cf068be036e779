"""The machines that a command's words name: in a URL, or as `user@host:path`.

A literal reading. It does not know which programs connect of themselves, nor looks a name up.
"""

import re
from collections.abc import Iterator, Sequence

_URL = re.compile(r"[a-z][a-z0-9+.-]*://(?:[^/@\s]*@)?(\[[0-9a-f:.]+\]|[^/:?#\s\[\]]+)", re.IGNORECASE)
_REMOTE = re.compile(r"(?:[\w.-]+@)?([\w.-]+):(?!//)")
_LOGIN = re.compile(r"(?:[\w.-]+@)?([\w-]+(?:\.[\w-]+)*)$")
_REMOTES = frozenset(("scp", "sftp", "rsync", "git"))
_SAY_ONLY = frozenset(("echo", "printf", "grep", "egrep", "fgrep", "rg"))
"""What they are given is text."""


def hosts(words: Sequence[str]) -> Iterator[str]:
    """Each named machine, in small letters."""
    name = words[0].rpartition("/")[2]
    if name in _SAY_ONLY:
        return
    for word in words[1:]:
        found = _URL.match(word) or (_REMOTE.match(word) if _is_remote(name, word) else None)
        if found and not re.search(r"\s", word):
            yield found.group(1).strip("[]").lower().rstrip(".")
    if name == "ssh" and (login := _login(words[1:])):
        yield login


def _is_remote(program: str, word: str) -> bool:
    """`host:path` for what copies between machines; git also says `branch:branch`, so there it takes a user."""
    return program in _REMOTES and (program != "git" or "@" in word.partition(":")[0])


def _login(words: Sequence[str]) -> str:
    found = next((word for word in words if not word.startswith("-")), "")
    match = _LOGIN.match(found)
    return match.group(1).lower() if match else ""
