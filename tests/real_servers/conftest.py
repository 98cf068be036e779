"""Without the programs there is nothing to try: `make agents` installs them first."""

import pytest
from tests.real_agents.install import SETS


@pytest.fixture(scope="session", autouse=True)
def installed() -> None:
    if not SETS["servers"].modules.is_dir():
        pytest.fail("The MCP servers that are tried here are not installed. Run: make agents")


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"
