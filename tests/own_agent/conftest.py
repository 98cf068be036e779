"""Fixtures of our agent's tests: a scripted model, and what leads the agent to it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.model_server.server import ModelServer, model_server

KEY = "sk-the-key-of-this-test"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The workspace."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with model_server() as server:
        yield server


@pytest.fixture
def way(model: ModelServer) -> dict[str, str]:
    """The variables by which a program finds the scripted model."""
    return {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": model.url}
