"""Where a store test keeps its journal."""

from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True, slots=True)
class Kept:
    """The two files of a journal."""

    path: Path
    head: Path


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path / "handrail.db", tmp_path / "handrail.head")
