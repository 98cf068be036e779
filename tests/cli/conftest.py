"""A home of its own for each test of the commands, and an agent where one is asked for."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.scene import Agent, Home


@pytest.fixture
def handrail(home: Path, tmp_path: Path) -> Iterator[Home]:
    workspace = tmp_path / "project"
    workspace.mkdir()
    made = Home(home, workspace)
    yield made
    made.end()


@pytest.fixture
def agent(handrail: Home) -> Iterator[Agent]:
    """An agent in the workspace, with a daemon behind its door."""
    handrail.up()
    with Agent(handrail) as made:
        yield made
