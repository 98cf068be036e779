"""Staying signed in, in Chromium with the real daemon: reloads, links opened twice, restored profiles, signing out."""

from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, Request, async_playwright, expect
from tests.support.browser_tab import QUIET, Tab, find_chromium, signed_in
from tests.support.daemon_home import Home, running_daemon
from tests.support.person_client import Person

pytestmark = pytest.mark.browser

REVOKED_MS = 3000
"""A revocation closes the sockets within a second; the rest is for a busy machine."""


@pytest.fixture(scope="module")
def shared_home() -> Generator[Home]:
    """A daemon of this module's own, to which no door was launched: its launcher would count as an agent."""
    with running_daemon() as home:
        yield home


async def is_signed_in(page: Page) -> None:
    await expect(page.get_by_role("navigation", name="Views")).to_be_visible()


async def is_signed_out(page: Page, within: float | None = None) -> None:
    await expect(page.get_by_text("Sign in from your terminal")).to_be_visible(timeout=within)


async def test_a_reload_of_the_only_tab_stays_signed_in(tab: Tab, shared_person: Person) -> None:
    for _ in range(2):
        await tab.page.reload()
        await is_signed_in(tab.page)
    (own,) = [row for row in await shared_person.get("sign-ins") if row["lasts"]]
    assert own["name"].startswith("Chrome on ")


async def test_a_link_opened_again_in_the_same_browser_leaves_both_tabs_signed_in(
    tab: Tab, shared_person: Person
) -> None:
    link = await shared_person.link()
    other = await tab.page.context.new_page()
    for page in (tab.page, other, other):
        await page.goto("about:blank")
        await page.goto(link)
        await is_signed_in(page)
    await tab.page.reload()
    await is_signed_in(tab.page)


async def test_a_link_that_another_browser_uses_too_signs_the_first_one_out_at_once(
    browser: Browser, shared_person: Person
) -> None:
    mine, other = [await browser.new_context() for _ in range(2)]
    link = await shared_person.link()
    page, thief = await mine.new_page(), await other.new_page()
    await page.goto(link)
    await is_signed_in(page)
    await thief.goto(link)
    await expect(thief.get_by_text("This link was used before")).to_be_visible()
    await is_signed_out(page, within=REVOKED_MS)
    await page.reload()
    await is_signed_out(page)
    for context in (mine, other):
        await context.close()


async def test_a_browser_is_signed_out_from_the_list_of_another(
    browser: Browser, tab: Tab, shared_person: Person
) -> None:
    async with signed_in(browser, shared_person) as other:
        own = [row["id"] for row in await shared_person.get("sign-ins")][-1]
        await tab.page.get_by_role("button", name="Signed-in browsers").click()
        dialog = tab.page.get_by_role("dialog", name="Signed-in browsers")
        await expect(dialog.get_by_text("this one")).to_have_count(1)
        await dialog.get_by_role("button", name="Sign out").last.click()
        await is_signed_out(other.page, within=REVOKED_MS)
        await expect(other.page.get_by_text("This browser was signed out")).to_be_visible()
        assert own not in [row["id"] for row in await shared_person.get("sign-ins")]
        await dialog.get_by_role("button", name="Close").click()
        await is_signed_in(tab.page)


async def test_a_restored_profile_is_signed_in_and_holds_no_bearer(
    shared_person: Person, tmp_path: Path
) -> None:
    bearers: set[str] = set()

    def note_bearer(request: Request) -> None:
        bearers.add(request.headers.get("authorization", "").removeprefix("Bearer "))

    async with async_playwright() as playwright:
        for address in (await shared_person.link(), shared_person.home.url):
            context = await playwright.chromium.launch_persistent_context(
                tmp_path / "profile", executable_path=find_chromium(), args=[*QUIET]
            )
            page = await context.new_page()
            page.on("request", note_bearer)
            await page.goto(address)
            await is_signed_in(page)
            await context.close()
    bearers.discard("")
    assert len(bearers) == 2, "one of the link, one of the key"
    kept = b"".join(file.read_bytes() for file in (tmp_path / "profile").rglob("*") if file.is_file())
    assert [bearer for bearer in bearers if bearer.encode() in kept] == []


async def test_a_sign_in_outlives_a_killed_daemon_and_a_reload_meanwhile(tab: Tab, shared_home: Home) -> None:
    shared_home.kill()
    shared_home.up()
    await tab.page.reload()
    await is_signed_in(tab.page)
