"""Fixtures of the tools' tests: what a server writes down of itself."""

from pathlib import Path

import pytest


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log"
    path.touch()
    return path
