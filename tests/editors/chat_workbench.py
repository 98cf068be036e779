"""A real VS Code workbench: code-server in a home of its own, and its page in the system's Chromium.

`make editors` installs code-server. `Workbench` drives the chat of VS Code itself.
"""

import json
import os
import re
import subprocess
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import httpx
from playwright.async_api import Browser, Locator, Page, async_playwright
from tests.editors.install import ENTRY
from tests.real_agents.install import node
from tests.support.browser_tab import QUIET, find_chromium
from tests.support.daemon_home import eventually, free_port

SECONDS = 120.0
"""For anything that the workbench does: under load an activation alone takes half a minute."""
_HAS_TEXT = (
    "part => document.querySelector('.interactive-input-part').innerText.replace(/\\s/g, '').includes(part)"
)
SETTINGS: dict[str, object] = {
    "terminal.integrated.gpuAcceleration": "off",
    "terminal.integrated.enablePersistentSessions": False,
    "workbench.startupEditor": "none",
}


@contextmanager
def code_server(home: Path, *flags: str, theme: str = "Default Dark Modern") -> Generator[str]:
    """A running code-server; yields its address."""
    assert ENTRY.is_file(), "code-server is not installed; run `make editors`"
    data = home / "data"
    (data / "User").mkdir(parents=True)
    (data / "User" / "settings.json").write_text(json.dumps({**SETTINGS, "workbench.colorTheme": theme}))
    (home / "config.yaml").write_text("")
    port = free_port()
    command = [
        *(str(node()), str(ENTRY), "--config", str(home / "config.yaml"), "--user-data-dir", str(data)),
        *("--extensions-dir", str(home / "extensions"), "--auth", "none", "--bind-addr", f"127.0.0.1:{port}"),
        *("--disable-telemetry", "--disable-update-check", "--disable-workspace-trust"),
        *("--reconnection-grace-time", "5", *flags),
    ]
    environment = {**os.environ, "HOME": str(home)}
    with (home / "code-server.log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, cwd=home, stdout=log, stderr=log)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()
        process.wait(10)


@asynccontextmanager
async def browser() -> AsyncGenerator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=find_chromium(), args=[*QUIET])
        yield browser
        await browser.close()


@asynccontextmanager
async def workbench(address: str, folder: Path) -> AsyncGenerator["Workbench"]:
    """The workbench with a folder open."""
    await _answers(address)
    async with browser() as chromium:
        page = await chromium.new_page(viewport={"width": 1500, "height": 1000})
        page.set_default_timeout(SECONDS * 1000)
        await page.goto(f"{address}/?folder={folder}")
        await page.wait_for_selector(".monaco-workbench .part.statusbar")
        yield Workbench(page)


async def _answers(address: str) -> None:
    async with httpx.AsyncClient() as client:

        async def look() -> bool:
            with suppress(httpx.TransportError):
                return (await client.get(f"{address}/healthz")).is_success
            return False

        await eventually(look, SECONDS)


class Workbench:
    """A window of VS Code."""

    def __init__(self, page: Page) -> None:
        self.page = page

    async def command(self, title: str) -> None:
        """Run a command of the palette."""
        await self.page.keyboard.press("F1")
        box = self.page.locator(".quick-input-widget input")
        await box.fill(f">{title}")
        await self.page.locator(".quick-input-list .monaco-list-row").first.wait_for()
        await self.page.keyboard.press("Enter")

    def shown(self, text: str | re.Pattern[str]) -> Locator:
        """Visible text: confirmations exist twice, once in a hidden list."""
        return self.page.get_by_text(text).filter(visible=True).first

    def button(self, label: str) -> Locator:
        """A visible button whose accessible name begins so."""
        return self.page.locator(f'[aria-label^="{label}"]').filter(visible=True).first

    async def open_chat(self) -> None:
        """Show VS Code's chat with the list of sessions, which stands beside it only in a wide bar."""
        await self.command("Chat: Open Chat")
        await self._input.wait_for()
        await self.command("View: Maximize Secondary Side Bar")
        await self.shown("New Session").wait_for()

    @property
    def _input(self) -> Locator:
        return self.page.locator(".interactive-input-part .monaco-editor").filter(visible=True).first

    async def say(self, text: str) -> None:
        """Type a prompt into the chat, and send it."""
        await self._input.click()
        await self.page.keyboard.insert_text(text)
        await self.page.wait_for_function(_HAS_TEXT, arg="".join(text.split())[:12])
        await self.page.keyboard.press("Enter")

    async def answered(self, text: str) -> None:
        """Wait until an answer begins with these words."""
        await self.shown(re.compile(f"^{re.escape(text)}")).wait_for()

    async def choose(self, option: str) -> None:
        """Choose an option of a confirmation from its drop-down."""
        await (
            self.page.locator(".interactive-session .monaco-dropdown-button")
            .filter(visible=True)
            .first.click()
        )
        item = self.page.locator(".context-view .action-label, .action-list-item").filter(visible=True)
        await item.filter(has_text=option).first.click()

    async def keep_screenshot(self, name: str) -> None:
        """Keep a screenshot for a look, if HANDRAIL_SCREENSHOTS names a folder."""
        if folder := os.environ.get("HANDRAIL_SCREENSHOTS"):
            await self.page.screenshot(path=Path(folder) / f"{name}.png")
