"""Configuration: the settings of config.toml, validated, with the origin of each value.

Defines the name, default and limits of every setting; the modules that use a setting define its effect.
"""

import re
import tomllib
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, cast
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, model_validator

from handrail.paths import own_python
from handrail.regular_file import NotRegular, read_regular_file
from handrail.toml_lines import find_line, flatten

Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*\*?$")]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ServerSection(Section):
    port: Annotated[int, Field(ge=1, le=65_535)] = 7433
    """TCP port on 127.0.0.1. If it is taken, Handrail uses a free one."""


class TerminalSection(Section):
    shell: Annotated[str | None, Field(min_length=1, max_length=4096)] = None
    """Shell of new terminals. Default: your login shell."""
    max_bytes: Annotated[int, Field(ge=65_536, le=1 << 40)] = 64 * 1024 * 1024
    """Bytes of output kept on disk for one terminal. The oldest output is dropped first."""
    max_lines: Annotated[int, Field(ge=1_000, le=1 << 40)] = 1_000_000
    """Lines of output kept for one terminal. The limit that is reached first applies."""
    keep_days: Annotated[float, Field(gt=0, le=36_500)] = 30.0
    """Days for which the output of an ended terminal is kept."""
    keep_bytes: Annotated[int, Field(ge=1 << 20, le=1 << 50)] = 4 * 1024 * 1024 * 1024
    """Bytes of output kept for all ended terminals together. The oldest terminals are dropped first."""


class CommandSection(Section):
    wait_seconds: Annotated[float, Field(ge=1, le=3600)] = 45.0
    """Seconds after which an unfinished call is handed back to its client. It keeps running."""
    stop_grace: Annotated[float, Field(ge=0, le=60)] = 2.0
    """Seconds between SIGTERM and SIGKILL when a process tree is stopped."""
    env_pass: tuple[Name, ...] = ()
    """Names of variables in the daemon's environment that commands and terminals also get. `NAME*` is a prefix."""


class DaemonSection(Section):
    restart: bool = True
    """Restart the daemon if it ends unexpectedly: up to five times in ten minutes, with increasing delays."""


class ApprovalsSection(Section):
    expire_seconds: Annotated[float, Field(ge=0, le=31_536_000)] = 0.0
    """Seconds after which an unanswered approval expires and its call fails. 0: never."""


class UndoSection(Section):
    keep_days: Annotated[float, Field(gt=0, le=36_500)] = 30.0
    """Days for which the previous content of changed files is kept."""
    keep_bytes: Annotated[int, Field(ge=1 << 20, le=1 << 50)] = 1024 * 1024 * 1024
    """Bytes of previous file content kept in total. The oldest is dropped first."""


class JournalSection(Section):
    keep_days: Annotated[float, Field(ge=0, le=36_500)] = 0.0
    """Days for which ended calls and their events are kept. Threads that exist keep theirs. 0: for ever."""


HttpUrl = Annotated[str, Field(max_length=1000, pattern=r"^(https?://[^\s/@]+(/[^\s]*)?)?$")]


class NotifySection(Section):
    desktop: bool = True
    """Show a desktop notification when a call needs approval and no page is open."""
    client_stops: bool = True
    """Also when a connected client ends a turn that took at least 30 seconds."""
    client_asks: bool = True
    """Also when a connected client wants its user's attention."""
    ntfy: HttpUrl = ""
    """Address of an ntfy topic that gets a message when a call needs you and no page is looked at. It names no arguments."""
    webhook: HttpUrl = ""
    """Address that gets the same as JSON by POST: `title`, `risk` and `link`."""
    after_seconds: Annotated[float, Field(ge=0, le=3600)] = 30.0
    """Seconds that a call waits before ntfy and the webhook are used."""
    quiet_hours: Annotated[str, Field(pattern=r"^(([01]?\d|2[0-3])-([01]?\d|2[0-3]))?$")] = ""
    """Hours without messages of the desktop, ntfy and the webhook, for example `22-7`."""


class DevicesSection(Section):
    """`[devices]`: what `handrail pair` uses unless its options override it, and what paired phones may decide."""

    address: Annotated[str, Field(max_length=60)] = ""
    """IP address to listen on. Default: the address of this machine in its local network."""
    port: Annotated[int, Field(ge=1, le=65_535)] = 7434
    """TCP port for paired devices. Nothing listens there before `handrail pair`."""
    name: Annotated[str, Field(max_length=253)] = ""
    """Host name in the link, instead of the address: `box.local`, or the name of the proxy."""
    behind_proxy: bool = False
    """Listen on 127.0.0.1 without TLS, for a proxy on this machine that has a certificate for `name` (Tailscale, Caddy)."""
    high_risk: Literal["anywhere", "desk"] = "anywhere"
    """`desk`: devices do not allow high-risk calls, make rules, trust folders or type into terminals."""

    @model_validator(mode="after")
    def _check_name(self) -> "DevicesSection":
        if self.behind_proxy and not self.name:
            raise ValueError("`behind_proxy` needs the `name` of the proxy")
        return self


class AhpSection(Section):
    """`[ahp]`: threads, approvals and terminals in the chat of VS Code, through a VS Code server (code-server)."""

    enabled: bool = False
    """Serve the Agent Host Protocol on a unix socket. `handrail connect code-server` sets it."""
    socket: Annotated[str | None, Field(min_length=1, max_length=107)] = None
    """Path of the socket, in a folder that is private to you. Default: `ahp.sock` beside Handrail's other sockets."""
    port: Annotated[int, Field(ge=0, le=65_535)] = 0
    """TCP port on 127.0.0.1 for clients that cannot use the socket. They may watch and prompt, not decide. 0: none."""
    token: Annotated[str, Field(max_length=200)] = ""
    """Token that clients on the port must give (`?tkn=`). Needed with `port`, at least 16 characters."""

    @model_validator(mode="after")
    def _check_token(self) -> "AhpSection":
        if self.port and len(self.token) < 16:
            raise ValueError("`port` needs a `token` of at least 16 characters")
        return self


OWN_AGENT = "handrail"
"""Name of our own agent. An `[[agents]]` entry with this name changes how the agent is started."""
OWN_COMMAND = (*own_python(), "-m", "handrail", "agent")
"""A `handrail` package in the project must not be imported instead."""
PROVIDER_VARIABLES = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "GOOGLE_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_GEMINI_BASE_URL",
    "OLLAMA_BASE_URL",
    "OLLAMA_API_KEY",
    "HANDRAIL_MODEL",
)
"""Environment variables that our own agent inherits: API keys, base URLs and the choice of model."""
PROVIDER_SECRETS = tuple(name for name in PROVIDER_VARIABLES if name.endswith(("_KEY", "_TOKEN")))
"""Those that a keyring stores; the others are base URLs and a model's name."""
KEYS_FOR_URL = {
    "ANTHROPIC_BASE_URL": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    "OPENAI_BASE_URL": ("OPENAI_API_KEY",),
    "GOOGLE_GEMINI_BASE_URL": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "OLLAMA_BASE_URL": ("OLLAMA_API_KEY",),
}
"""Base URL variable → the key variables sent to that URL. A URL is only sent keys from the source that set the URL:
a project that sets a base URL in the user's shell must not receive the keys in the user's keyring."""


class OwnAgentSection(Section):
    """`[agent]`: Handrail's own agent."""

    model: Annotated[str, Field(max_length=200)] = ""
    """Model, as `anthropic:NAME`, `openai:NAME`, `google:NAME` or `ollama:NAME`. Default: the best model that has a key."""
    thought_level: Literal["off", "low", "medium", "high"] | None = None
    """How much the model thinks before it answers. Default: the provider's choice."""
    max_steps: Annotated[int, Field(ge=1, le=10_000)] = 200
    """Steps that one prompt may take. Each step is one model request."""
    max_tokens: Annotated[int, Field(ge=0)] = 0
    """Tokens that one prompt may use, input and output together. 0: no limit."""
    max_seconds: Annotated[float, Field(ge=0)] = 0.0
    """Seconds that one prompt may take, time spent waiting for approvals included. 0: no limit."""
    compact_at: Annotated[float, Field(ge=0.1, le=1.0)] = 0.8
    """Share of the context window that may fill up before older messages are summarised."""
    context: Annotated[int, Field(ge=0)] = 0
    """Context window in tokens, for a model that Handrail does not know. 0: unknown."""


class AgentSection(Section):
    """One entry of `[[agents]]`."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
    """Name used by `handrail chat --agent NAME`. The name of a detected agent changes how that agent is started."""
    title: Annotated[str, Field(max_length=100)] = ""
    """Name shown to people. Default: `name`."""
    command: Annotated[
        tuple[Annotated[str, Field(max_length=4096)], ...], Field(min_length=1, max_length=100)
    ] = ()
    """Program and arguments that start the agent; it must speak ACP on stdio. Optional for the name of a known agent
    (`handrail agents`), from which everything that is not set is taken."""
    env: dict[Name, Annotated[str, Field(max_length=32_768)]] = {}
    """Environment variables set for the agent."""
    env_pass: tuple[Name, ...] = ()
    """Names of variables in the daemon's environment that the agent also gets, for example its API key."""
    one_per_thread: bool = False
    """Start a separate process for each thread, for an agent that cannot serve several."""
    missing_file_is_empty: bool = False
    """Answer the read of a missing file with empty text, for an agent that cannot create files otherwise."""
    writes_itself: bool = False
    """Ignore the agent's file writes, for an agent that writes the file itself and only reports it."""
    prompt_after_denial: bool = False
    """Send the reason of a denial as a prompt when the turn has ended. Default: with your next prompt. ACP's own answer
    has no field for it."""
    title_is_command: bool = False
    """Read the title of a permission request as the command line, for an agent that sends no tool input (Gemini CLI)."""
    input_in_content: bool = False
    """Read the text of an announced tool call as its input, for an agent that sends it as JSON text (Kimi Code)."""

    @model_validator(mode="before")
    @classmethod
    def _add_own_command(cls, entry: object) -> object:
        """Make `command` optional for our own agent."""
        fields = cast("dict[str, object]", entry) if isinstance(entry, dict) else {}
        is_own = fields.get("name") == OWN_AGENT
        return {"command": OWN_COMMAND, **fields} if is_own else cast("object", entry)


LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "::1")
HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$")]
_OWN_HEADERS = ("accept", "connection", "content-", "host", "last-event-id", "mcp-", "transfer-encoding")
"""Beginnings of the names of headers that the protocol sets."""
_SERVER_NAME = r"^[a-z0-9]+([_-][a-z0-9]+)*$"
SecretName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")]


class OAuthSection(Section):
    """`oauth` of a server: for an authorization server with which Handrail cannot register itself."""

    client_id: Annotated[str, Field(max_length=1000)] = ""
    """Client id of Handrail at the authorization server. Default: Handrail registers itself."""
    client_secret: Annotated[str, Field(pattern=r"^(\{secret:[A-Za-z_][A-Za-z0-9_]{0,99}\})?$")] = ""
    """Its secret, as a stored secret: `{secret:NAME}`."""
    scope: Annotated[str, Field(max_length=1000)] = ""
    """Scopes to ask for. Default: those that the server names."""
    redirect_port: Annotated[int, Field(ge=0, le=65_535)] = 0
    """Port of `http://127.0.0.1:PORT/callback`, to which the browser returns. Default: any free one."""


class McpServerSection(Section):
    """One entry of `[[servers]]`: an MCP server behind the gate. It has a `command` or a `url`."""

    name: Annotated[str, Field(pattern=_SERVER_NAME, max_length=20)]
    """Name of the server. Its tools are called `NAME__TOOL`, in at most 40 characters."""
    command: Annotated[tuple[Annotated[str, Field(max_length=4096)], ...], Field(max_length=100)] = ()
    """Program and arguments that start the server; it must speak MCP on stdio."""
    url: Annotated[str, Field(max_length=4096)] = ""
    """Address of a server that speaks MCP over streamable HTTP: `https://…`, or `http://…` on this machine."""
    headers: dict[HeaderName, Annotated[str, Field(max_length=32_768, pattern=r"^[\x20-\x7e]*$")]] = {}
    """Headers of each request to `url`. `{secret:NAME}` stands for a stored secret: `Authorization = "Bearer {secret:TOKEN}"`."""
    oauth: OAuthSection = OAuthSection()
    """The sign-in to `url`, if the server wants one and Handrail cannot register itself: see `[servers.oauth]`."""
    cwd: Annotated[str, Field(max_length=4096)] = ""
    """Folder in which it runs. Default: the workspace of the client, or your home folder."""
    env: dict[Name, Annotated[str, Field(max_length=32_768)]] = {}
    """Environment variables set for the server. `{secret:NAME}` stands for a stored secret."""
    secrets: Annotated[tuple[SecretName, ...], Field(max_length=100)] = ()
    """Names of stored secrets that the server gets as environment variables of the same names."""
    env_pass: tuple[Name, ...] = ()
    """Names of variables in the daemon's environment that the server also gets, for example its API key."""
    enabled: bool = True
    """If false, it is not started, and its tools are not offered."""
    review_results: bool = False
    """If true, the results of its tools wait in the inbox until a person has seen them, and the agent gets them after that."""
    sampling: bool = False
    """Let the server use the client's model (`sampling/createMessage`), if the client allows it."""
    start_seconds: Annotated[float, Field(ge=1, le=40)] = 20.0
    """Seconds that the server gets to start and to list its tools."""

    @model_validator(mode="before")
    @classmethod
    def _check_name(cls, entry: object) -> object:
        """Refuse a name in words for a person, and not with the expression."""
        name = cast("dict[str, object]", entry).get("name") if isinstance(entry, dict) else None
        if isinstance(name, str) and not (len(name) <= 20 and re.fullmatch(_SERVER_NAME, name)):
            raise ValueError(
                "the name of a server is up to 20 lower-case letters and digits, with single - or _ in between"
            )
        return cast("object", entry)

    @model_validator(mode="after")
    def _check_transport(self) -> "McpServerSection":
        if bool(self.command) == bool(self.url):
            raise ValueError("a server needs either `command` or `url`")
        if self.url:
            check_server_url(self.url)
        for name in self.headers:
            if name.lower().startswith(_OWN_HEADERS):
                raise ValueError(f"the header {name} is set by Handrail")
        only_here = ("cwd", "env", "env_pass", "secrets") if self.url else ("headers", "oauth")
        for name in only_here:
            if name in self.model_fields_set:
                raise ValueError(f"`{name}` is not for a server with {'`url`' if self.url else '`command`'}")
        return self


def check_server_url(url: str) -> None:
    """Raises ValueError for an address to which a secret must not be sent."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme not in ("http", "https") or not host or parts.username is not None or parts.fragment:
        raise ValueError(
            "`url` has to be an address such as https://mcp.example.org/mcp, without a user name"
        )
    if parts.scheme == "http" and host not in LOOPBACK_HOSTS:
        raise ValueError("`url` has to begin with https://, because the server is not on this machine")


Pattern = Annotated[str, Field(min_length=1, max_length=4000)]
Named = Annotated[str, Field(min_length=1, max_length=200)]


class RuleSection(Section):
    """One entry of `[[rules]]`. `gate/` checks its meaning."""

    effect: Literal["allow", "ask", "deny"]
    """Decision for matching claims."""
    tool: Named | None = None
    """Only calls of this tool."""
    pattern: Pattern | None = None
    """Command or path pattern, depending on what `tool` takes. Needs `tool`."""
    command: Pattern | None = None
    """Leading words of a command."""
    path: Pattern | None = None
    """Glob for file paths, relative to the workspace or absolute."""
    host: Pattern | None = None
    """Host name, or `*.example.org`."""
    server: Named | None = None
    """Only calls of this MCP server behind the gate, by its name in `[[servers]]`."""
    arguments: Annotated[
        dict[Named, Annotated[str, Field(max_length=4000)] | int | bool], Field(max_length=60)
    ] = {}
    """Only calls of an MCP server with these arguments: name and glob. `*` matches all but `/`, `**` anything."""
    agent: Named | None = None
    """Only calls of clients with this name; `*` is a wildcard."""
    match: Annotated[tuple[Pattern, ...], Field(max_length=50)] = ()
    """Examples that the rule must match, checked when the file is loaded."""
    not_match: Annotated[tuple[Pattern, ...], Field(max_length=50)] = ()
    """Examples that the rule must not match."""
    note: Annotated[str, Field(max_length=1000)] = ""
    """Reason. The agent sees it when the rule denies its call."""
    expires: datetime | date | None = None
    """Last day on which the rule applies, or the time at which it ends."""
    _line: int = PrivateAttr(default=0)

    @property
    def line(self) -> int:
        """Line number of the rule in its file."""
        return self._line

    def at(self, line: int) -> None:
        self._line = line


Rules = Annotated[tuple[RuleSection, ...], Field(max_length=2000)]


class ProjectConfig(Section):
    """Settings allowed in a project's `.handrail/config.toml`."""

    human_in_the_loop: bool | None = None
    """Allow low-risk calls without asking if false. Ignored if false until the folder is trusted."""
    allow_reading_commands: bool = True
    """If false, commands that only read ask here too. A project cannot switch on what you switched off."""
    default_policy: Literal["ask", "allow", "deny"] | None = None
    """Decision for claims that no rule matches. `allow` is ignored until the folder is trusted."""
    rules: Rules = ()
    """Rules for this project. `allow` rules are ignored until the folder is trusted."""


class Config(Section):
    """All settings of `config.toml`."""

    human_in_the_loop: bool = True
    """If off, low-risk calls are allowed without asking."""
    allow_reading_commands: bool = True
    """In trusted folders, allow commands that provably only read files of the workspace (`ls`, `git status` …)."""
    default_policy: Literal["ask", "allow", "deny"] = "ask"
    """Decision for claims that no rule matches. `allow` is auto-approve mode; high risk still asks."""
    server: ServerSection = ServerSection()
    daemon: DaemonSection = DaemonSection()
    terminal: TerminalSection = TerminalSection()
    command: CommandSection = CommandSection()
    approvals: ApprovalsSection = ApprovalsSection()
    undo: UndoSection = UndoSection()
    journal: JournalSection = JournalSection()
    notify: NotifySection = NotifySection()
    devices: DevicesSection = DevicesSection()
    ahp: AhpSection = AhpSection()
    agent: OwnAgentSection = OwnAgentSection()
    agents: Annotated[tuple[AgentSection, ...], Field(max_length=100)] = ()
    servers: Annotated[tuple[McpServerSection, ...], Field(max_length=100)] = ()
    rules: Rules = ()

    @model_validator(mode="after")
    def _check_names(self) -> "Config":
        for kind, entries in (("agents", self.agents), ("servers", self.servers)):
            if len(entries) > len({entry.name for entry in entries}):  # what is accepted is compared by name
                raise ValueError(f"two `{kind}` have the same name")
        return self


class BadConfig(Exception):
    """A configuration file is unreadable or invalid; the message names the file, the line and the fix."""


SectionT = TypeVar("SectionT", Config, ProjectConfig)


def load(path: Path) -> Config:
    """Load a configuration file; a missing file means defaults. Raises BadConfig."""
    return read(Config, path, read_text(path))


def load_project(path: Path, text: str) -> ProjectConfig:
    """Parse a project's configuration from the text of its file. Raises BadConfig."""
    return read(ProjectConfig, path, text)


def read(kind: type[SectionT], path: Path, text: str) -> SectionT:
    try:
        config = kind.model_validate(parse(path, text))
    except ValidationError as error:
        raise BadConfig(_describe_error(kind, path, text, error)) from None
    for index, rule in enumerate(config.rules):
        rule.at(find_line(text, ["rules", str(index)]))
    return config


def config_error(path: Path, line: int, problem: str) -> BadConfig:
    """Build the exception for a problem in one line of a file."""
    return BadConfig(
        f"{path}, line {line}: {problem.rstrip('.')}. "
        "Fix or remove that line; `handrail config` shows the settings in effect."
    )


def read_text(path: Path) -> str:
    try:
        return read_regular_file(path).decode()
    except FileNotFoundError:
        return ""
    except NotRegular as problem:
        raise BadConfig(f"{problem}. Make it a readable text file, or remove it.") from None
    except OSError as error:
        raise BadConfig(
            f"{path} cannot be read: {error.strerror}. Make it a readable text file, or remove it."
        ) from None
    except UnicodeDecodeError:
        raise BadConfig(f"{path} is not UTF-8. Save it as UTF-8, or remove it.") from None


def parse(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadConfig(f"{path} is not valid TOML: {error}. Fix or remove that line.") from None


def _describe_error(kind: type[BaseModel], path: Path, text: str, error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    location = [str(part) for part in first["loc"]]
    name = _setting_name(location)
    match first["type"]:
        case "extra_forbidden":
            problem = (
                f"there is no setting `{name}`{_in_project(kind)}. Known: {_known_names(kind, location)}"
            )
        case "missing":
            problem = f"`{name}` is missing"
        case "value_error":
            words = first["msg"].removeprefix("Value error, ")
            problem = f"`{name}`: {words}" if name else words
        case _:
            # Of all settings, and of an environment, some are secret.
            is_shown = name and not {"env", "headers"} & set(location[:-1])
            given = f"`{name}` is {first['input']!r}: " if is_shown else f"`{name}`: " if name else ""
            problem = f"{given}{first['msg'][:1].lower()}{first['msg'][1:]}"
    return str(config_error(path, find_line(text, location), problem))


def _setting_name(location: list[str]) -> str:
    """Join the parts of a location. Rules are numbered from 1 for people: the first is `rules[1]`."""
    if len(location) > 1 and location[0] == "rules" and location[1].isdecimal():
        return ".".join([f"rules[{int(location[1]) + 1}]", *location[2:]])
    return ".".join(location)


def _known_names(kind: type[BaseModel], location: list[str]) -> str:
    if location[0] == "rules":
        return ", ".join(RuleSection.model_fields)
    return ", ".join(flatten(kind().model_dump()))


def _in_project(kind: type[BaseModel]) -> str:
    return " in a project's file" if kind is ProjectConfig else ""
