"""A daemon that hosts our own agent, and a model that says what it is told to.

Knows how the two are put together: the agent's environment, what is asked about and what is not.
"""

import json
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import httpx
from tests.e2e.conversing import GRACE
from tests.e2e.home import BOUND, Home, living
from tests.e2e.own_agent import kin
from tests.e2e.own_agent.kin import Kin
from tests.e2e.person import Person, person_of
from tests.model.server import ModelServer, model_server

OWN = "handrail"
BESIDE = "beside"
"""Our agent, whose client also gives it a server of its own: `stranger`."""
ASKED = "touch"
"""The command that a person is asked about."""
Dialect = Literal["anthropic", "openai"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Where scenes are played."""

    home: Home
    person: Person
    model: ModelServer
    roots: frozenset[int]
    """The processes that everything here is started by."""

    def since(self, tick: int, workspace: Path) -> list[Kin]:
        return kin.since(tick, self.roots, (self.home.places.state, workspace))

    async def descriptors(self) -> int:
        return (await self.person.get("health"))["daemon"]["descriptors"]


@contextmanager
def staged(dialect: Dialect = "anthropic") -> Generator[Stage]:
    with model_server() as model, living(_config(model, dialect)) as home:
        person = person_of(home)
        yield Stage(home=home, person=person, model=model, roots=_roots(person))


def _roots(person: Person) -> frozenset[int]:
    health = httpx.get(f"{person.home.url}/api/health", headers=person.headers, timeout=BOUND).json()
    return frozenset(health[who]["pid"] for who in ("daemon", "keeper"))


def _config(model: ModelServer, dialect: Dialect) -> str:
    env = environment(model, dialect)
    beside = [sys.executable, "-m", "tests.e2e.own_agent.beside"]
    rule = f'[[rules]]\neffect = "ask"\ncommand = "{ASKED}"\n'
    root = str(Path(__file__).parents[3])
    return (
        'default_policy = "allow"\n'
        + GRACE
        + rule
        + _agent({"name": OWN}, env)
        + _agent({"name": BESIDE, "command": beside, "one_per_thread": True}, {**env, "PYTHONPATH": root})
    )


def environment(model: ModelServer, dialect: Dialect) -> dict[str, str]:
    """What our agent needs to find the model."""
    if dialect == "openai":
        return {"OPENAI_BASE_URL": f"{model.url}/v1", "HANDRAIL_MODEL": "openai:scripted"}
    return {
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": "a-key-for-nothing",
        "HANDRAIL_MODEL": "anthropic:scripted",
    }


def _agent(about: Mapping[str, object], env: Mapping[str, str]) -> str:
    return f"[[agents]]\n{_lines(about)}[agents.env]\n{_lines(env)}"


def _lines(values: Mapping[str, object]) -> str:
    """As TOML, whose plain values are written as JSON's are."""
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())
