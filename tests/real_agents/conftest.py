"""Without the agents there is nothing to try: `make test-agents` installs them first."""

import pytest
from tests.real_agents.install import MODULES


@pytest.fixture(scope="session", autouse=True)
def installed() -> None:
    if not MODULES.is_dir():
        pytest.fail("The agents that are tried here are not installed. Run: make test-agents")
