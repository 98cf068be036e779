"""The resources, prompts and completions of all servers, for one client: lists, and which server owns what.

Resources keep their URIs, and the server that lists one owns it; two owners are refused. Prompts are called
`server__prompt`. Lists come from the client's own process of a server, or from a cache while that does not run. Each
`list_changed` of a server clears both.
"""

import re
from collections.abc import Sequence
from contextlib import suppress

import anyio
import anyio.lowlevel
from pydantic import JsonValue

from handrail.gate.tool import Refusal
from handrail.store.values import Json
from handrail.upstream.jsonrpc_connection import ConnectionLost, RpcError
from handrail.upstream.list_entries import FIELDS, find_fault, normalize_entry
from handrail.upstream.server_connection import ClientLink
from handrail.upstream.servers import Servers
from handrail.upstream.tool_definition import SEPARATOR

LISTS = {"resources/list": "resources", "resources/templates/list": "resources", "prompts/list": "prompts"}
"""Methods, and the capability that they need."""
_NOUNS = {
    "resources/list": "resources",
    "resources/templates/list": "resource templates",
    "prompts/list": "prompts",
}
LIST_SECONDS = 15.0
"""Time for all servers to answer a list. The entries of slower ones are left out."""
INVALID_PARAMS = -32602
CHECKED_MAX = 100
"""Entries that are checked at a time."""


class Features:
    """What servers offer besides tools. Shared by all clients."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._lists: dict[tuple[str, str], list[JsonValue]] = {}
        servers.on_list_changed.append(self._forget)

    def has(self, capability: str) -> bool:
        """Whether any server may have it. One that was never started may."""
        return bool(self._owners(capability))

    def _owners(self, capability: str) -> list[str]:
        unknown = self._servers.unknown
        return [
            name
            for name in sorted(self._servers.names)
            if name in unknown or isinstance(self._servers.capabilities(name).get(capability), dict)
        ]

    async def list_entries(self, method: str, key: str, link: ClientLink) -> Json:
        """All entries of one kind, in an order that does not change."""
        owners = self._owners(LISTS[method])
        with anyio.move_on_after(LIST_SECONDS):
            async with anyio.create_task_group() as group:
                for name in owners:
                    group.start_soon(self._fetch, name, method, key, link)
        entries = [entry for name in owners for entry in self._named(name, method, key)]
        return {FIELDS[method]: entries}

    def _entries(self, name: str, method: str, key: str) -> Sequence[JsonValue]:
        """What the client's own process lists; while that does not run, what was listed last."""
        connection = self._servers.connection(name, key)
        own = None if connection is None else connection.lists.get(method)
        return self._lists.get((name, method), []) if own is None else own

    def _named(self, name: str, method: str, key: str) -> Sequence[JsonValue]:
        entries = self._entries(name, method, key)
        if method != "prompts/list":
            return entries
        return [
            {**entry, "name": f"{name}{SEPARATOR}{entry.get('name')}"}
            for entry in entries
            if isinstance(entry, dict)
        ]

    async def _fetch(self, name: str, method: str, key: str, link: ClientLink) -> None:
        connection = self._servers.connection(name, key)
        if method in connection.lists if connection is not None else (name, method) in self._lists:
            return
        with suppress(Refusal, RpcError, ConnectionLost):
            async with self._servers.using(name, key, link) as connection:
                if connection.has(LISTS[method]):
                    listed = await connection.list_all(method, FIELDS[method])
                    entries, faults = await _check_entries(method, listed)
                    connection.lists[method] = self._lists[name, method] = entries
                    self._note_faults(name, method, faults)

    def _note_faults(self, name: str, method: str, faults: Sequence[str]) -> None:
        """Let a person see what a server lists and no client gets."""
        state = self._servers.states.get(name)
        if state is None:
            return
        state.left_out.pop(method, None)
        if faults:
            what = f"{len(faults):,} of its {_NOUNS[method]}"
            state.left_out[method] = (
                f"MCP does not allow {what}, so they are left out. The first: {faults[0]}."
            )

    def _forget(self, name: str, method: str) -> None:
        """A server's `list_changed`."""
        kind = method.split("/")[1]
        self._lists = {
            at: kept for at, kept in self._lists.items() if at[0] != name or not at[1].startswith(kind)
        }

    async def find_owner(self, uri: str, key: str, link: ClientLink) -> str:
        """The server of a resource. Raises RpcError."""
        await self.list_entries("resources/list", key, link)
        await self.list_entries("resources/templates/list", key, link)
        candidates = self._owners("resources")
        owners = [name for name in candidates if uri in self._field(name, "resources/list", "uri", key)] or [
            name
            for name in candidates
            if any(
                matches_template(uri, each)
                for each in self._field(name, "resources/templates/list", "uriTemplate", key)
            )
        ]
        if not owners and len(candidates) == 1:
            return candidates[0]
        if len(owners) != 1:
            who = f"{' and '.join(owners)} both offer it" if owners else "no server lists it"
            raise RpcError(
                INVALID_PARAMS, f"Handrail cannot tell which server the resource {uri[:200]} is of: {who}."
            )
        return owners[0]

    def _field(self, name: str, method: str, field: str, key: str) -> list[str]:
        entries = self._entries(name, method, key)
        return [str(entry.get(field)) for entry in entries if isinstance(entry, dict)]

    def split_prompt(self, name: JsonValue) -> tuple[str, str]:
        """The server of a prompt and its own name. Raises RpcError."""
        server, _, prompt = str(name).partition(SEPARATOR)
        if server not in self._servers.names or not prompt:
            raise RpcError(INVALID_PARAMS, f"There is no prompt {str(name)[:100]!r}.")
        return server, prompt


async def _check_entries(method: str, listed: Sequence[JsonValue]) -> tuple[list[JsonValue], list[str]]:
    """The entries that MCP allows, fit for one list of all servers, and a sentence about each other one."""
    found: list[JsonValue] = []
    faults: list[str] = []
    for number, entry in enumerate(listed):
        wire = normalize_entry(entry) if isinstance(entry, dict) else {}
        fault = find_fault(method, wire)
        if fault:
            faults.append(fault)
        else:
            found.append(wire)
        if number % CHECKED_MAX == 0:  # a list of thousands must not hold the event loop
            await anyio.lowlevel.checkpoint()
    return found, faults


def matches_template(uri: str, template: str) -> bool:
    """Whether a template (RFC 6570) can produce a URI: each expression stands for any text but spaces.

    Searches each fixed part once. A server chooses the template, and a regular expression of its parts would take
    exponential time.
    """
    first, *others = re.split(r"\{[^{}]*\}", template)
    if not others:
        return uri == template
    *middle, last = others
    if any(char.isspace() for char in uri) or not uri.startswith(first):
        return False
    at, end = len(first), len(uri) - len(last)
    for part in middle:
        found = uri.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return at <= end and uri.endswith(last)
