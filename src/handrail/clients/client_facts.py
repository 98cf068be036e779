"""Facts about a client: its programs, its files, the text written there, and its off switches.

Each client has a subclass of `Client` in its own module, beside the dialect of its hooks; `known_clients` lists them. Facts
were read from the version in `tried`.
"""

import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar, Literal

from handrail.clients.config_edit import ABSENT, BadFile, Format, Pointer, get_value
from handrail.clients.config_file import FileProblem, read_text
from handrail.clients.launcher_path import Launcher
from handrail.clients.pieces import ConfigPiece
from handrail.lazy_dataclass import dataclass

Scope = Literal["user", "project"]
SERVER = "handrail"
"""The name of our MCP server in every client."""
LONG_SECONDS = 86_400
"""Time limit that is written for hooks that wait for a person: clients run the tool when it ends."""
SHORT_SECONDS = 30
"""Time limit of hooks that only report."""
STATUS = "Waiting in Handrail"


@dataclass(frozen=True, slots=True)
class Machine:
    """The user's home, environment and current project, which decide where files are."""

    home: Path
    environ: Mapping[str, str]
    project: Path
    root: Path = Path("/")
    """Where /etc is."""

    @classmethod
    def of(cls, environ: Mapping[str, str], project: Path) -> "Machine":
        return cls(Path(environ.get("HOME") or Path.home()).absolute(), environ, project)

    def folder(self, variable: str, default: str) -> Path:
        """A folder below the home, unless a variable names another."""
        named = self.environ.get(variable, "") if variable else ""
        return Path(named).expanduser().absolute() if named else self.home / default

    @property
    def config(self) -> Path:
        """The user's folder of settings, as the XDG Base Directory Specification has it."""
        named = Path(self.environ.get("XDG_CONFIG_HOME", ""))
        return named if named.is_absolute() else self.home / ".config"

    def program(self, *names: str) -> str | None:
        path = self.environ.get("PATH", os.defpath)
        return next((found for name in names if (found := shutil.which(name, path=path))), None)


@dataclass(frozen=True, slots=True)
class HostedAgent:
    """An ACP agent that Handrail can start."""

    title: str
    command: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The requested connection: which parts, where, and by which launcher."""

    machine: Machine
    launcher: Launcher
    version: str = ""
    """The client's version; empty if it is unknown."""
    program: str | None = None
    scope: Scope = "user"
    has_mcp: bool = True
    has_hooks: bool = True
    is_locked: bool = False
    is_single_question: bool = False
    """Write the file that keeps the client from asking after an allow of the hook."""

    hook_timeout: int = 0
    """Seconds after which the client ends a hook that waits for a person; 0 for the longest that it takes."""
    agents: tuple[HostedAgent, ...] = ()
    """Installed agents but our own, for a client that starts ACP agents."""

    @property
    def project(self) -> Path:
        return self.machine.project

    def hook(self, client: str, *, waits: bool = True) -> tuple[str, ...]:
        """The arguments of the launcher for a hook. One that waits for a person must know a time limit that is not ours."""
        limit = ("--timeout", str(self.hook_timeout)) if self.hook_timeout and waits else ()
        return ("hook", client, *limit)

    def server(self) -> dict[str, Any]:
        """The entry of our MCP server as most clients have it."""
        return {"command": self.launcher.path, "args": ["mcp"], **self.environment("env")}

    def environment(self, key: str) -> dict[str, Any]:
        return {key: self.launcher.environment} if self.launcher.environment else {}


class Client:
    """What all clients have in common. A subclass has the facts."""

    name: ClassVar[str]
    title: ClassVar[str]
    programs: ClassVar[tuple[str, ...]] = ()
    tried: ClassVar[str] = ""
    """The version that the facts were read from; empty: from its documentation only."""
    needs: ClassVar[str] = ""
    """The oldest version that has these hooks, if it is known."""
    has_hooks: ClassVar[bool] = True
    has_project_scope: ClassVar[bool] = True
    starts_agents: ClassVar[bool] = False
    """Whether it starts ACP agents, and so gets those that Handrail knows."""
    has_single_question: ClassVar[bool] = False
    """Whether a file of ours can keep it from asking after an allow of the hook."""
    promises: ClassVar[str]
    """A sentence: what happens if the hook cannot answer."""
    home: ClassVar[tuple[str, str]]
    """The variable that names its folder, if there is one, and the folder below the user's home."""

    def folder(self, machine: Machine) -> Path:
        """The folder of the user's configuration; its presence shows that a client without a program is installed."""
        return machine.folder(*self.home)

    def settings_folder(self, setup: Setup, in_project: str) -> Path:
        """The folder of settings in the scope that is asked for."""
        return setup.project / in_project if setup.scope == "project" else self.folder(setup.machine)

    def program(self, machine: Machine) -> str | None:
        return machine.program(*self.programs)

    def is_found(self, machine: Machine) -> bool:
        return self.program(machine) is not None

    def describe_promise(self, version: str) -> str:
        """`promises` of this version, which may be unknown."""
        return self.promises

    def mcp_pieces(self, setup: Setup) -> list[ConfigPiece]:
        raise NotImplementedError

    def mcp_lists(self, setup: Setup) -> list[tuple[Path, Format, Pointer]]:
        """Where the client keeps its MCP servers: files, and the mapping in each that has them by name."""
        pieces = [piece for piece in self.mcp_pieces(setup) if piece.pointer[-1:] == (SERVER,)]
        return [(each.path, each.format, each.pointer[:-1]) for each in pieces if each.format != "yaml"]

    def removal_command(self, setup: Setup, server: str) -> tuple[str, ...]:
        """The client's own command that removes an MCP server, where the client rewrites the file itself."""
        return ()

    def hook_pieces(self, setup: Setup) -> list[ConfigPiece]:
        return []

    def derived_pieces(self, setup: Setup, texts: Mapping[Path, str]) -> list[ConfigPiece]:
        """Pieces that depend on the files as they will be."""
        return []

    def ignored_files(self, setup: Setup) -> list[str]:
        """Files of ours that the client does not read as they are, as sentences."""
        return []

    def overrides(self, setup: Setup) -> list[str]:
        """What switches our hooks off, as sentences."""
        return []

    def warnings(self, setup: Setup) -> list[str]:
        """What the setup makes less safe than the client was without it, as sentences."""
        return []

    def steps(self, setup: Setup) -> list[str]:
        """What the person does after the files are written, as sentences."""
        return []

    def pieces(self, setup: Setup) -> list[ConfigPiece]:
        mcp = self.mcp_pieces(setup) if setup.has_mcp else []
        return [*mcp, *(self.hook_pieces(setup) if setup.has_hooks else [])]


class Editor(Client):
    """An editor is found by its configuration, too: its program is often not on PATH."""

    def is_found(self, machine: Machine) -> bool:
        return self.program(machine) is not None or self.folder(machine).is_dir()


@dataclass(frozen=True, slots=True)
class HookLine:
    """An event of a client that our hook is registered for."""

    event: str
    is_gate: bool = False
    """The client waits for a decision, and runs the tool if there is none."""
    is_question: bool = False
    """The client waits for a decision, and asks its user if there is none."""
    has_matcher: bool = False
    seconds: int = SHORT_SECONDS
    """The time limit, unless the client waits for a person."""
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def waits(self) -> bool:
        """Whether it waits for a person."""
        return self.is_gate or self.is_question

    def limit(self, setup: Setup, longest: int = LONG_SECONDS) -> int:
        """The time limit to write, in seconds; `longest` is what the client takes."""
        return min(setup.hook_timeout or longest, longest) if self.waits else self.seconds

    def group(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        """An entry as most clients have it: in a list, behind a matcher."""
        return {**({"matcher": "*"} if self.has_matcher else {}), "hooks": [entry]}


SESSION_LINES = (
    HookLine("UserPromptSubmit"),
    HookLine("SessionStart"),
    HookLine("SessionEnd", seconds=10),
    HookLine("Stop"),
)
"""What Claude Code, and those that took its names, report about a session."""


def member(path: Path, pointer: Pointer, value: Any, format: Format = "json", **more: Any) -> ConfigPiece:
    return ConfigPiece(path=path, kind="member", format=format, pointer=pointer, value=value, **more)


def item(path: Path, pointer: Pointer, value: Any, format: Format = "json") -> ConfigPiece:
    return ConfigPiece(path=path, kind="item", format=format, pointer=pointer, value=value)


def own_file(path: Path, text: str, mode: int = 0o600) -> ConfigPiece:
    return ConfigPiece(path=path, kind="file", format="text", value=text, mode=mode)


def hook_line(setup: Setup, client: str, line: HookLine) -> str:
    """The shell line for an event: closed if a tool would run without an answer, open if nothing waits for one.

    Between them are events for which the client asks its user if there is no answer.
    """
    launcher = setup.launcher
    plain = launcher.line if line.is_question else launcher.open_line
    return (launcher.closed_line if line.is_gate else plain)(*setup.hook(client, waits=line.waits))


def read_value(path: Path, pointer: Pointer, format: Format = "json") -> Any:
    """A value of a settings file, or ABSENT if it is missing or the file cannot be read."""
    try:
        return get_value(format, read_text(path), pointer)
    except (BadFile, FileProblem):
        return ABSENT


def find_json_fault(path: Path) -> str:
    """Where a file is not plain JSON, as at a comment or a trailing comma; empty if it is, or does not exist."""
    try:
        text = read_text(path).removeprefix("\ufeff")
        json.loads(text or "{}")
    except FileProblem:
        return ""
    except json.JSONDecodeError as problem:
        return f"line {problem.lineno}, column {problem.colno}"
    return ""


def hooks_off(*files: Path) -> list[Path]:
    """Those of these JSON files that have `disableAllHooks`."""
    return [file for file in dict.fromkeys(files) if read_value(file, ("disableAllHooks",)) is True]


def version_key(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)[:3]]


def is_older(version: str, than: str) -> bool:
    """Whether a known version is older. An unknown one is not."""
    return bool(version) and version_key(version) < version_key(than)
