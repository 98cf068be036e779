"""Where a program is installed, and in which version, as far as looking at files tells.

Owns the places that npm, uv, pipx and people put programs. It starts nothing: asking a program for its version takes
seconds with some, and a program that nobody wanted to start should not be started. It does not know any agent.

The agents that we know of without being told: a short list of our own, in the form of the ACP registry.
"""

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field

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
