"""What every test may ask for: an event loop to run on, and a home of its own.

Knows nothing of any room: a fixture that builds part of Handrail lives beside that room's tests.
"""

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from tests.support.home_folder import end_started_daemon, make_home_folder

# Examples that take long on a busy machine are no fault; a test that hangs meets pytest's own bound.
settings.register_profile("handrail", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("handrail")

# No test, nor what it starts, reaches the keyring of whoever runs it.
os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.null.Keyring"

# Whoever runs the tests in the background may be deaf to Ctrl-C; what the tests start must not be.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def anyio_backend() -> str:
    """asyncio, which the daemon runs on.

    A test or module that must hold on trio too says
    `pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])`.
    """
    return "asyncio"


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty HANDRAIL_HOME with a path short enough for unix sockets (107 bytes), gone afterwards."""
    path = make_home_folder()
    monkeypatch.setenv("HANDRAIL_HOME", str(path))
    yield path
    end_started_daemon(path)
    shutil.rmtree(path, ignore_errors=True)
