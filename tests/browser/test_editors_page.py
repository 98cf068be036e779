"""The pairing question on the page, in Chromium with the real daemon and a process tree as an editor's."""

import anyio.to_thread
import pytest
from playwright.async_api import expect
from tests.support.browser_tab import Tab
from tests.support.daemon_home import Home
from tests.support.editor_process import EditorTree

pytestmark = pytest.mark.browser


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
