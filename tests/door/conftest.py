"""What the door's tests share: a home with its places, and a scripted daemon in it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.door.peer import Peer

from handrail.paths import Places


@pytest.fixture
def places(home: Path) -> Places:
    return Places.under(home)


@pytest.fixture
def peer(places: Places) -> Iterator[Peer]:
    with Peer(places) as peer:
        yield peer
