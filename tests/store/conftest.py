"""Where a store test keeps its journal."""

from pathlib import Path

import pytest
from tests.support.sample_events import JournalFiles


@pytest.fixture
def kept(tmp_path: Path) -> JournalFiles:
    return JournalFiles(tmp_path / "handrail.db", tmp_path / "handrail.head")
