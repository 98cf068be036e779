"""Memory that a client held returns to the system."""

import sys
from pathlib import Path

import pytest

from handrail.server.memory import release_memory


def resident() -> int:
    return int(Path("/proc/self/status").read_text().partition("VmRSS:")[2].split()[0]) * 1024


@pytest.mark.skipif(sys.platform != "linux", reason="the resident size is read from /proc")
def test_freed_memory_is_returned_to_the_system() -> None:
    held = [[bytes(2000) for _ in range(1000)] for _ in range(50)]
    kept = [block[-1] for block in held]  # scattered, so that the heap does not shrink from its end
    full = resident()
    del held
    release_memory()
    assert full - resident() > 20 << 20
    assert len(kept) == 50
