"""A daemon with a scripted agent and the agent host, and a paired client."""

from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest
from tests.support.ahp_client import AHP, AhpClient, ahp_client, pair
from tests.support.daemon_home import Home, running_daemon
from tests.support.person_client import Person, person_of
from tests.support.scripted_agent import command
from tests.support.thread_client import agents_config


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    agents = agents_config(scripted=command(), steered=command(steers=True))
    with running_daemon(agents + AHP) as home:
        yield home


@pytest.fixture(scope="module")
def person(home: Home) -> Person:
    return person_of(home)


@pytest.fixture
async def editor(home: Home, person: Person) -> AsyncGenerator[AhpClient]:
    """A client in a paired process."""
    async with ahp_client(home) as client:
        await client.initialize()
        await pair(person)
        yield client


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A workspace."""
    (tmp_path / "README.md").write_text("# hi\n")
    return tmp_path
