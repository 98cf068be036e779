"""Homes for the tests of the commands: one daemon that most of them share, or one of a test's own."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.cli_home import Agent, Home, open_terminal, wait_for_output
from tests.support.client_desk import Desk
from tests.support.client_machine import ClientMachine
from tests.support.home_folder import make_home_folder


@pytest.fixture(scope="session")
def common() -> Iterator[Path]:
    """A home whose daemon serves every test that does not end it."""
    path = make_home_folder()
    yield path
    Home(path, path).end()
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def handrail(common: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A running Handrail, and a workspace that is this test's alone."""
    monkeypatch.setenv("HANDRAIL_HOME", str(common))
    made = Home(common, workspace(tmp_path))
    made.up()
    return made


@pytest.fixture
def agent(handrail: Home) -> Iterator[Agent]:
    """An agent in that workspace; what it still asks is gone when the next test begins."""
    with Agent(handrail) as made:
        yield made
    handrail.asks_nothing()


@pytest.fixture
def alone(home: Path, tmp_path: Path) -> Iterator[Home]:
    """A home that is this test's alone, without a daemon yet."""
    made = Home(home, workspace(tmp_path))
    yield made
    made.end()


@pytest.fixture
def lone_agent(alone: Home) -> Iterator[Agent]:
    alone.up()
    with Agent(alone) as made:
        yield made


@pytest.fixture
def desk(handrail: Home, tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(handrail, ClientMachine(tmp_path / "machine"))
    yield desk
    for row in desk.states().values():
        for scope in row["scopes"]:
            desk.run(
                "disconnect", row["client"], "--yes", "--scope", "user" if scope == "user" else "project"
            )


def workspace(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    return path


@pytest.fixture
def asking(handrail: Home) -> Iterator[str]:
    """A terminal that says back what it is told, until it is told to leave."""
    script = 'echo ready; while read -r line; do echo "got <$line>"; [ "$line" = leave ] && exit 3; done'
    made = open_terminal(handrail, script, "asking")
    wait_for_output(handrail, made, "ready")
    yield made
    handrail.run("terminal", "close", made)
