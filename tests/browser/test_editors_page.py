"""The pairing question on the page, in Chromium with the real daemon and a process tree as an editor's."""

import anyio.to_thread
import pytest
from playwright.async_api import expect
from tests.support.browser_tab import Tab
from tests.support.daemon_home import Home
from tests.support.editor_process import EditorTree

pytestmark = pytest.mark.browser

NARROWEST = 167
"""The width of the page in the narrowest sidebar of VS Code."""
PLACES = "links => links.flatMap(link => { const { left, right } = link.getBoundingClientRect(); return [left, right] })"
"""Where links begin and end."""


async def test_the_page_shows_the_editors_number_and_pairs_it(shared_home: Home, tab: Tab) -> None:
    with EditorTree(str(shared_home.places.daemon_socket)) as editor:
        editor.connect("host")
        asked = await anyio.to_thread.run_sync(editor.read_reply)
        banner = tab.banner.filter(has_text="An editor asks to decide")
        await expect(banner).to_contain_text(str(asked["number"]))
        await expect(banner).to_contain_text(f"process {editor.process.pid}")

        await banner.get_by_role("button", name="pair it").click()

        await expect(banner).to_have_count(0)
        assert (await anyio.to_thread.run_sync(editor.read_reply))["approves"] is True


async def test_an_editor_that_may_only_watch_asks_no_more(shared_home: Home, tab: Tab) -> None:
    with EditorTree(str(shared_home.places.daemon_socket)) as editor:
        editor.connect("host")
        await anyio.to_thread.run_sync(editor.read_reply)
        banner = tab.banner.filter(has_text="An editor asks to decide")

        await banner.get_by_role("button", name="Only let it watch").click()

        await expect(banner).to_have_count(0)
        assert (await anyio.to_thread.run_sync(editor.read_reply))["approves"] is False


async def test_every_view_can_be_reached_in_the_narrowest_sidebar(tab: Tab) -> None:
    await tab.page.set_viewport_size({"width": NARROWEST, "height": 800})
    links = tab.page.get_by_role("navigation", name="Views").get_by_role("link")
    await expect(links).to_have_count(6)
    places = await links.evaluate_all(PLACES)
    assert (places, max(places) <= NARROWEST) == (sorted(places), True)
    await links.filter(has_text="Servers").click()
    await expect(tab.page.get_by_role("heading", name="Servers")).to_be_visible()
