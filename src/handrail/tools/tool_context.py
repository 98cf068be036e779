"""What the terminal tools share: terminals, records, settings; and the environment of child processes."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path

from handrail.lazy_dataclass import dataclass
from handrail.store.records import Records
from handrail.store.values import Caller
from handrail.terminal.open_shell import TerminalSettings
from handrail.terminal.shell_marks import Marks, MarksCache
from handrail.terminal.terminals import Terminals
from handrail.tools.terminals.input_requests import SeenInputRequests
from handrail.tools.terminals.terminal_lookup import FoundTerminal, find, is_own, look
from handrail.tools.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """Dependencies of the terminal tools; the daemon creates one."""

    terminals: Terminals
    records: Records
    settings: TerminalSettings
    own: tuple[Path, ...]
    """Handrail's own files and folders, which are always protected."""
    marked: MarksCache = field(default_factory=MarksCache)
    askings: SeenInputRequests = field(default_factory=SeenInputRequests)

    async def find(self, id: str) -> FoundTerminal:
        """Look up a terminal and refresh its state. Raises Refusal when the id is unknown."""
        return await look(await find(self.terminals, self.records, id))

    async def to_read(self, id: str, caller: Caller) -> FoundTerminal:
        """Look up a terminal to read it; refresh its state only if that decides who may read it.

        A read by cursor must be fast. For a terminal of another workspace the shell's present folder decides,
        and a person may have changed it.
        """
        known = await find(self.terminals, self.records, id)
        return known if is_own(known, caller) else await look(known)

    async def marks(self, known: FoundTerminal) -> Marks | None:
        return await self.marked.of(known.id, known.nonce, known.tail)

    def workspace(self, caller: Caller) -> Workspace:
        return Workspace.of(caller, self.own)


PLAIN = {"PAGER": "cat", "GIT_PAGER": "cat", "TERM": "xterm-256color"}
"""A pager would block, waiting for a key press."""
_PASSED = ("HOME", "PATH", "SHELL", "USER", "LOGNAME", "LANG", "LC_*", "TERM", "TMPDIR")


def child_environment(environ: Mapping[str, str], passed: Sequence[str]) -> dict[str, str]:
    """The part of the daemon's environment that children inherit: a safe list, and names from the config."""
    names = (*_PASSED, *passed)
    return with_git_settings(
        {
            name: value
            for name, value in environ.items()
            if name in names or any(wish.endswith("*") and name.startswith(wish[:-1]) for wish in names)
        }
    )


_GIT_SETTING = "safe.bareRepository"
"""Git ignores a bare repository that it merely comes across. An agent could have written one, with a config that
starts programs; `--git-dir` and GIT_DIR still open any."""


def with_git_settings(env: dict[str, str]) -> dict[str, str]:
    """Add our git setting after those that the person passes in the environment; theirs wins."""
    at = _count_git_settings(env)
    if any(env.get(f"GIT_CONFIG_KEY_{n}", "").lower() == _GIT_SETTING.lower() for n in range(min(at, 1000))):
        return env
    return add_git_setting(env, _GIT_SETTING, "explicit")


def add_git_setting(env: Mapping[str, str], name: str, value: str) -> dict[str, str]:
    """Add a git setting after those in the environment; for a setting with one value, the last wins."""
    at = _count_git_settings(env)
    added = {f"GIT_CONFIG_KEY_{at}": name, f"GIT_CONFIG_VALUE_{at}": value}
    return {**env, "GIT_CONFIG_COUNT": str(at + 1), **added}


def _count_git_settings(env: Mapping[str, str]) -> int:
    count = env.get("GIT_CONFIG_COUNT", "")
    return int(count) if count.isascii() and count.isdigit() else 0


def hash_environment(env: Mapping[str, str]) -> str:
    """A digest that is equal for equal environments."""
    lines = "\0".join(f"{name}={value}" for name, value in sorted(env.items()))
    return hashlib.sha256(lines.encode(errors="surrogateescape")).hexdigest()
