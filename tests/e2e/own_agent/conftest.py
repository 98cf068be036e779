"""What scenes share: a stage for the module, a browser, a folder to work in."""

from collections.abc import AsyncGenerator, Iterator

import pytest
from playwright.async_api import Browser
from tests.support.browser_tab import chromium
from tests.support.own_agent_scenario import AgentDaemon, agent_daemon


@pytest.fixture(scope="module")
def stage() -> Iterator[AgentDaemon]:
    with agent_daemon() as stage:
        yield stage


@pytest.fixture(scope="module")
async def browser() -> AsyncGenerator[Browser]:
    async with chromium() as browser:
        yield browser
