"""Fixtures of the page's browser tests: the daemon and the person of the end-to-end tests, Chromium, a signed-in tab."""

from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest
from playwright.async_api import Browser
from tests.e2e.conftest import anyio_backend, home, person, shared_home, shared_person, workspace
from tests.support.browser_tab import Tab, chromium, signed_in
from tests.support.person_client import Person

__all__ = [
    "anyio_backend",
    "home",
    "person",
    "shared_home",
    "shared_person",
    "workspace",
]  # fixtures of tests/e2e


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests against a daemon are end-to-end tests too; the gallery's need none."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.e2e)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Add to a failure what the page asked and was told, since a screen does not show it."""
    try:
        return (yield)
    except Exception as error:
        for tab in [each for each in pyfuncitem.funcargs.values() if isinstance(each, Tab)]:
            error.add_note(tab.report())
        raise


@pytest.fixture(scope="module")
async def browser() -> AsyncGenerator[Browser]:
    async with chromium() as browser:
        yield browser


@pytest.fixture
async def tab(browser: Browser, shared_person: Person) -> AsyncGenerator[Tab]:
    async with signed_in(browser, shared_person) as tab:
        yield tab
