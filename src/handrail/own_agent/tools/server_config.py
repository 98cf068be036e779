"""The MCP servers of a session: those that the host names, plus our own if the host did not name it."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import field

from handrail.lazy_dataclass import dataclass
from handrail.own_agent.acp_requests import HostServer, HttpServer, StdioServer
from handrail.paths import Places, own_python

OURS = "handrail"
"""The name of our own server, whose gate asks for approval."""

_INHERITED = ("HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER", "XDG_RUNTIME_DIR")
"""Environment variables that every server gets; anything else, above all keys, must be given explicitly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stdio:
    """A server started as a program, connected over its standard streams."""

    name: str
    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Http:
    """A server reached by URL."""

    name: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


ServerConfig = Stdio | Http


def select_servers(given: Sequence[HostServer], cwd: str) -> tuple[list[ServerConfig], list[str]]:
    """The servers to connect to, our own first, and a sentence for each that is not supported."""
    servers = [each for each in map(_config, given) if each is not None]
    if not any(each.name == OURS for each in servers):
        servers.append(own_server(cwd))
    notes = [_unsupported_sentence(each.name) for each in given if _config(each) is None]
    return sorted(servers, key=lambda each: each.name != OURS), notes


def own_server(cwd: str) -> Stdio:
    """The configuration of our own server."""
    command = (*own_python(), "-m", "handrail", "mcp", "--workspace", cwd)
    return Stdio(name=OURS, command=command, env=Places.find().environment)


def server_environment(server: Stdio) -> dict[str, str]:
    """The environment of the server's process."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name in _INHERITED or (name.startswith("LC_") and name.isupper())
    }
    return {**inherited, **server.env}


def _config(given: HostServer) -> ServerConfig | None:
    match given:
        case StdioServer():
            env = {each.name: each.value for each in given.env}
            return Stdio(name=given.name, command=(given.command, *given.args), env=env)
        case HttpServer():
            headers = {each.name: each.value for each in given.headers}
            return Http(name=given.name, url=given.url, headers=headers)
        case _:
            return None


def _unsupported_sentence(name: str) -> str:
    return f"The MCP server “{name}” is left out: this agent speaks to servers on stdio and streamable HTTP alone."
