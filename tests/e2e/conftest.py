"""What the end-to-end tests share: a home with a real daemon, a person, a workspace, and a browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.daemon_home import Home, running_daemon
from tests.support.person_client import Person, person_of

SMALL_GRACE = "[command]\nstop_grace = 0.3\n"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.e2e)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """One loop for a module, so that its tests can share a browser."""
    return "asyncio"


@pytest.fixture
def home() -> Iterator[Home]:
    """A daemon of this test's own, to be killed at will."""
    with running_daemon(SMALL_GRACE) as home:
        yield home


@pytest.fixture
def person(home: Home) -> Person:
    return person_of(home)


@pytest.fixture(scope="module")
def shared_home() -> Iterator[Home]:
    """A daemon for tests that leave it as it is."""
    with running_daemon(SMALL_GRACE) as home:
        yield home


@pytest.fixture(scope="module")
def shared_person(shared_home: Home) -> Person:
    return person_of(shared_home)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
async def trusted(workspace: Path, person: Person) -> Path:
    """The workspace, trusted by the person."""
    await person.post("folders/trust", {"folder": str(workspace), "config": None})
    return workspace
