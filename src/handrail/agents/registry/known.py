"""The agents that we know of without being told: a short list of our own, in the form of the ACP registry.

Owns the reading of known.json. It does not know which of them are installed (installed.py). What the registry's form has
no word for stands in each entry under `handrail`.
"""

from functools import cache
from importlib.resources import files
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

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
    text = files("handrail.agents.registry").joinpath("known.json").read_text(encoding="utf-8")
    return Listed.model_validate_json(text).agents
