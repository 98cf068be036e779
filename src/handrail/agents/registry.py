"""The agent registry: configured, installed, built-in and known agents, with the command that installs each.

Finds installed programs and their versions by reading files only; it never runs a program. A configured agent
replaces another agent of the same name.
"""

import json
import os
import re
import shlex
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import anyio
import anyio.to_thread
from pydantic import BaseModel, ConfigDict, Field

from handrail import __version__
from handrail.config import OWN_AGENT, OWN_COMMAND, PROVIDER_VARIABLES, AgentSection
from handrail.lazy_dataclass import dataclass
from handrail.paths import own_python

BESIDE_PATH = (".local/bin", ".npm-global/bin", ".bun/bin", ".volta/bin", ".opencode/bin", ".cargo/bin")
"""Folders under the home directory where installers put programs; a daemon started from the desktop lacks
them on PATH."""
COMMON = ("/usr/local/bin", "/opt/homebrew/bin")
"""System-wide folders of the same kind."""
MOST_RUNS = 200
"""Folders of the npx cache that are searched; the cache has one per package set that was ever run."""
FAR = 5
"""Parent folders searched above a program for its package metadata."""
LARGEST = 1_000_000
"""Bytes of a package.json that is read; a larger file is skipped."""


@dataclass(frozen=True, slots=True)
class InstalledProgram:
    """The command of an installed program, and its version if known."""

    command: tuple[str, ...]
    version: str | None


class ProgramFinder:
    """Finds installed programs, given an environment."""

    def __init__(self, environment: Mapping[str, str], common: Sequence[str] = COMMON) -> None:
        self._home = Path(environment.get("HOME") or "/nonexistent")
        beside = [*(str(self._home / folder) for folder in BESIDE_PATH), *common]
        self._own_path = environment.get("PATH") or os.defpath
        self._path = os.pathsep.join([self._own_path, *beside])

    def program(
        self, name: str, package: str | None = None, *, beside: bool = True
    ) -> InstalledProgram | None:
        """Find a program by name or path; with `beside`, also in the installers' folders that are not on
        PATH."""
        path = shutil.which(name, path=self._path if beside else self._own_path)
        return None if path is None else InstalledProgram((path,), version_of(Path(path), package))

    def npm_package(self, package: str, name: str) -> InstalledProgram | None:
        """Find a program of an npm package that is not on PATH: installed globally, or in the npx cache."""
        node = shutil.which("node", path=self._path)
        if node is None:
            return None
        for folder in self._module_folders(Path(node)):
            about = _read_metadata(folder / package / "package.json")
            if about is not None and (entry := _script_of(about, name)) is not None:
                return InstalledProgram((node, str(folder / package / entry)), _text(about.get("version")))
        return None

    def python_package(self, package: str, name: str) -> InstalledProgram | None:
        """Find a program of a Python package installed by uv or pipx."""
        share = self._home / ".local"
        for tools in ("share/uv/tools", "share/pipx/venvs", "pipx/venvs"):
            program = share / tools / package.partition("[")[0] / "bin" / name
            if os.access(program, os.X_OK):
                return InstalledProgram((str(program),), version_of(program, package))
        return None

    def _module_folders(self, node: Path) -> Iterator[Path]:
        """Folders of npm packages: the global ones, then the npx cache, newest first."""
        prefixes = (node.resolve().parent.parent, self._home / ".npm-global")
        yield from (prefix / "lib" / "node_modules" for prefix in prefixes)
        try:
            kept = sorted(os.scandir(self._home / ".npm" / "_npx"), key=_modified_at, reverse=True)
        except OSError:
            return
        yield from (Path(each.path) / "node_modules" for each in kept[:MOST_RUNS])


def version_of(program: Path, package: str | None) -> str | None:
    """The version in the metadata of the package that contains a program."""
    real = program.resolve()
    for folder in list(real.parents)[:FAR]:
        about = _read_metadata(folder / "package.json")
        if about is not None and package in (None, about.get("name")):
            return _text(about.get("version"))
        if version := _python_version(folder, package, program.name):
            return version
    return None


def _python_version(environment: Path, package: str | None, program: str) -> str | None:
    """The version of a package in a Python environment, from its dist-info folder. Without the name of the
    package, that of the installer of the program."""
    normalized = re.sub(r"[-_.]+", "_", (package or "").partition("[")[0]).lower()
    for described in environment.glob("lib/python3*/site-packages/*.dist-info"):
        name, _, version = described.name.removesuffix(".dist-info").rpartition("-")
        is_named = re.sub(r"[-_.]+", "_", name).lower() == normalized
        if is_named or (package is None and _installs_program(described, program)):
            return version
    return None


def _installs_program(described: Path, program: str) -> bool:
    try:
        scripts = (described / "entry_points.txt").read_text(errors="replace")
    except OSError:
        return False
    return re.search(rf"^{re.escape(program)}\s*=", scripts, re.MULTILINE) is not None


def _read_metadata(path: Path) -> dict[str, Any] | None:
    try:
        if path.stat().st_size > LARGEST:
            return None
        metadata = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return cast("dict[str, Any]", metadata) if isinstance(metadata, dict) else None


def _script_of(about: dict[str, Any], name: str) -> str | None:
    """The script behind one of the package's programs."""
    programs = about.get("bin")
    entry = cast("dict[str, Any]", programs).get(name) if isinstance(programs, dict) else programs
    return _text(entry)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _modified_at(entry: os.DirEntry[str]) -> float:
    return entry.stat().st_mtime


Manager = Literal["npm", "uv"]


class ListModel(BaseModel):
    """Base of the models for known_agents.json; unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class Package(ListModel):
    """A package that npx or uvx can run."""

    package: str
    args: tuple[str, ...] = ()


class Binary(ListModel):
    """A binary that is downloaded."""

    cmd: str
    args: tuple[str, ...] = ()


class Distribution(ListModel):
    npx: Package | None = None
    uvx: Package | None = None
    binary: Annotated[dict[str, Binary], Field(default_factory=dict)]


class HandrailFields(ListModel):
    """Our own fields, in addition to the public registry's format."""

    program: str
    """The program's name on PATH."""
    adapts: str | None = None
    """The program that this agent is an adapter for; the adapter is useless without it."""
    install: str | None = None
    """The install command, if it is in no package manager that we know."""
    missing_file_is_empty: bool = False
    writes_itself: bool = False
    one_per_thread: bool = False
    title_is_command: bool = False
    input_in_content: bool = False


class KnownAgent(ListModel):
    """One agent of known_agents.json."""

    id: str
    name: str
    version: str
    description: str
    distribution: Distribution
    handrail: HandrailFields

    @property
    def manager(self) -> Manager | None:
        way = self.distribution
        return "npm" if way.npx else "uv" if way.uvx else None

    @property
    def package(self) -> str | None:
        way = self.distribution.npx or self.distribution.uvx
        return way.package if way else None

    @property
    def args(self) -> tuple[str, ...]:
        way = self.distribution
        ways = (way.npx, way.uvx, *way.binary.values())
        return next(each.args for each in ways if each is not None)

    @property
    def install(self) -> str | None:
        """The command that installs it."""
        match self.manager:
            case "npm":
                return f"npm install --global {self.package}"
            case "uv":
                return f"uv tool install {shlex.quote(self.package or '')}"
            case None:
                return self.handrail.install


class KnownAgentList(ListModel):
    version: str
    agents: tuple[KnownAgent, ...]


@cache
def known_agents() -> tuple[KnownAgent, ...]:
    """The known agents, in the order of the file."""
    text = files("handrail.agents").joinpath("known_agents.json").read_text(encoding="utf-8")
    return KnownAgentList.model_validate_json(text).agents


FRESH_SECONDS = 5.0
"""Seconds that a lookup is cached; short, so that a newly installed agent shows up."""
LOOK_SECONDS = 5.0
"""Bounds the lookup of all agents: an unreachable network folder must not block the list."""

# -P: a module in the agent's working directory must not shadow ours.
DEMO = AgentSection(name="demo", title="Demo agent", command=(*own_python(), "-m", "handrail.demo.acp_agent"))

Source = Literal["config", "known", "built in"]
NO_COMMAND = "Its `[[agents]]` entry has no `command`, and Handrail knows no agent of this name."


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedAgent:
    """An agent in the listing: its command, or the part that is missing."""

    name: str
    title: str
    found: bool
    version: str | None
    command: tuple[str, ...]
    source: Source
    why: str = ""
    """The missing part, as a sentence; empty if nothing is missing. Our own agent is listed as found without
    a key."""
    install: str | None = None
    """The command that installs it."""
    manager: Manager | None = None
    """The package manager of a known agent, and its `package` there."""
    package: str | None = None


class Registry:
    """All agents by name. A configured agent replaces another agent of the same name; what it does not say is
    taken from a known agent of that name."""

    def __init__(
        self,
        named: Sequence[AgentSection],
        environment: Mapping[str, str],
        common: Sequence[str] = COMMON,
        *,
        own: AgentSection | None = None,
        keyed: bool = False,
    ) -> None:
        """`environment` is the environment of agent programs; its PATH and HOME decide where to search. `own`
        is the section of our own agent; `keyed` means that it has a provider key."""
        self._named = {section.name: section for section in named if not is_own(section)}
        self._own = own or build_own_section(named, {})
        self.keyed = keyed
        """The environment of our own agent has a key, or the address of a model server."""
        self._known = {known.id: known for known in known_agents()}
        self._machine = ProgramFinder(environment, common)
        self._found_at: dict[str, tuple[float, InstalledProgram | None]] = {}
        self._make_listing: tuple[float, list[ListedAgent]] | None = None

    def spec(self, name: str) -> AgentSection | None:
        """The section of an agent; None if it is unknown. An agent that is not installed fails when it is
        started."""
        if name in self._named:
            return self._complete(self._named[name])
        if name in self._known:
            return self._spec(self._known[name])
        return {self._own.name: self._own, DEMO.name: DEMO}.get(name)

    async def listing(self) -> list[ListedAgent]:
        """All agents: configured, our own, installed, the demo, then those that can be installed."""
        if self._make_listing is None or time.monotonic() - self._make_listing[0] > FRESH_SECONDS:
            with anyio.move_on_after(LOOK_SECONDS):
                agents = await anyio.to_thread.run_sync(self._list_agents, abandon_on_cancel=True)
                self._make_listing = time.monotonic(), agents
        return list(self._make_listing[1]) if self._make_listing else self._list_without_search()

    def _list_agents(self) -> list[ListedAgent]:
        configured = [self._list_configured(section) for section in self._named.values()]
        known = [self._list_known(known) for known in self._known.values() if known.id not in self._named]
        there, missing = [one for one in known if one.found], [one for one in known if not one.found]
        return [*configured, *self._list_own(), *there, *self._list_demo(), *missing]

    def _list_without_search(self) -> list[ListedAgent]:
        """The listing if the lookup timed out."""
        why = "Looking for it took too long."
        configured = [_make_listing(section, "config", None, why) for section in self._named.values()]
        return [*configured, *self._list_own(), *self._list_demo()]

    def _complete(self, section: AgentSection) -> AgentSection:
        """The section, completed from the known agent of that name."""
        if section.name not in self._known:
            return section
        changes = {name: getattr(section, name) for name in section.model_fields_set}
        return self._spec(self._known[section.name]).model_copy(update=changes)

    def _list_configured(self, configured: AgentSection) -> ListedAgent:
        known, section = self._known.get(configured.name), self._complete(configured)
        if known is not None and not configured.command:
            return replace(
                self._list_known(known), title=section.title, command=section.command, source="config"
            )
        if not section.command:
            return _make_listing(section, "config", None, NO_COMMAND)
        program = section.command[0]
        located = self._machine.program(program, beside=False)  # on PATH only, as the pool starts it
        why = "" if located else f"There is no program {program}, which the configuration names."
        return _make_listing(section, "config", located, why, known=known)

    def _list_known(self, known: KnownAgent) -> ListedAgent:
        located = self._locate(known)
        why = "" if located else self._describe_missing(known)
        return _make_listing(self._spec(known), "known", located, why, known=known)

    def _list_own(self) -> list[ListedAgent]:
        if self._own.name in self._named:
            return []
        located = InstalledProgram(self._own.command, __version__)
        return [_make_listing(self._own, "built in", located, "" if self.keyed else NO_KEY)]

    def _list_demo(self) -> list[ListedAgent]:
        if DEMO.name in self._named:
            return []
        return [_make_listing(DEMO, "built in", InstalledProgram(DEMO.command, None), "")]

    def _describe_missing(self, known: KnownAgent) -> str:
        why = f"{known.handrail.program} is not installed."
        if known.handrail.adapts and self._machine.program(known.handrail.adapts):
            why = f"{known.name} is installed, but not {known.handrail.program}, its adapter."
        if known.manager and self._machine.program(known.manager) is None:
            why += f" Nor is {known.manager}, which would install it."
        return why

    def _spec(self, known: KnownAgent) -> AgentSection:
        located = self._locate(known)
        command = located.command if located else (known.handrail.program,)
        return AgentSection(
            name=known.id,
            title=known.name,
            command=(*command, *known.args),
            one_per_thread=known.handrail.one_per_thread,
            missing_file_is_empty=known.handrail.missing_file_is_empty,
            writes_itself=known.handrail.writes_itself,
            title_is_command=known.handrail.title_is_command,
            input_in_content=known.handrail.input_in_content,
        )

    def _locate(self, known: KnownAgent) -> InstalledProgram | None:
        """Find a known agent; cached for FRESH_SECONDS."""
        at, located = self._found_at.get(known.id, (-FRESH_SECONDS, None))
        if time.monotonic() - at > FRESH_SECONDS:
            located = _find_known(self._machine, known)
            self._found_at[known.id] = time.monotonic(), located
        return located


def _find_known(machine: ProgramFinder, known: KnownAgent) -> InstalledProgram | None:
    program, package = known.handrail.program, known.package
    located = machine.program(program, package)
    if located is None and package is not None:
        off_path = machine.npm_package if known.manager == "npm" else machine.python_package
        located = off_path(package, program)
    return located


def _make_listing(
    section: AgentSection,
    source: Source,
    located: InstalledProgram | None,
    why: str,
    known: KnownAgent | None = None,
) -> ListedAgent:
    return ListedAgent(
        name=section.name,
        title=section.title or section.name,
        found=located is not None,
        version=located.version if located else None,
        command=section.command,
        source=source,
        why=why,
        install=None if located or known is None else known.install,
        manager=None if known is None else known.manager,
        package=None if known is None else known.package,
    )


PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
PASSED = (
    *PROVIDER_VARIABLES,
    *("DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR"),  # the way to the system's keyring
    *("SSL_CERT_FILE", "SSL_CERT_DIR"),
    *PROXIES,
    *map(str.lower, PROXIES),
)
"""Environment variables that our agent needs to reach a model. Commands do not get them."""
NO_KEY = (
    "Handrail's own environment has no key for a model. `handrail keys set anthropic` puts one into your keyring; "
    "`handrail chat` brings along those of your shell."
)


def build_own_section(named: Sequence[AgentSection], places: Mapping[str, str]) -> AgentSection:
    """The section of our own agent, with the changes from the configuration. `places` are the variables that
    name this Handrail's files."""
    own = AgentSection(
        name=OWN_AGENT,
        title="Handrail",
        command=OWN_COMMAND,
        env=dict(places),
        env_pass=PASSED,
        one_per_thread=True,
    )
    for section in named:
        if is_own(section):
            changes = {name: getattr(section, name) for name in section.model_fields_set}
            own = own.model_copy(update={**changes, "env": {**own.env, **section.env}})
    return own


def is_own(section: AgentSection) -> bool:
    """Whether a section changes our own agent; another command under that name replaces it instead."""
    return section.name == OWN_AGENT and section.command == OWN_COMMAND


def has_provider_key(variables: Mapping[str, str]) -> bool:
    """Whether these variables reach some model; a base URL is enough, because a local server may need no key."""
    return any(variables.get(name) for name in PROVIDER_VARIABLES if name != "HANDRAIL_MODEL")
