"""The `[[servers]]` of config.toml as a person changes them: written, accepted and in force at once, without a restart.

Only the entry concerned changes. What others changed in the file stays unaccepted until a person looks at it.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread

from handrail.clients.config_edit import BadFile, append_item, get_value, is_list, is_object, remove_item
from handrail.clients.config_file import FileProblem, read_text, write_bytes
from handrail.config import BadConfig, Config, McpServerSection, read
from handrail.errors import Conflict
from handrail.flat_settings import describe_entry
from handrail.gate.rules.accepted_policy import AcceptedPolicy
from handrail.store.actor import Actor
from handrail.upstream.servers import Servers

POINTER = ("servers",)
SERVERS_MAX = 100


class ServerEntries:
    """Adds and removes MCP servers."""

    def __init__(self, path: Path, policy: AcceptedPolicy, servers: Servers) -> None:
        self._path, self._policy, self._servers = path, policy, servers
        self._one = anyio.Lock()

    async def add(self, section: McpServerSection, by: Actor) -> None:
        """Add an entry. Raises Conflict."""
        async with self._one:
            if section.name in self._servers.configured:
                raise Conflict(
                    f"There is an MCP server {section.name} already. Choose another name, or remove that one first."
                )
            value = describe_entry(section)
            await self._policy.expect_setting(_setting(section.name), value)
            await to_thread.run_sync(_write_entry, self._path, section)
            await self._policy.take_setting(_setting(section.name), value, by)
            self._servers.add(section)

    async def remove(self, name: str, by: Actor) -> None:
        """Remove an entry, and end the server's processes. Raises Conflict."""
        async with self._one:
            await self._policy.expect_setting(_setting(name), None)
            await to_thread.run_sync(_delete_entry, self._path, name)
            await self._policy.take_setting(_setting(name), None, by)
            await self._servers.remove(name)


def _setting(name: str) -> str:
    return f"servers.{name}"


def _write_entry(path: Path, section: McpServerSection) -> None:
    """Append the entry to the file. Raises Conflict."""
    text = _read(path)
    entries = _find_entries(text)
    if any(entry.get("name") == section.name for entry in entries):
        raise Conflict(
            f"{path} has an MCP server {section.name} that Handrail has not taken up. `handrail restart` does."
        )
    if len(entries) >= SERVERS_MAX:
        raise Conflict(f"{path} has {SERVERS_MAX} MCP servers, which is the most. Remove one first.")
    value = section.model_dump(mode="json", exclude_defaults=True)
    _save(path, text, lambda: append_item("toml", text, POINTER, value))


def _delete_entry(path: Path, name: str) -> None:
    """Remove the entry from the file, if it is there. Raises Conflict."""
    text = _read(path)
    found = [each for each in _find_entries(text) if each.get("name") == name]
    if found:
        _save(path, text, lambda: remove_item("toml", text, POINTER, found[0]))


def _find_entries(text: str) -> list[Mapping[str, Any]]:
    entries = get_value("toml", text, POINTER)
    return [each for each in entries if is_object(each)] if is_list(entries) else []


def _read(path: Path) -> str:
    """The text of the file, which must be valid. Raises Conflict."""
    try:
        text = read_text(path)
        read(Config, path, text)
    except (FileProblem, BadConfig) as problem:
        raise Conflict(f"{problem} Nothing was changed.") from None
    return text


def _save(path: Path, before: str, edit: Callable[[], str]) -> None:
    """Replace the file, if it is still as it was read. Raises Conflict."""
    try:
        after = edit()
        read(Config, path, after)
        if read_text(path) != before:
            raise Conflict(f"{path} was changed by another program in the same moment. Try again.")
        write_bytes(path, after.encode())
    except (FileProblem, BadConfig, BadFile) as problem:
        raise Conflict(f"{problem} Nothing was changed.") from None
