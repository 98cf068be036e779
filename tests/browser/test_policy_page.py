"""The banner about a policy that changed without Handrail, in Chromium with the real daemon."""

from collections.abc import Generator

import pytest
from playwright.async_api import expect
from tests.support.browser_tab import Tab
from tests.support.daemon_home import Home, running_daemon

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def shared_home() -> Generator[Home]:
    with running_daemon() as home:
        yield home


def change_config_behind_its_back(home: Home, line: str) -> None:
    """Change config.toml as another process can while no daemon runs."""
    before = home.places.config.read_text()
    home.kill()
    home.places.config.write_text(f"{line}\n{before}")
    home.up()


async def test_the_page_lists_what_changed_and_takes_it_up_when_a_person_says_so(
    shared_home: Home, tab: Tab
) -> None:
    change_config_behind_its_back(shared_home, 'default_policy = "allow"')
    banner = tab.banner.filter(has_text="changed without Handrail")
    await expect(banner.get_by_role("listitem")).to_have_text('added default_policy = "allow"')
    await expect(tab.page.get_by_text("Auto-approve is on")).to_have_count(0)
    await banner.get_by_role("button", name="Use these rules and settings").click()
    await expect(banner).to_have_count(0)
    await expect(tab.page.get_by_text("Auto-approve is on")).to_be_visible()
    assert tab.errors == []
