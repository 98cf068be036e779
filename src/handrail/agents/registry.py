"""Which agents there are: configured, found installed, built in, and how to install the rest.

Which agents there are: those of the configuration, our own, those that we know and find installed, and the
demo.

Our own agent among all others: how it is started, what of the daemon's environment it gets, and what it
lacks.

Where a program is installed, and in which version, as far as looking at files tells.
"""

import json
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import anyio
import anyio.to_thread
from pydantic import BaseModel, ConfigDict, Field

from handrail import __version__
from handrail.config import OWN_AGENT, OWN_COMMAND, PROVIDER_VARIABLES, AgentSection

BESIDE_PATH = (".local/bin", ".npm-global/bin", ".bun/bin", ".volta/bin", ".opencode/bin", ".cargo/bin")
"""Under the home: where installers put programs, which a daemon that a desktop started has not on its PATH."""
COMMON = ("/usr/local/bin", "/opt/homebrew/bin")
"""The same, for everybody."""
MOST_RUNS = 200
"""Of npx's kept packages that are looked at; there is one folder for each set that was ever run."""
FAR = 5
"""How far above a program the description of its package lies, at most."""
LARGEST = 1_000_000
"""Of a package's description that is read."""


@dataclass(frozen=True, slots=True)
class Located:
    """A program that is there."""

    command: tuple[str, ...]
    version: str | None


class Machine:
    """What is installed for whoever has this environment."""

    def __init__(self, environment: Mapping[str, str], common: Sequence[str] = COMMON) -> None:
        self._home = Path(environment.get("HOME") or "/nonexistent")
        beside = [*(str(self._home / folder) for folder in BESIDE_PATH), *common]
        self._own_path = environment.get("PATH") or os.defpath
        self._path = os.pathsep.join([self._own_path, *beside])

    def program(self, name: str, package: str | None = None, *, beside: bool = True) -> Located | None:
        """A program by its name, or by its path; by name on the PATH alone unless `beside`."""
        found = shutil.which(name, path=self._path if beside else self._own_path)
        return None if found is None else Located((found,), version_of(Path(found), package))

    def npm_package(self, package: str, name: str) -> Located | None:
        """A program of a package that npm has put somewhere off the PATH, or npx has kept."""
        node = shutil.which("node", path=self._path)
        if node is None:
            return None
        for folder in self._modules(Path(node)):
            about = _description(folder / package / "package.json")
            if about is not None and (entry := _entry(about, name)) is not None:
                return Located((node, str(folder / package / entry)), _text(about.get("version")))
        return None

    def python_package(self, package: str, name: str) -> Located | None:
        """A program of a package that uv or pipx keeps."""
        share = self._home / ".local"
        for tools in ("share/uv/tools", "share/pipx/venvs", "pipx/venvs"):
            program = share / tools / package / "bin" / name
            if os.access(program, os.X_OK):
                return Located((str(program),), version_of(program, package))
        return None

    def _modules(self, node: Path) -> Iterator[Path]:
        """Folders of packages: the global ones, then what npx has kept, newest first."""
        prefixes = (node.resolve().parent.parent, self._home / ".npm-global")
        yield from (prefix / "lib" / "node_modules" for prefix in prefixes)
        try:
            kept = sorted(os.scandir(self._home / ".npm" / "_npx"), key=_age, reverse=True)
        except OSError:
            return
        yield from (Path(each.path) / "node_modules" for each in kept[:MOST_RUNS])


def version_of(program: Path, package: str | None) -> str | None:
    """What the package around a program says of its version."""
    real = program.resolve()
    for folder in list(real.parents)[:FAR]:
        about = _description(folder / "package.json")
        if about is not None and package in (None, about.get("name")):
            return _text(about.get("version"))
        if package is not None and (found := _python_version(folder, package)):
            return found
    return None


def _python_version(environment: Path, package: str) -> str | None:
    """Of a package in a Python environment: its name is in that of the folder which describes it."""
    wanted = re.sub(r"[-_.]+", "_", package).lower()
    for described in environment.glob("lib/python3*/site-packages/*.dist-info"):
        name, _, version = described.name.removesuffix(".dist-info").rpartition("-")
        if re.sub(r"[-_.]+", "_", name).lower() == wanted:
            return version
    return None


def _description(path: Path) -> dict[str, Any] | None:
    try:
        if path.stat().st_size > LARGEST:
            return None
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def _entry(about: dict[str, Any], name: str) -> str | None:
    """The file behind one of the package's programs."""
    programs = about.get("bin")
    entry = cast("dict[str, Any]", programs).get(name) if isinstance(programs, dict) else programs
    return _text(entry)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _age(entry: os.DirEntry[str]) -> float:
    return entry.stat().st_mtime


Manager = Literal["npm", "uv"]


class Part(BaseModel):
    """A piece of the list; whatever else the form holds is left alone."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class Package(Part):
    """One that npx or uvx would run."""

    package: str
    args: tuple[str, ...] = ()


class Binary(Part):
    """One that is downloaded."""

    cmd: str
    args: tuple[str, ...] = ()


class Distribution(Part):
    npx: Package | None = None
    uvx: Package | None = None
    binary: Annotated[dict[str, Binary], Field(default_factory=dict)]


class Own(Part):
    """What we add."""

    program: str
    """What the package is called by on the PATH."""
    adapts: str | None = None
    """The program that it is the adapter for, which is no help without it."""
    install: str | None = None
    """Where no package manager that we know has it."""
    missing_file_is_empty: bool = False
    writes_itself: bool = False
    one_per_thread: bool = False


class Known(Part):
    """An agent of the list."""

    id: str
    name: str
    version: str
    description: str
    distribution: Distribution
    handrail: Own

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
                return f"uv tool install {self.package}"
            case None:
                return self.handrail.install


class Listed(Part):
    version: str
    agents: tuple[Known, ...]


@cache
def known_agents() -> tuple[Known, ...]:
    """All of them, in the list's order."""
    text = files("handrail.agents").joinpath("known_agents.json").read_text(encoding="utf-8")
    return Listed.model_validate_json(text).agents


FRESH_SECONDS = 5.0
"""For so long what was found is believed: who has just installed an agent wants to see it."""
LOOK_SECONDS = 5.0
"""For looking at everything: a folder on a network that is gone must not hold up the rest."""

# -P: what an agent works on must not be taken for us.
DEMO = AgentSection(
    name="demo", title="Demo agent", command=(sys.executable, "-P", "-m", "handrail.demo.acp_agent")
)

Source = Literal["config", "known", "built in"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An agent: how it is started, or what is missing."""

    name: str
    title: str
    found: bool
    version: str | None
    command: tuple[str, ...]
    source: Source
    why: str = ""
    """What is missing; empty when nothing is. Our own agent is there even so."""
    install: str | None = None
    """The command that installs it."""


class Registry:
    """Every agent by its name. One of the configuration takes the place of another of its name."""

    def __init__(
        self,
        named: Sequence[AgentSection],
        environment: Mapping[str, str],
        common: Sequence[str] = COMMON,
        *,
        own: AgentSection | None = None,
        keyed: bool = False,
    ) -> None:
        """`environment` is what agents find around them; where they are looked for follows from it. `own` is how our own
        agent is started, and `keyed` that it then finds a key."""
        self._named = {section.name: section for section in named if not is_own(section)}
        self._own = own or own_agent(named, {})
        self._keyed = keyed
        self._known = {known.id: known for known in known_agents() if known.id not in self._named}
        self._machine = Machine(environment, common)
        self._looked: dict[str, tuple[float, Located | None]] = {}
        self._listed: tuple[float, list[Found]] | None = None

    def spec(self, name: str) -> AgentSection | None:
        """How an agent is started; None for one that nobody knows. One that is not installed fails when it is started."""
        if name in self._named:
            return self._named[name]
        if name in self._known:
            return self._spec(self._known[name])
        return {self._own.name: self._own, DEMO.name: DEMO}.get(name)

    async def listing(self) -> list[Found]:
        """All of them: the configured ones first, ours, those that are installed, the demo, and what could be installed."""
        if self._listed is None or time.monotonic() - self._listed[0] > FRESH_SECONDS:
            with anyio.move_on_after(LOOK_SECONDS):
                found = await anyio.to_thread.run_sync(self._look, abandon_on_cancel=True)
                self._listed = time.monotonic(), found
        return list(self._listed[1]) if self._listed else self._unlooked()

    def _look(self) -> list[Found]:
        configured = [self._configured(section) for section in self._named.values()]
        known = [self._of_known(known) for known in self._known.values()]
        there, missing = [one for one in known if one.found], [one for one in known if not one.found]
        return [*configured, *self._ours(), *there, *self._demo(), *missing]

    def _unlooked(self) -> list[Found]:
        """What can be said when looking took too long."""
        why = "Looking for it took too long."
        configured = [_listed(section, "config", None, why) for section in self._named.values()]
        return [*configured, *self._ours(), *self._demo()]

    def _configured(self, section: AgentSection) -> Found:
        program = section.command[0]
        located = self._machine.program(program, beside=False)  # as it will be started
        why = "" if located else f"There is no program {program}, which the configuration names."
        return _listed(section, "config", located, why)

    def _of_known(self, known: Known) -> Found:
        located = self._locate(known)
        why = "" if located else self._missing(known)
        return _listed(self._spec(known), "known", located, why, known.install)

    def _ours(self) -> list[Found]:
        if self._own.name in self._named:
            return []
        located = Located(self._own.command, __version__)
        return [_listed(self._own, "built in", located, "" if self._keyed else NO_KEY)]

    def _demo(self) -> list[Found]:
        if DEMO.name in self._named:
            return []
        return [_listed(DEMO, "built in", Located(DEMO.command, None), "")]

    def _missing(self, known: Known) -> str:
        why = f"{known.handrail.program} is not installed."
        if known.handrail.adapts and self._machine.program(known.handrail.adapts):
            why = f"{known.name} is installed, but not {known.handrail.program}, its adapter."
        if known.manager and self._machine.program(known.manager) is None:
            why += f" Nor is {known.manager}, which would install it."
        return why

    def _spec(self, known: Known) -> AgentSection:
        located = self._locate(known)
        command = located.command if located else (known.handrail.program,)
        return AgentSection(
            name=known.id,
            title=known.name,
            command=(*command, *known.args),
            one_per_thread=known.handrail.one_per_thread,
            missing_file_is_empty=known.handrail.missing_file_is_empty,
            writes_itself=known.handrail.writes_itself,
        )

    def _locate(self, known: Known) -> Located | None:
        """A few looks at the disk, no more often than every few seconds."""
        at, located = self._looked.get(known.id, (-FRESH_SECONDS, None))
        if time.monotonic() - at > FRESH_SECONDS:
            located = _located(self._machine, known)
            self._looked[known.id] = time.monotonic(), located
        return located


def _located(machine: Machine, known: Known) -> Located | None:
    program, package = known.handrail.program, known.package
    located = machine.program(program, package)
    if located is None and package is not None:
        off_path = machine.npm_package if known.manager == "npm" else machine.python_package
        located = off_path(package, program)
    return located


def _listed(
    section: AgentSection, source: Source, located: Located | None, why: str, install: str | None = None
) -> Found:
    return Found(
        name=section.name,
        title=section.title or section.name,
        found=located is not None,
        version=located.version if located else None,
        command=section.command,
        source=source,
        why=why,
        install=None if located else install,
    )


PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
PASSED = (
    *PROVIDER_VARIABLES,
    *("DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR"),  # the way to the system's keyring
    *("SSL_CERT_FILE", "SSL_CERT_DIR"),
    *PROXIES,
    *map(str.lower, PROXIES),
)
"""What it takes to reach a model. No command gets any of it."""
NO_KEY = (
    "Handrail's own environment has no key for a model. `handrail keys set anthropic` puts one into your keyring; "
    "`handrail chat` brings along those of your shell."
)


def own_agent(named: Sequence[AgentSection], places: Mapping[str, str]) -> AgentSection:
    """How it is started, changed by what the configuration says of it. `places` leads to the files of this Handrail."""
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
            said = {name: getattr(section, name) for name in section.model_fields_set}
            own = own.model_copy(update={**said, "env": {**own.env, **section.env}})
    return own


def is_own(section: AgentSection) -> bool:
    """It changes how our agent is started; another program of that name takes its place instead."""
    return section.name == OWN_AGENT and section.command == OWN_COMMAND


def has_key(given: Mapping[str, str]) -> bool:
    """Whether some model can be asked with this; an address alone will do, where a model is served without a key."""
    return any(given.get(name) for name in PROVIDER_VARIABLES if name != "HANDRAIL_MODEL")
