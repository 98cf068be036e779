"""All MCP servers of a session, and the agent's own tools beside theirs.

Owns the names under which the model knows each tool: ours as they are, others' with their server's before them. All
are connected at the same time, each in a task of its own. It does not know how (link.py).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256

import anyio
from anyio.abc import TaskGroup

from handrail.agents.builtin.tools.long import Outputs
from handrail.agents.builtin.tools.permission import Permission
from handrail.agents.builtin.tools.plan import UpdatePlan
from handrail.agents.builtin.tools.reading import ReadOutput
from handrail.agents.builtin.tools.remote import Remote
from handrail.agents.builtin.tools.server import Server
from handrail.agents.builtin.tools.tool import Tool
from handrail.agents.builtin.tools.wanted import Wanted

LONGEST_NAME = 64
"""Characters that every provider allows."""
MOST_INSTRUCTIONS = 8_000
"""Characters of one server's instructions: they stand in every request."""
_NOT_FOR_MODELS = frozenset({"approve"})
"""Tools of ours that other programs ask through."""


class Servers:
    """The servers of one session; `group` is where their connections live."""

    def __init__(self, wanted: Sequence[Wanted], cwd: str, group: TaskGroup) -> None:
        self._cwd = cwd
        self._servers = [Server(each, cwd, group) for each in wanted]
        self._permission = Permission()
        self._outputs = Outputs()
        own: tuple[Tool, ...] = (UpdatePlan(), ReadOutput(self._outputs))
        self._own = {tool.definition.name: tool for tool in own}

    async def settled(self) -> None:
        """Every server is connected, or will not be, or has been waited for long enough."""
        async with anyio.create_task_group() as group:
            for server in self._servers:
                group.start_soon(server.settled)

    @property
    def tools(self) -> Mapping[str, Tool]:
        found: dict[str, Tool] = dict(self._own)
        for tool in self._remote():
            found.setdefault(tool.name, tool)  # whoever has a name first keeps it, and ours come first
        return found

    @property
    def problems(self) -> Sequence[str]:
        """A sentence for each server that has not been there."""
        return [
            f"{server} is left out: {server.problem}."
            for server in self._servers
            if server.problem and not server.tools
        ]

    @property
    def instructions(self) -> str:
        said = [(server.name, server.instructions.strip()) for server in self._servers]
        return "\n\n".join(
            f"About the tools of {name}: {words[:MOST_INSTRUCTIONS]}" for name, words in said if words
        )

    def _remote(self) -> Iterator[Remote]:
        for server in self._servers:
            for spec in server.tools:
                if server.is_ours and spec.name in _NOT_FOR_MODELS:
                    continue
                yield Remote(
                    name=spec.name if server.is_ours else known_as(server.name, spec.name),
                    server=server,
                    spec=spec,
                    permission=None if server.is_ours else self._permission,
                    outputs=self._outputs,
                    cwd=self._cwd,
                )


def known_as(server: str, tool: str) -> str:
    """`server__tool`, in characters that providers allow; one that is too long keeps a digest of what is cut."""
    name = re.sub(r"[^A-Za-z0-9_-]", "_", f"{server}__{tool}")
    if len(name) <= LONGEST_NAME:
        return name
    digest = sha256(f"{server}__{tool}".encode()).hexdigest()[:8]
    return f"{name[: LONGEST_NAME - 9]}_{digest}"
