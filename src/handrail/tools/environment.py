"""What programs started for agents find around them.

Owns which variables they get. It does not start anything.
"""

import hashlib
from collections.abc import Mapping, Sequence

PLAIN = {"PAGER": "cat", "GIT_PAGER": "cat", "TERM": "xterm-256color"}
"""A pager would wait for a key that nobody presses."""
_PASSED = ("HOME", "PATH", "SHELL", "USER", "LOGNAME", "LANG", "LC_*", "TERM", "TMPDIR")


def child_environment(environ: Mapping[str, str], passed: Sequence[str]) -> dict[str, str]:
    """What children get of the daemon's environment: the harmless part, and what the person named."""
    names = (*_PASSED, *passed)
    return {
        name: value
        for name, value in environ.items()
        if name in names or any(wish.endswith("*") and name.startswith(wish[:-1]) for wish in names)
    }


def hash_of(env: Mapping[str, str]) -> str:
    """Equal for equal environments."""
    told = "\0".join(f"{name}={value}" for name, value in sorted(env.items()))
    return hashlib.sha256(told.encode(errors="surrogateescape")).hexdigest()
