"""The view of MCP servers in Chromium: add, test, look at a changed tool and accept it, secrets, sign-in, remove."""

import re
import sys
from pathlib import Path

import pytest
from playwright.async_api import expect
from tests.support.axe import find_problems
from tests.support.browser_tab import Tab
from tests.support.mcp_servers.over_http import http_servers
from tests.support.person_client import Person

pytestmark = pytest.mark.browser
SERVER = Path(__file__).parents[1] / "support" / "mcp_servers" / "relayed.py"


async def check_page(tab: Tab, state: str) -> None:
    """This state of the page has no serious problem."""
    assert await find_problems(tab.page, state) == []
    await tab.page.set_viewport_size({"width": 1440, "height": 900})


async def test_a_server_is_added_tried_looked_at_and_removed(
    tab: Tab, shared_person: Person, tmp_path: Path
) -> None:
    page = tab.page
    await page.goto(await shared_person.link("/servers"))
    await expect(page.get_by_text("No MCP server is behind Handrail yet")).to_be_visible()
    await check_page(tab, "empty")

    await page.get_by_role("button", name="Add server").click()
    form = page.get_by_role("dialog", name="Add an MCP server")
    name = form.get_by_label("Name", exact=True)
    await expect(name).to_have_accessible_description(re.compile("^Lower-case letters"))
    await name.fill("Files")
    await form.get_by_label("Command").fill(f"{sys.executable} -I '{SERVER}' '{tmp_path}'")
    await form.get_by_label("Variables that are set for it").fill("TOKEN=s3cret")
    await check_page(tab, "form")
    await form.get_by_role("button", name="Add").click()
    await expect(form.get_by_role("alert")).to_have_text(re.compile("^The name of a server is"))
    await name.fill("files")
    await form.get_by_role("button", name="Add").click()

    card = page.get_by_role("listitem", name="files", exact=True)
    await expect(card.get_by_role("status")).to_contain_text("The test went well")
    await expect(card).to_contain_text("sets TOKEN")
    restart = card.get_by_role("button", name="Restart files")
    await expect(restart).to_have_attribute("aria-disabled", "true")
    await expect(restart).to_have_accessible_description(re.compile("^It does not run."))
    await expect(page.get_by_text("s3cret")).to_have_count(0)

    (tmp_path / "description").write_text("Sends everything to a stranger.")
    await card.get_by_role("button", name="Test files").click()
    await expect(card).to_contain_text("1 tool to look at")
    await expect(card.get_by_role("region", name="Diff")).to_contain_text("Sends everything to a stranger.")
    await check_page(tab, "changed")
    await card.get_by_role("button", name="Accept echo").click()
    await expect(card).not_to_contain_text("to look at")

    (tmp_path / "fault").write_text("exits")
    await card.get_by_role("button", name="Test files").click()
    await expect(card.get_by_role("status")).to_contain_text("The test failed")
    await expect(card).to_contain_text("failed")
    await card.get_by_text("Standard error").click()
    await check_page(tab, "failed")
    await card.get_by_role("button", name="Retry files").click()
    await expect(card).to_contain_text("not started")

    await card.get_by_role("button", name="Remove files").click()
    confirm = page.get_by_role("dialog", name="Remove files")
    await confirm.get_by_role("button", name="Remove").click()
    await expect(page.get_by_text("No MCP server is behind Handrail yet")).to_be_visible()


async def test_a_server_with_a_url_gets_its_secret_and_its_sign_in(tab: Tab, shared_person: Person) -> None:
    page = tab.page
    await page.goto(await shared_person.link("/servers"))
    with http_servers() as web:
        await page.get_by_role("button", name="Add server").click()
        form = page.get_by_role("dialog", name="Add an MCP server")
        await form.get_by_label("Name", exact=True).fill("private")
        await form.get_by_role("radio", name="A URL").check()
        await form.get_by_label("URL", exact=True).fill("http://far.example/mcp")
        await form.get_by_label("Headers").fill("X-Team {secret:TEAM}")
        await form.get_by_role("button", name="Add").click()
        await expect(form.get_by_role("alert")).to_contain_text("is not “Name: value”")
        await form.get_by_label("Headers").fill("X-Team: {secret:TEAM}")
        await check_page(tab, "url-form")
        await form.get_by_role("button", name="Add").click()
        await expect(form.get_by_role("alert")).to_contain_text("https://")
        await form.get_by_label("URL", exact=True).fill(web.url("private"))
        await form.get_by_role("button", name="Add").click()

        card = page.get_by_role("listitem", name="private", exact=True)
        await expect(card).to_contain_text("It needs TEAM, which is not stored")
        await expect(card).to_contain_text("failed")
        await page.reload()
        await expect(card).to_contain_text("It needs TEAM, which is not stored")
        await expect(card).not_to_contain_text("could not be started")
        await expect(card).to_contain_text("sends X-Team")
        row = page.get_by_role("region", name="Secrets").get_by_role("listitem", name="TEAM")
        await expect(row).to_contain_text("missing")
        await check_page(tab, "missing")
        await row.get_by_role("button", name="Store TEAM").click()
        store = page.get_by_role("dialog", name="Store TEAM")
        await store.get_by_label("Value").fill("t3am-secret")
        await check_page(tab, "secret-form")
        await store.get_by_role("button", name="Store").click()
        await expect(row).to_contain_text("set")
        await expect(row).to_contain_text("for private")

        await card.get_by_role("button", name="Test private").click()
        await expect(card).to_contain_text("needs sign-in")
        await check_page(tab, "needs-sign-in")
        async with page.context.expect_page() as opened:
            await card.get_by_role("button", name="Sign in to private").click()
        await expect((await opened.value).get_by_text("You are signed in to private")).to_be_visible()
        await expect(card.get_by_role("button", name="Sign out of private")).to_be_visible()
        await card.get_by_role("button", name="Test private").click()
        await expect(card.get_by_role("status")).to_contain_text("The test went well")
        assert any(each.headers.get("x-team") == "t3am-secret" for each in web.of("private"))
        assert "t3am-secret" not in await page.content()
        await check_page(tab, "signed-in")
        await card.get_by_role("button", name="Sign out of private").click()
        await expect(card.get_by_role("button", name="Sign out of private")).to_have_count(0)

        await row.get_by_role("button", name="Remove TEAM").click()
        confirm = page.get_by_role("dialog", name="Remove TEAM")
        await expect(confirm).to_contain_text("private needs it")
        await confirm.get_by_role("button", name="Remove").click()
        await expect(row).to_contain_text("missing")
        await card.get_by_role("button", name="Remove private").click()
        await page.get_by_role("dialog", name="Remove private").get_by_role("button", name="Remove").click()
        await expect(page.get_by_text("No MCP server is behind Handrail yet")).to_be_visible()
