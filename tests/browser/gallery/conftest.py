"""Fixtures of the gallery's tests: the built page behind the real content security policy, and a browser.

The gallery needs no daemon: it shows every component in every state from its own fixtures.
"""

import socket
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import pytest
import uvicorn
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from tests.support.browser_tab import QUIET, find_chromium

from handrail.server.app import STATIC, page_routes
from handrail.server.guard import CSP

SLOW_MACHINE = "task queue exceeded allotted deadline"
"""What the terminal emulator writes to the console if a task took longer than a frame."""
BOUND = 45.0
"""Seconds for anything a test waits for: far more than it takes, so that only a fault reaches it."""
expect.set_options(timeout=BOUND * 1000)


class Policy:
    """Adds the content policy that the guard adds; nothing else of the guard matters to a still picture."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_policy(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"content-security-policy", CSP.encode())]
            await send(message)

        await self.app(scope, receive, with_policy)


@pytest.fixture(scope="session")
def site() -> Iterator[str]:
    """Where the built page is served."""
    assert (STATIC / "index.html").is_file(), "The page was not built. Run: make ui"
    app = Starlette(routes=page_routes(), middleware=[Middleware(Policy)])
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    server.should_exit = True
    thread.join(BOUND)
    listener.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Gone with the module: while it is there, this thread has a running loop, and no other can run in it."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=[*QUIET])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def window(browser: Browser, site: str) -> Iterator[BrowserContext]:
    """A window for the module's tabs. Its first tab keeps the process that they share, with the page's compiled code."""
    with _open_window(browser) as window:
        window.new_page().goto(f"{site}/gallery?only=none")
        yield window


@pytest.fixture
def page(window: BrowserContext) -> Iterator[Page]:
    """A new tab, with nothing stored; a word of complaint from the browser fails the test."""
    with _open_tab(window) as page:
        yield page
        page.evaluate("localStorage.clear()")


@pytest.fixture
def lone_page(browser: Browser) -> Iterator[Page]:
    """A tab in a separate window, for tests that set the clock or permissions of the window."""
    with _open_window(browser) as window, _open_tab(window) as page:
        yield page


@contextmanager
def _open_window(browser: Browser) -> Generator[BrowserContext]:
    window = browser.new_context(viewport={"width": 1440, "height": 900})
    window.set_default_timeout(BOUND * 1000)
    yield window
    window.close()


@contextmanager
def _open_tab(window: BrowserContext) -> Generator[Page]:
    complaints: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not message.text.startswith(SLOW_MACHINE):
            complaints.append(message.text)

    page = window.new_page()
    page.on("console", hear)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    page.close()
    assert complaints == []
