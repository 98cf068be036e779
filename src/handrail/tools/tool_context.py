"""What the terminal tools work with.

Owns nothing but the bundle, which the daemon makes once, and the two questions every one of these tools begins with.

What programs started for agents find around them.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from handrail.store.records import Records
from handrail.store.values import Caller
from handrail.terminal.open_shell import Means
from handrail.terminal.shell_marks import Marked, Marks
from handrail.terminal.terminals import Terminals
from handrail.tools.terminals.input_requests import Askings
from handrail.tools.terminals.terminal_lookup import Known, find, is_own, look
from handrail.tools.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """Terminals, what is recorded of them, and what new ones get."""

    terminals: Terminals
    records: Records
    means: Means
    own: tuple[Path, ...]
    """Handrail's own files and folders, which are always protected."""
    marked: Marked = field(default_factory=Marked)
    askings: Askings = field(default_factory=Askings)

    async def find(self, id: str) -> Known:
        """The terminal of that id, seen now. Raises Refusal when there is none."""
        return await look(await find(self.terminals, self.records, id))

    async def to_read(self, id: str, caller: Caller) -> Known:
        """The same, looked at only if that decides whether the caller may read it: a read by cursor must be quick.

        Where a shell is decides, and not where it was: a person may have gone elsewhere since.
        """
        known = await find(self.terminals, self.records, id)
        return known if is_own(known, caller) else await look(known)

    async def marks(self, known: Known) -> Marks | None:
        return await self.marked.of(known.id, known.nonce, known.tail)

    def workspace(self, caller: Caller) -> Workspace:
        return Workspace.of(caller, self.own)


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
