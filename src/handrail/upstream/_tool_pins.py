"""Pins: the definitions of a server's tools that a person knows, and those that came later.

The first listing of a server is taken as it is. After that, a tool that is new, or that its server describes in other
words, asks a person before it runs; an allowed call accepts the definition. The facts are in the journal.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import field, replace

from pydantic import JsonValue

from handrail.errors import Unwritable
from handrail.lazy_dataclass import dataclass
from handrail.store.journal import Journal
from handrail.store.mcp_servers import PinnedServer, ServerToolsPinned
from handrail.store.values import Json
from handrail.upstream.tool_definition import DefinitionSet, ToolDefinition, read_definitions

log = logging.getLogger(__name__)

FIRST = "first listing"


@dataclass()
class _Known:
    """One server's definitions."""

    accepted: dict[str, ToolDefinition] = field(default_factory=dict[str, ToolDefinition])
    """What a person knows, by the server's own name. A tool that disappears stays: it may come back changed."""
    current: dict[str, ToolDefinition] = field(default_factory=dict[str, ToolDefinition])
    """What the server listed last."""
    capabilities: Json = field(default_factory=dict[str, JsonValue])
    digests: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """Tools with each digest that was accepted while Handrail runs: processes of several clients may differ."""

    def accept(self, tool: ToolDefinition) -> None:
        self.accepted[tool.own_name] = tool
        self.digests.add((tool.own_name, tool.digest))


class ToolPins:
    """The accepted and the current tool definitions of all servers."""

    def __init__(self, journal: Journal, pinned: Iterable[PinnedServer]) -> None:
        self._journal = journal
        self._servers = {each.name: _known_from(each) for each in pinned}

    def is_known(self, server: str) -> bool:
        return server in self._servers

    def list(self, server: str) -> list[ToolDefinition]:
        """The tools of a server as clients may see them: a changed one with the words that a person knows."""
        known = self._servers.get(server, _Known())
        return [known.accepted.get(name, tool) for name, tool in sorted(known.current.items())]

    def capabilities(self, server: str) -> Json:
        return self._servers.get(server, _Known()).capabilities

    def get(self, server: str, tool: str) -> ToolDefinition | None:
        """The current definition; None if the server has no such tool."""
        return self._servers.get(server, _Known()).current.get(tool)

    def accepted(self, server: str, tool: str) -> ToolDefinition | None:
        return self._servers.get(server, _Known()).accepted.get(tool)

    def is_accepted(self, tool: ToolDefinition) -> bool:
        known = self._servers.get(tool.server, _Known())
        return (tool.own_name, tool.digest) in known.digests

    def share(self, listed: DefinitionSet) -> DefinitionSet:
        """The same definitions, those that are known as the objects held here: each process of a server lists them again."""
        return replace(listed, tools={name: self._find_known(tool) for name, tool in listed.tools.items()})

    def _find_known(self, tool: ToolDefinition) -> ToolDefinition:
        for known in (self.get(tool.server, tool.own_name), self.accepted(tool.server, tool.own_name)):
            # In Python, 1 == True; the digests differ.
            if known is not None and known == tool and known.digest == tool.digest:
                return known
        return tool

    def see(self, server: str, listed: Mapping[str, ToolDefinition], capabilities: Json) -> bool:
        """Note what a server lists now; whether that changes what clients may see."""
        before = self.list(server)
        is_first = server not in self._servers
        known = self._servers.setdefault(server, _Known())
        known.current = dict(listed)
        for tool in listed.values() if is_first else ():
            known.accept(tool)
        if is_first or known.capabilities != capabilities:
            known.capabilities = capabilities
            self._record(server, FIRST if is_first else "other capabilities")
        return before != self.list(server)

    def accept(self, tool: ToolDefinition, why: str) -> None:
        """A person allowed a call of a tool after they saw this definition."""
        self._servers[tool.server].accept(tool)
        self._record(tool.server, why)

    def _record(self, server: str, why: str) -> None:
        known = self._servers[server]
        tools = tuple(tool.wire for _, tool in sorted(known.accepted.items()))
        try:
            self._journal.append(
                ServerToolsPinned(server=server, tools=tools, capabilities=known.capabilities, why=why)
            )
        except Unwritable as problem:
            log.error("the tools of %s could not be recorded: %s", server, problem)


def _known_from(pinned: PinnedServer) -> _Known:
    tools = dict(read_definitions(pinned.name, pinned.tools).tools)
    known = _Known(current=tools, capabilities=pinned.capabilities)
    for tool in tools.values():
        known.accept(tool)
    return known
