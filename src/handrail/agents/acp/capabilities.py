"""The ACP `initialize` handshake: our capabilities, the agent's, and the parameters of a session.

Reads the agent's answer leniently. Also defines our two extensions of the protocol: activities, which any
agent may send, and provider keys, which only our own agent receives; and steering, an extension that several
agents and hosts share. It sends nothing.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import cast

from pydantic import JsonValue

from handrail import __version__
from handrail.agents.acp.agent_errors import AgentError, Login
from handrail.agents.lenient_json import record, text
from handrail.config import KEYS_FOR_URL, OWN_COMMAND, PROVIDER_VARIABLES, AgentSection
from handrail.lazy_dataclass import dataclass
from handrail.store.values import Json

PROTOCOL = 1
"""Some agents answer in another format if asked for a newer version."""
INITIALIZE_PARAMS: Json = {
    "protocolVersion": PROTOCOL,
    "clientCapabilities": {
        "fs": {"readTextFile": True, "writeTextFile": True},
        "terminal": True,
        "elicitation": {"form": {}},
        "_meta": {"handrail": {"activities": True}},
    },
    "clientInfo": {"name": "handrail", "title": "Handrail", "version": __version__},
}
"""The capabilities that we offer; an agent relies on them."""
SERVER = "handrail"
TEXT_MAX = 500
"""Characters of a name or description; people see it in one line."""


@dataclass(frozen=True, slots=True)
class AgentInfo:
    """An agent's name, version, capabilities and logins, from its answer to `initialize`."""

    name: str
    version: str = ""
    capabilities: Json = field(default_factory=dict[str, JsonValue])
    logins: tuple[Login, ...] = ()
    steers: bool = False
    """Whether it takes a message while it works on a prompt (`STEER`)."""

    def can(self, *path: str) -> bool:
        """Whether it has this capability: `true`, or an object, which may be empty."""
        value: JsonValue = self.capabilities
        for name in path:
            value = record(value).get(name)
        return value is True or isinstance(value, dict)

    @property
    def loads(self) -> bool:
        return self.can("loadSession")

    @property
    def takes_images(self) -> bool:
        return self.can("promptCapabilities", "image")

    @property
    def tells_activities(self) -> bool:
        """Whether it reports its activities, and can cancel each of them."""
        return self.can("_meta", "handrail", "activities")

    def session(self, verb: str) -> bool:
        """Whether it has `session/VERB`, e.g. resume, close or delete."""
        return self.can("sessionCapabilities", verb)


@dataclass(frozen=True, slots=True, kw_only=True)
class McpEntry:
    """Our MCP server, as one thread's agent reaches it."""

    url: str
    bearer: str
    command: tuple[str, ...]
    """Command of the stdio door, for an agent that does not support HTTP; `env` is its environment."""
    env: Mapping[str, str]

    def offer(self, about: AgentInfo) -> Json:
        """The server entry in the transport that this agent supports."""
        if about.can("mcpCapabilities", "http"):
            headers: list[JsonValue] = [{"name": "Authorization", "value": f"Bearer {self.bearer}"}]
            return {"type": "http", "name": SERVER, "url": self.url, "headers": headers}
        program, *arguments = self.command
        env: list[JsonValue] = [{"name": name, "value": value} for name, value in self.env.items()]
        return {"name": SERVER, "command": program, "args": list(arguments), "env": env}


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A session's working directory, and our MCP server for it."""

    cwd: str
    mcp: McpEntry | None = None

    def params(self, about: AgentInfo) -> Json:
        servers: list[JsonValue] = [] if self.mcp is None else [self.mcp.offer(about)]
        return {"cwd": self.cwd, "mcpServers": servers}


def parse_agent_info(answer: Json, name: str, command: Sequence[str]) -> AgentInfo:
    """Parse the answer to `initialize`. Raises AgentError if the protocol version is not ours."""
    version = answer.get("protocolVersion")
    if str(version) != str(PROTOCOL):
        raise AgentError(
            f"{name} speaks version {version} of the Agent Client Protocol; Handrail speaks version {PROTOCOL}."
        )
    info, offered = record(answer.get("agentInfo")), answer.get("authMethods")
    methods = cast("list[JsonValue]", offered if isinstance(offered, list) else [])
    return AgentInfo(
        name=_text(info, "title") or _text(info, "name") or name,
        version=_text(info, "version"),
        capabilities=record(answer.get("agentCapabilities")),
        logins=tuple(_parse_login(record(method), command) for method in methods if record(method).get("id")),
        steers=record(record(answer.get("_meta")).get("steering")).get("supported") is True,
    )


def _parse_login(method: Json, command: Sequence[str]) -> Login:
    way = str(method["id"])
    line: str | None = None
    if method.get("type") == "terminal":
        more = method.get("args")
        line = shlex.join([*command, *map(str, more if isinstance(more, list) else ())])
    return Login(way, _text(method, "name") or way, _text(method, "description"), line)


def _text(values: Json, name: str) -> str:
    return text(values.get(name))[:TEXT_MAX]


STEER = "_session/steering"
"""Request to the agent: take this message into the prompt that runs. An agent announces it beside its capabilities, as
`_meta.steering.supported`."""
STEER_META: Json = {"steering": {"idleBehavior": "promptRequired"}}
"""If no prompt runs any more, the agent must leave the message to us, and not begin a prompt of its own."""


def is_steered(answer: object) -> bool:
    """Whether the agent took the message. Some begin a new prompt whatever they are told; then they have it too."""
    return record(answer).get("outcome") in ("injected", "startedNewTurn")


ACTIVITY = "_handrail/activity"
"""Notification from the agent: an activity began or ended."""
CANCEL_ACTIVITY = "_handrail/cancel_activity"
"""Request to the agent: cancel an activity."""
ACTIVITY_UPDATE = "_activity"
"""The update kind for an activity, so that it keeps its order among the other updates. No agent sends this
kind."""


def update_from_activity(params: Json) -> Json:
    """Convert an activity notification into a session update."""
    update: Json = {"sessionUpdate": ACTIVITY_UPDATE, "activity": params.get("activity")}
    return {"sessionId": params.get("sessionId"), "update": update}


def merge_environment(base: Mapping[str, str], supplied: Mapping[str, str]) -> dict[str, str]:
    """Merge the environment with variables that a person supplies.

    A supplied base URL removes the keys from `base` that belong to it, so that no stored key goes to that
    URL.
    """
    void = {key for address, keys in KEYS_FOR_URL.items() if supplied.get(address) for key in keys}
    return {name: value for name, value in base.items() if name not in void} | dict(supplied)


def split_keys(spec: AgentSection, env: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Split an environment into the program's environment and the provider keys for `initialize`.

    Only our own agent receives keys this way: other processes of this user could read its environment until
    it hides its memory.
    """
    keys = {name: env[name] for name in PROVIDER_VARIABLES if name in env and spec.command == OWN_COMMAND}
    return {name: value for name, value in env.items() if name not in keys}, keys


def build_initialize_params(keys: Mapping[str, str]) -> Json:
    """The parameters of `initialize`, with the provider keys if there are any."""
    return {**INITIALIZE_PARAMS, "_meta": {"handrail": {"keys": dict(keys)}}} if keys else INITIALIZE_PARAMS
