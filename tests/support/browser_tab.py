"""A tab of the page in Chromium, driven by roles and labels.

`Tab` shows the whole page, `ThreadPage` one thread and its spinners.
"""

import os
import re
import shutil
import time
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from playwright.async_api import (
    Browser,
    BrowserContext,
    Locator,
    Page,
    Request,
    WebSocket,
    async_playwright,
    expect,
)
from tests.support.daemon_home import BOUND
from tests.support.home_folder import has_memory_folder
from tests.support.person_client import Person

from handrail.server.app import STATIC

CHROMIUM = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""Programs to look for. The first is the same browser without windows, which starts faster, and has no push messages."""
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--process-per-site",
)
MS = BOUND * 1000
MOST_LINES = 30
"""Lines of the page's traffic in the report of a failed test."""
expect.set_options(timeout=MS)  # the default of five seconds is too short on a busy machine


def find_chromium() -> str:
    """The path of the browser: the program in HANDRAIL_CHROMIUM, or the system's."""
    named = os.environ.get("HANDRAIL_CHROMIUM")
    found = named or next((path for name in CHROMIUM if (path := shutil.which(name))), None)
    assert found, f"none of {', '.join(CHROMIUM)} is installed; `make tools` installs one"
    return found


def find_full_chromium() -> str | None:
    """The path of a browser with windows, which can subscribe to push messages; it is run without showing them."""
    named = os.environ.get("HANDRAIL_CHROMIUM")
    if named and "headless" not in named:
        return named
    return next((path for name in CHROMIUM[1:] if (path := shutil.which(name))), None)


def _asked(request: Request) -> str:
    return f"{request.method} {request.url}"


@asynccontextmanager
async def chromium(*flags: str) -> AsyncGenerator[Browser]:
    """The system's own browser, with these flags too."""
    assert (STATIC / "index.html").is_file(), "the page is not built; run `make ui`"
    async with async_playwright() as playwright:
        # By default Playwright lets the browser share memory through files on the disk.
        unwanted = ["--disable-dev-shm-usage"] if has_memory_folder() else []
        browser = await playwright.chromium.launch(
            executable_path=find_chromium(), args=[*QUIET, *flags], ignore_default_args=unwanted
        )
        yield browser
        await browser.close()


class Tab:
    """One tab of the page."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.errors: list[str] = []
        self._traffic: deque[str] = deque(maxlen=MOST_LINES)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda said: self._note(f"console {said.type}", said.text))
        page.on("response", lambda answer: self._note(str(answer.status), _asked(answer.request)))
        page.on("requestfailed", lambda request: self._note("failed", f"{_asked(request)} {request.failure}"))
        page.on("websocket", self._watch_socket)
        page.set_default_timeout(MS)

    def report(self) -> str:
        """What the page last asked and was told, for a test that failed."""
        return "\n".join([f"The tab at {self.page.url}:", *self._traffic])

    def _watch_socket(self, socket: WebSocket) -> None:
        self._note("opened", socket.url)
        socket.on("close", lambda _: self._note("closed", socket.url))

    def _note(self, what: str, about: str) -> None:
        if "/assets/" not in about:
            self._traffic.append(f"{time.strftime('%H:%M:%S')} {what} {about}")

    @property
    def needs_you(self) -> Locator:
        return self.page.get_by_role("region", name="Needs you")

    @property
    def running(self) -> Locator:
        return self.page.get_by_role("region", name="Running")

    @property
    def recent(self) -> Locator:
        return self.page.get_by_role("region", name="Recent")

    @property
    def detail(self) -> Locator:
        return self.page.get_by_role("complementary", name="Selected call")

    @property
    def output(self) -> Locator:
        return self.detail.get_by_role("log", name="Output")

    @property
    def diff(self) -> Locator:
        return self.detail.get_by_role("region", name="Diff")

    @property
    def banner(self) -> Locator:
        return self.page.get_by_role("status")

    @property
    def remarks(self) -> Locator:
        return self.page.get_by_role("list", name="Remarks")

    def row(self, call: str) -> Locator:
        return self.page.locator(f'[data-call="{call}"]')

    def timer(self, call: str) -> Locator:
        return self.row(call).locator("[data-timer]")

    async def visit(self, path: str) -> None:
        """Go there within the page. A reload would sign it out where the test itself has launched a door."""
        await self.page.evaluate(
            "path => { history.pushState({}, '', path); dispatchEvent(new PopStateEvent('popstate')) }", path
        )

    async def open(self, call: str) -> None:
        """Open a call beside the list."""
        await self.row(call).get_by_role("link").first.click()
        await expect(self.detail.get_by_role("article", name=f"Call {call}")).to_be_visible(timeout=MS)

    async def press(self, name: str) -> None:
        """Click a button of the open call, once its guard lets it."""
        await self.detail.get_by_role("button", name=re.compile(rf"^{re.escape(name)}(?!\w| and)")).click()

    async def complete(self, how: str) -> None:
        await self.press("Complete")
        await self.page.get_by_role("menuitem", name=how).click()

    async def sees(self, locator: Locator, words: str, within: float = BOUND) -> None:
        await expect(locator).to_contain_text(words, timeout=within * 1000)

    async def reads(self, call: str, status: str, within: float = BOUND) -> None:
        await expect(self.row(call)).to_have_attribute("data-status", status, timeout=within * 1000)


@asynccontextmanager
async def signed_in(browser: Browser, person: Person) -> AsyncGenerator[Tab]:
    """A fresh window, signed in by a link; nothing may have gone wrong in it when the test ends."""
    context = await browser.new_context(viewport={"width": 1440, "height": 900})
    tab = Tab(await context.new_page())
    await tab.page.goto(await person.link())
    await expect(tab.page.get_by_role("navigation", name="Views")).to_be_visible(timeout=MS)
    yield tab
    assert tab.errors == [], tab.errors
    await context.close()


async def another_tab(context: BrowserContext, url: str) -> Tab:
    """A second tab, which the first one signs in."""
    tab = Tab(await context.new_page())
    await tab.page.goto(url)
    await expect(tab.page.get_by_role("navigation", name="Views")).to_be_visible(timeout=MS)
    return tab


ANIMATED = """() => document.getAnimations()
  .filter((one) => one.playState === "running" && one.effect?.getComputedTiming().iterations === Infinity)
  .map((one) => one.effect?.target?.outerHTML.slice(0, 200) ?? "")"""
"""Whatever moves without an end, wherever on the page and whatever it is called."""


class ThreadPage:
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
        """A spinner is visible and animated."""
        await expect(self.spinners.first).to_be_visible(timeout=MS)
        await self._tab.page.wait_for_function(f"({ANIMATED})().length > 0", timeout=MS)

    async def is_at_rest(self) -> None:
        """No spinner, no Stop button, and no sign of work."""
        await expect(self.spinners).to_have_count(0, timeout=MS)
        await expect(self.stop).to_have_count(0, timeout=MS)
        await expect(self.room.get_by_label("The agent is at work")).to_have_count(0, timeout=MS)
        await expect(self.room.locator('[data-how="open"]')).to_have_count(0, timeout=MS)
        await self._tab.page.wait_for_function(f"({ANIMATED})().length === 0", timeout=MS)

    async def sees(self, words: str) -> None:
        await expect(self.room.get_by_role("log", name="Conversation")).to_contain_text(words, timeout=MS)


@asynccontextmanager
async def open_thread_page(browser: Browser, person: Person, thread: str) -> AsyncGenerator[ThreadPage]:
    context = await browser.new_context(viewport={"width": 1440, "height": 900})
    tab = Tab(await context.new_page())
    await tab.page.goto(await person.link(f"/t/{thread}"))
    page = ThreadPage(tab)
    await expect(page.room.get_by_role("region", name=f"Thread {thread}")).to_be_visible(timeout=MS)
    yield page
    assert tab.errors == []
    await context.close()
