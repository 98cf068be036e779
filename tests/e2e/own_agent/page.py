"""The page of one conversation in Chromium, as far as scenes look at it: whether anything on it still turns."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from playwright.async_api import Browser, Locator, expect
from tests.e2e.browser import MS, Tab
from tests.e2e.person import Person

ANIMATED = """() => document.getAnimations()
  .filter((one) => one.playState === "running" && one.effect?.getComputedTiming().iterations === Infinity)
  .map((one) => one.effect?.target?.outerHTML.slice(0, 200) ?? "")"""
"""Whatever moves without an end, wherever on the page and whatever it is called."""


class Shown:
    """One conversation on the page."""

    def __init__(self, tab: Tab) -> None:
        self._tab = tab

    @property
    def room(self) -> Locator:
        return self._tab.page.get_by_role("complementary", name="Selected thread")

    @property
    def spinners(self) -> Locator:
        return self.room.locator("[data-turns]")

    @property
    def stop(self) -> Locator:
        return self.room.get_by_role("button", name="Stop", exact=True)

    async def is_turning(self) -> None:
        """Something is shown to be at work, and moves."""
        await expect(self.spinners.first).to_be_visible(timeout=MS)
        await self._tab.page.wait_for_function(f"({ANIMATED})().length > 0", timeout=MS)

    async def is_at_rest(self) -> None:
        """Nothing turns, nothing can be stopped, nothing says that it is at work."""
        await expect(self.spinners).to_have_count(0, timeout=MS)
        await expect(self.stop).to_have_count(0, timeout=MS)
        await expect(self.room.get_by_label("The agent is at work")).to_have_count(0, timeout=MS)
        await expect(self.room.locator('[data-how="open"]')).to_have_count(0, timeout=MS)
        await self._tab.page.wait_for_function(f"({ANIMATED})().length === 0", timeout=MS)

    async def sees(self, words: str) -> None:
        await expect(self.room.get_by_role("log", name="Conversation")).to_contain_text(words, timeout=MS)


@asynccontextmanager
async def shown(browser: Browser, person: Person, thread: str) -> AsyncGenerator[Shown]:
    context = await browser.new_context(viewport={"width": 1440, "height": 900})
    tab = Tab(await context.new_page())
    await tab.page.goto(await person.link(f"/t/{thread}"))
    page = Shown(tab)
    await expect(page.room.get_by_role("region", name=f"Thread {thread}")).to_be_visible(timeout=MS)
    yield page
    assert tab.errors == []
    await context.close()
