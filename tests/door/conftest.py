"""What the door's tests share: a home with its places, and a scripted daemon in it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.scripted_daemon import ScriptedDaemon

from handrail.paths import Places


@pytest.fixture
def places(home: Path) -> Places:
    return Places.under(home)


@pytest.fixture
def peer(places: Places) -> Iterator[ScriptedDaemon]:
    with ScriptedDaemon(places) as peer:
        yield peer
