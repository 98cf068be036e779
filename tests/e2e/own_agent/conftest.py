"""What scenes share: a stage for the module, a browser, a folder to work in."""

from collections.abc import AsyncGenerator, Iterator

import pytest
from playwright.async_api import Browser
from tests.e2e.browser import chromium
from tests.e2e.own_agent.stage import Stage, staged


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with staged() as stage:
        yield stage


@pytest.fixture(scope="module")
async def browser() -> AsyncGenerator[Browser]:
    async with chromium() as browser:
        yield browser
