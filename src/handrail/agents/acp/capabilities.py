"""What an agent and we tell each other at the beginning: who it is, what it can do, where it works.

Owns the reading of `initialize`'s answer, leniently, and what we say of ourselves and of a folder. Does not send it.

What our own agent and we tell each other beyond the protocol: what an operation is busy with, which any
other that likes to may tell too; and keys.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from pydantic import JsonValue

from handrail import __version__
from handrail.agents.acp.agent_errors import AgentError, Login
from handrail.agents.lenient_json import record, text
from handrail.config import KEYS_OF, OWN_COMMAND, PROVIDER_VARIABLES, AgentSection
from handrail.store.values import Json

PROTOCOL = 1
"""Some agents answer in another shape if asked for more."""
GREETING: Json = {
    "protocolVersion": PROTOCOL,
    "clientCapabilities": {
        "fs": {"readTextFile": True, "writeTextFile": True},
        "terminal": True,
        "elicitation": {"form": {}},
        "_meta": {"handrail": {"activities": True}},
    },
    "clientInfo": {"name": "handrail", "title": "Handrail", "version": __version__},
}
"""What we can do, no more and no less."""
SERVER = "handrail"
TEXT_MAX = 500
"""Characters of a name or description, which people see in a line."""


@dataclass(frozen=True, slots=True)
class About:
    """An agent, by its own account."""

    name: str
    version: str = ""
    capabilities: Json = field(default_factory=dict[str, JsonValue])
    logins: tuple[Login, ...] = ()

    def can(self, *path: str) -> bool:
        """Whether it offers this: `true`, or an object, which may be empty."""
        found: JsonValue = self.capabilities
        for name in path:
            found = record(found).get(name)
        return found is True or isinstance(found, dict)

    @property
    def loads(self) -> bool:
        return self.can("loadSession")

    @property
    def takes_images(self) -> bool:
        return self.can("promptCapabilities", "image")

    @property
    def tells_activities(self) -> bool:
        """What it is busy with, each of which it can be asked to end."""
        return self.can("_meta", "handrail", "activities")

    def session(self, verb: str) -> bool:
        """Whether it has `session/VERB`, e.g. resume, close or delete."""
        return self.can("sessionCapabilities", verb)


@dataclass(frozen=True, slots=True, kw_only=True)
class McpDoor:
    """Our own MCP server, as one conversation reaches it."""

    url: str
    bearer: str
    command: tuple[str, ...]
    """Of the stdio door, for an agent that does not take HTTP; with its environment."""
    env: Mapping[str, str]

    def offer(self, about: About) -> Json:
        """In the way this agent takes it: none may be offered what it does not advertise."""
        if about.can("mcpCapabilities", "http"):
            headers: list[JsonValue] = [{"name": "Authorization", "value": f"Bearer {self.bearer}"}]
            return {"type": "http", "name": SERVER, "url": self.url, "headers": headers}
        program, *arguments = self.command
        env: list[JsonValue] = [{"name": name, "value": value} for name, value in self.env.items()]
        return {"name": SERVER, "command": program, "args": list(arguments), "env": env}


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """Where a session works, and how it reaches our tools."""

    cwd: str
    mcp: McpDoor | None = None

    def params(self, about: About) -> Json:
        servers: list[JsonValue] = [] if self.mcp is None else [self.mcp.offer(about)]
        return {"cwd": self.cwd, "mcpServers": servers}


def about_of(answer: Json, name: str, command: Sequence[str]) -> About:
    """Raises AgentError where it speaks another version than ours."""
    version = answer.get("protocolVersion")
    if str(version) != str(PROTOCOL):
        raise AgentError(
            f"{name} speaks version {version} of the Agent Client Protocol; Handrail speaks version {PROTOCOL}."
        )
    info, offered = record(answer.get("agentInfo")), answer.get("authMethods")
    methods = cast("list[JsonValue]", offered if isinstance(offered, list) else [])
    return About(
        name=_text(info, "title") or _text(info, "name") or name,
        version=_text(info, "version"),
        capabilities=record(answer.get("agentCapabilities")),
        logins=tuple(_login(record(method), command) for method in methods if record(method).get("id")),
    )


def _login(method: Json, command: Sequence[str]) -> Login:
    way = str(method["id"])
    line: str | None = None
    if method.get("type") == "terminal":
        more = method.get("args")
        line = shlex.join([*command, *map(str, more if isinstance(more, list) else ())])
    return Login(way, _text(method, "name") or way, _text(method, "description"), line)


def _text(values: Json, name: str) -> str:
    return text(values.get(name))[:TEXT_MAX]


ACTIVITY = "_handrail/activity"
"""Told by the agent: something began, or ended."""
CANCEL = "_handrail/cancel_activity"
"""Asked of the agent: end one of them."""
TOLD = "_activity"
"""The kind of update an activity reaches a desk as: so it keeps its place among what is said. No agent sends it."""


def update_of(params: Json) -> Json:
    """An activity as it came on the line, as an update."""
    told: Json = {"sessionUpdate": TOLD, "activity": params.get("activity")}
    return {"sessionId": params.get("sessionId"), "update": told}


def joined(standing: Mapping[str, str], brought: Mapping[str, str]) -> dict[str, str]:
    """What an agent has anyhow, and what a person brings along. An address that is brought gets no key that was not."""
    void = {key for address, keys in KEYS_OF.items() if brought.get(address) for key in keys}
    return {name: value for name, value in standing.items() if name not in void} | dict(brought)


def apart(spec: AgentSection, env: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """What a program finds around it, and the keys that it is told instead.

    Our own takes them on its line: its environment could be read by whatever this user runs, in the moment before it
    hides that.
    """
    told = {name: env[name] for name in PROVIDER_VARIABLES if name in env and spec.command == OWN_COMMAND}
    return {name: value for name, value in env.items() if name not in told}, told


def greeting(keys: Mapping[str, str]) -> Json:
    """What is said first, with the keys where there are any."""
    return {**GREETING, "_meta": {"handrail": {"keys": dict(keys)}}} if keys else GREETING
