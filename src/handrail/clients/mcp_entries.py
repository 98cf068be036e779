"""The MCP servers in a client's own configuration, as entries for Handrail's `[[servers]]`.

Nothing is written. What Handrail's entry cannot express is a sentence and not a guess.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from handrail.clients.client_facts import SERVER, Client, Setup
from handrail.clients.config_edit import Format, Pointer, as_list, get_value, is_list, is_object
from handrail.clients.config_file import read_text
from handrail.lazy_dataclass import dataclass

NAME_MAX = 20
_REFERENCE = re.compile(r"\$\{(?:env:)?(\w+)\}|\{env:(\w+)\}|\$(\w+)")
"""How clients name a variable of their own environment in a value."""
_PLACEHOLDER = re.compile(r"\$\{[^}]*\}|\{(?:env|file):[^}]*\}")
_REMOTE = ("url", "httpUrl", "serverUrl", "uri")
_PROTOCOL_HEADERS = ("accept", "content-type")
"""Headers that Handrail sets itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpEntry:
    """A client's entry of one MCP server."""

    name: str
    """As the client has it."""
    path: Path
    format: Format
    pointer: Pointer
    """Of the entry in the file."""
    value: Mapping[str, Any]
    """The entry as it is."""
    section: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The same as fields of `[[servers]]`; empty if there is a problem."""
    problem: str = ""
    """Why Handrail cannot have it."""


def find_mcp_entries(client: Client, setup: Setup) -> list[McpEntry]:
    """The servers of a client apart from Handrail, in the order of its files. Raises BadFile, FileProblem."""
    return [
        _read_entry(name, path, kind, (*pointer, name), value)
        for path, kind, pointer in client.mcp_lists(setup)
        for name, value in _members(path, kind, pointer)
        if is_object(value) and not _is_ours(name, value)
    ]


def _members(path: Path, format: Format, pointer: Pointer) -> Iterator[tuple[str, Any]]:
    found = get_value(format, read_text(path), pointer)
    yield from found.items() if is_object(found) else ()


def _is_ours(name: str, value: Mapping[str, Any]) -> bool:
    words = " ".join(map(str, [value.get("command", ""), *as_list(value.get("args"))]))
    return name == SERVER or bool(re.search(r"\bhandrail\b.* mcp$", words))


def _read_entry(
    name: str, path: Path, format: Format, pointer: Pointer, value: Mapping[str, Any]
) -> McpEntry:
    entry = McpEntry(name=name, path=path, format=format, pointer=pointer, value=value)
    try:
        return replace(entry, section={"name": _convert_name(name), **_read_fields(value)})
    except _NotConvertible as problem:
        return replace(entry, problem=f"{name}: {problem}")


class _NotConvertible(Exception):
    """The message says why an entry cannot be taken over."""


def _convert_name(name: str) -> str:
    """A name as `[[servers]]` takes it."""
    words = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    if not words:
        raise _NotConvertible("its name has no letters or digits. Give it another name.")
    return words[:NAME_MAX].rstrip("-")


def _read_fields(value: Mapping[str, Any]) -> dict[str, Any]:
    remote = next((value[key] for key in _REMOTE if isinstance(value.get(key), str)), None)
    fields: dict[str, Any] = (
        {"command": _read_command(value)} if remote is None else _read_remote(remote, value)
    )
    if isinstance(value.get("cwd"), str):
        fields["cwd"] = _plain(value["cwd"], "cwd")
    if value.get("disabled") is True or value.get("enabled") is False:
        fields["enabled"] = False
    return fields | (_read_environment(value) if remote is None else {})


def _read_command(value: Mapping[str, Any]) -> list[str]:
    command, more = value.get("command"), value.get("args")
    if is_object(command):  # Zed, before it had `args` beside the command
        command, more = command.get("path"), command.get("args")
    words = [command] if isinstance(command, str) else as_list(command)
    words = [str(each) for each in [*words, *as_list(more)]] if words else []
    if not words:
        raise _NotConvertible("it has neither a command nor a URL.")
    return [_plain(word, "command") for word in words]


def _read_remote(url: str, value: Mapping[str, Any]) -> dict[str, Any]:
    if value.get("type") == "sse" or value.get("transport") == "sse":
        raise _NotConvertible("it uses HTTP with SSE, which MCP has replaced and Handrail does not speak.")
    headers = {**_strings(value.get("headers")), **_strings(value.get("http_headers"))}
    headers = {name: each for name, each in headers.items() if name.lower() not in _PROTOCOL_HEADERS}
    if isinstance(value.get("bearer_token_env_var"), str) or value.get("env_http_headers"):
        raise _NotConvertible(
            "a header comes from an environment variable. Add it with `handrail servers add`."
        )
    fields: dict[str, Any] = {"url": _plain(url, "url")}
    if headers:
        fields["headers"] = {name: _plain(each, name) for name, each in headers.items()}
    return fields


def _read_environment(value: Mapping[str, Any]) -> dict[str, Any]:
    set_, passed = dict[str, str](), list[str]()
    for name, each in {**_strings(value.get("env")), **_strings(value.get("environment"))}.items():
        match = _REFERENCE.fullmatch(each)
        if match is not None and name in match.groups():
            passed.append(name)
        else:
            set_[name] = _plain(each, name)
    passed += [each for each in as_list(value.get("env_vars")) if isinstance(each, str)]
    return {key: each for key, each in (("env", set_), ("env_pass", passed)) if each}


def _strings(value: Any) -> dict[str, str]:
    if not is_object(value):
        return {}
    return {name: str(each) for name, each in value.items() if not (is_list(each) or is_object(each))}


def _plain(text: str, where: str) -> str:
    """The text, if the client does not put something else in its place."""
    if _PLACEHOLDER.search(text):
        raise _NotConvertible(f"{where} has a placeholder of the client ({text[:60]}). Add it by hand.")
    return text
