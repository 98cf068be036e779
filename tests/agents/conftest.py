"""Fixtures of the agents' tests: a workspace and whoever works in it."""

from pathlib import Path

import pytest

from handrail.store.values import Caller


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def caller(root: Path) -> Caller:
    return Caller(door="acp", client="mind", key="h1", workspace=str(root), thread="h1")
