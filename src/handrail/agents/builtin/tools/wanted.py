"""The MCP servers that a session is to have: those its host names, and our own door where it is not among them.

Owns the protocol's descriptions turned into ours, and what a process of a server may see of our environment. It
connects nothing.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from acp.schema import AcpMcpServer, HttpMcpServer, McpServerStdio, SseMcpServer

from handrail.places import Places

OURS = "handrail"
"""The name of our own server, whose gate asks for itself."""
Given = HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio
"""As `session/new` has them."""

_INHERITED = ("HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER", "XDG_RUNTIME_DIR")
"""What every program may know; anything else, keys above all, has to be given to it by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stdio:
    """A server that is a program, spoken to on its standard streams."""

    name: str
    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Http:
    """A server at an address."""

    name: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


Wanted = Stdio | Http


def wanted(given: Sequence[Given], cwd: str) -> tuple[list[Wanted], list[str]]:
    """What to connect to, our own first; and a sentence for each that cannot be."""
    found = [each for each in map(_read, given) if each is not None]
    if not any(each.name == OURS for each in found):
        found.append(own_door(cwd))
    notes = [_unfit(each.name) for each in given if _read(each) is None]
    return sorted(found, key=lambda each: each.name != OURS), notes


def own_door(cwd: str) -> Stdio:
    """Our own server for a host that did not name it."""
    command = (sys.executable, "-P", "-m", "handrail", "mcp", "--workspace", cwd)
    return Stdio(name=OURS, command=command, env=Places.find().environment)


def environment_of(server: Stdio) -> dict[str, str]:
    """All that its process sees."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name in _INHERITED or (name.startswith("LC_") and name.isupper())
    }
    return {**inherited, **server.env}


def _read(given: Given) -> Wanted | None:
    match given:
        case McpServerStdio():
            env = {each.name: each.value for each in given.env}
            return Stdio(name=given.name, command=(given.command, *given.args), env=env)
        case HttpMcpServer():
            headers = {each.name: each.value for each in given.headers}
            return Http(name=given.name, url=given.url, headers=headers)
        case _:
            return None


def _unfit(name: str) -> str:
    return f"The MCP server “{name}” is left out: this agent speaks to servers on stdio and streamable HTTP alone."
