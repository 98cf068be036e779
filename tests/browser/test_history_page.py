"""Every call there ever was can be found on the page, however many there are."""

from pathlib import Path

import pytest
from playwright.async_api import expect
from tests.support.browser_tab import MS, chromium, signed_in
from tests.support.daemon_home import Home
from tests.support.mcp_client import agent
from tests.support.person_client import Person

pytestmark = pytest.mark.browser


async def test_older_calls_are_shown_page_by_page_and_found_by_their_words(
    home: Home, person: Person, workspace: Path
) -> None:
    (workspace / "a.txt").write_text("a")
    async with agent(home, workspace, person) as client:
        first = (await client.use("read_file", path="the-first.txt")).call
        for _ in range(420):
            await client.use("read_file", path="a.txt")
    async with chromium() as browser, signed_in(browser, person) as tab:
        await tab.page.get_by_role("link", name="Calls").click()
        rows = tab.page.locator("[data-call]")
        await expect(rows).to_have_count(200, timeout=MS)
        older = tab.page.get_by_role("button", name="Show older")
        await older.click()
        await expect(rows).to_have_count(400, timeout=MS)
        await older.click()
        await expect(rows).to_have_count(421, timeout=MS)
        await expect(older).to_have_count(0, timeout=MS)
        seen = await rows.evaluate_all("rows => rows.map((row) => row.dataset.call)")
        assert (len(set(seen)), seen[-1]) == (421, first)
        await tab.page.keyboard.press("/")
        await tab.page.keyboard.type("the-first")
        await expect(rows).to_have_count(1, timeout=MS)
        assert tab.errors == []
