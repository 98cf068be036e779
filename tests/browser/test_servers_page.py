"""The view of MCP servers in Chromium: add, test, look at a changed tool and accept it, standard error, remove."""

import os
import sys
from pathlib import Path
from typing import Literal

import pytest
from playwright.async_api import expect
from tests.support.browser_tab import Tab
from tests.support.person_client import Person

THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
pytestmark = pytest.mark.browser
AXE = Path(__file__).parents[2] / "ui" / "node_modules" / "axe-core" / "axe.min.js"
SERVER = Path(__file__).parents[1] / "support" / "mcp_servers" / "relayed.py"


async def look(tab: Tab, name: str) -> None:
    """Axe finds nothing serious, nothing scrolls sideways; with a folder in the environment, also takes pictures."""
    for width, height in ((1440, 900), (360, 780)):
        await tab.page.set_viewport_size({"width": width, "height": height})
        for theme in THEMES:
            await tab.page.emulate_media(color_scheme=theme)
            found = await tab.page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
            serious = [each for each in found["violations"] if each["impact"] in ("serious", "critical")]
            assert [(each["id"], each["nodes"][0]["html"]) for each in serious] == []
            if folder := os.environ.get("HANDRAIL_PICTURES"):
                await tab.page.screenshot(path=f"{folder}/{name}-{width}-{theme}.png")
        wide = "document.documentElement.scrollWidth > innerWidth"
        assert not await tab.page.evaluate(wide)
    await tab.page.set_viewport_size({"width": 1440, "height": 900})


async def test_a_server_is_added_tried_looked_at_and_removed(
    tab: Tab, shared_person: Person, tmp_path: Path
) -> None:
    page = tab.page
    await page.goto(await shared_person.link("/servers"))
    await expect(page.get_by_text("No MCP server is behind Handrail yet")).to_be_visible()
    await page.evaluate(AXE.read_text())
    await look(tab, "empty")

    await page.get_by_role("button", name="Add server").click()
    form = page.get_by_role("dialog", name="Add an MCP server")
    await form.get_by_label("Name").fill("Files")
    await form.get_by_label("Command").fill(f"{sys.executable} -I '{SERVER}' '{tmp_path}'")
    await form.get_by_label("Variables that are set for it").fill("TOKEN=s3cret")
    await look(tab, "form")
    await form.get_by_role("button", name="Add").click()
    await expect(form.get_by_role("alert")).to_contain_text("name")
    await form.get_by_label("Name").fill("files")
    await form.get_by_role("button", name="Add").click()

    card = page.get_by_role("listitem", name="files", exact=True)
    await expect(card.get_by_role("status")).to_contain_text("The test went well")
    await expect(card).to_contain_text("sets TOKEN")
    await expect(page.get_by_text("s3cret")).to_have_count(0)

    (tmp_path / "description").write_text("Sends everything to a stranger.")
    await card.get_by_role("button", name="Test files").click()
    await expect(card).to_contain_text("1 tool to look at")
    await expect(card.get_by_role("region", name="Diff")).to_contain_text("Sends everything to a stranger.")
    await look(tab, "changed")
    await card.get_by_role("button", name="Accept echo").click()
    await expect(card).not_to_contain_text("to look at")

    (tmp_path / "fault").write_text("exits")
    await card.get_by_role("button", name="Test files").click()
    await expect(card.get_by_role("status")).to_contain_text("The test failed")
    await expect(card).to_contain_text("failed")
    await card.get_by_text("Standard error").click()
    await look(tab, "failed")

    await card.get_by_role("button", name="Remove files").click()
    confirm = page.get_by_role("dialog", name="Remove files")
    await confirm.get_by_role("button", name="Remove").click()
    await expect(page.get_by_text("No MCP server is behind Handrail yet")).to_be_visible()
