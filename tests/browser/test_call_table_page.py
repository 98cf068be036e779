"""The table of 100,000 calls in Chromium: found, sorted, selected, exported; the palette and the waterfall over them.

How fast that is, is measured in the bench.
"""

import csv
import re
from collections.abc import Generator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from playwright.async_api import Locator, expect
from tests.support.axe import WIDTHS, find_problems
from tests.support.browser_tab import MS, Tab
from tests.support.call_journal import PastCall, write_calls
from tests.support.daemon_home import Home, eventually, running_daemon
from tests.support.mcp_client import agent
from tests.support.person_client import Person

pytestmark = pytest.mark.browser

CALLS = 100_000
FAILED_OF_CODEX = [PastCall(number, 0) for number in range(150, CALLS, 200)]


def write_history(home: Home) -> None:
    """Calls until yesterday noon: no day ends among the newest."""
    noon = datetime.now().astimezone().replace(hour=12, minute=0, second=0) - timedelta(days=1)
    newest = round(noon.timestamp() * 1000)
    home.places.data.mkdir(parents=True, exist_ok=True)
    write_calls(home.places.database, home.places.head, home.places.words, CALLS, newest)


@pytest.fixture(scope="module")
def shared_home() -> Generator[Home]:
    with running_daemon(prepare=write_history) as home:
        yield home


async def open_calls(tab: Tab, q: str = "") -> Locator:
    """The drawn rows."""
    await tab.page.get_by_role("link", name="Calls").click()
    if q:
        await search(tab, q)
    return tab.page.locator("[data-list] [data-call]")


async def search(tab: Tab, q: str) -> None:
    await tab.page.locator("#filter").fill(q)


def row(tab: Tab, number: int) -> Locator:
    return tab.row(PastCall(number, 0).id)


async def test_every_call_is_reached_by_scrolling_with_days_counts_and_folded_repeats(tab: Tab) -> None:
    rows = await open_calls(tab)
    grid = tab.page.get_by_role("grid", name="All calls")
    await tab.sees(tab.page.get_by_role("region", name="Calls"), "100,000 calls")
    await expect(tab.page.get_by_role("button", name=re.compile(r"^failed\s*1,000$"))).to_be_visible()
    await tab.sees(grid, "Yesterday")
    fold = tab.page.get_by_role("button", name=re.compile("^Read .10$")).first
    await expect(row(tab, CALLS - 1)).to_have_count(0)
    await fold.click()
    await expect(fold).to_have_attribute("aria-expanded", "true")
    await expect(row(tab, CALLS - 1)).to_be_visible()
    assert await rows.count() < 60, "only rows near the viewport are in the document"

    oldest = tab.page.locator(f'[id="fold-{PastCall(0, 0).id}"]')

    async def scroll_on() -> bool:
        await tab.page.locator("[data-list] .pane").evaluate("pane => (pane.scrollTop = pane.scrollHeight)")
        return await oldest.is_visible()

    await eventually(scroll_on)


async def test_a_search_has_one_language_stays_over_a_reload_and_says_what_it_does_not_know(tab: Tab) -> None:
    rows = await open_calls(tab, f"part{CALLS - 15} -tool:read_file")
    await expect(rows).to_have_count(1)
    await expect(row(tab, CALLS - 15)).to_be_visible()
    await expect(tab.page).to_have_url(re.compile(r"/calls\?q=part99985\+-tool%3Aread_file$"))
    await tab.page.reload()
    await expect(rows).to_have_count(1)
    await expect(tab.page.locator("#filter")).to_have_value("part99985 -tool:read_file")
    await search(tab, "foo:bar")
    await tab.sees(tab.page.get_by_role("alert"), "There is no key foo. Known: status, tool, agent,")
    await search(tab, "agent:codex")
    chip = tab.page.get_by_role("button", name=re.compile(r"^failed\s*500$"))
    await chip.click()
    await expect(tab.page.locator("#filter")).to_have_value("agent:codex status:failed")
    await expect(chip).to_have_attribute("aria-pressed", "true")
    await tab.sees(tab.page.get_by_role("region", name="Calls"), "500 calls")
    await expect(row(tab, CALLS - 50)).to_be_visible()


async def test_the_same_field_searches_every_view_where_it_is(tab: Tab) -> None:
    """It hides nothing that needs the person, and a search for calls says nothing about rules."""
    field, note = tab.page.locator("#filter"), tab.page.get_by_role("status").filter(has_text="found")
    await tab.page.keyboard.press("/")
    await tab.page.keyboard.type("status:failed")
    await expect(tab.page).to_have_url(re.compile(r"/calls\?q=status%3Afailed$"))
    await tab.page.get_by_role("link", name="Inbox").click()
    await expect(field).to_have_value("")
    await tab.page.get_by_role("link", name="Threads").click()
    await expect(field).to_have_value("status:failed")
    await tab.sees(tab.page.get_by_role("region", name="Threads"), "Threads have no key status:.")

    await tab.page.get_by_role("link", name="Rules").click()
    await expect(field).to_have_value("")
    rules = tab.page.get_by_role("region", name="Rules", exact=True).locator("ol > li[id]")
    await expect(rules).not_to_have_count(0)
    every = await rules.count()
    await search(tab, "workspace -writes risk:high")
    await expect(tab.page).to_have_url(re.compile(r"/rules\?q=workspace\+-writes\+risk%3Ahigh$"))
    await tab.sees(note, "Rules have no key risk:. Words, “phrases” and -words narrow this list.")
    await expect(rules.filter(has_text="reads in the workspace")).to_be_visible()
    assert 0 < await rules.count() < every
    await expect(rules.filter(has_text="writes in the workspace")).to_have_count(0)
    await tab.page.reload()
    await tab.sees(note, "rules found.")
    await note.get_by_role("button", name="Search calls").click()
    await expect(field).to_have_value("workspace -writes risk:high")
    await expect(tab.page).to_have_url(re.compile(r"/calls\?q=workspace"))

    await tab.page.get_by_role("button", name="Settings", exact=True).click()
    settings = tab.page.get_by_role("region", name="Settings", exact=True)
    await expect(settings.get_by_label("Keep ended calls, journal.keep_days")).to_be_visible()
    await search(tab, '"quiet hours"')
    await tab.sees(note, "2 settings found.")
    await expect(settings.get_by_label("Quiet hours, notify.quiet_hours")).to_be_visible()
    await expect(settings.get_by_label("Keep ended calls, journal.keep_days")).to_have_count(0)


async def test_columns_are_chosen_and_sorted_and_what_matches_is_exported(tab: Tab, tmp_path: Path) -> None:
    rows = await open_calls(tab, "status:failed agent:codex")
    sorts = tab.page.get_by_role("group", name="Sort by")
    await sorts.get_by_role("button", name="What").click()
    by_title = sorted(FAILED_OF_CODEX, key=lambda call: call.title.lower())
    await expect(rows.first).to_have_attribute("data-call", by_title[0].id)
    await sorts.get_by_role("button", name="What").click()
    await expect(rows.first).to_have_attribute("data-call", by_title[-1].id)
    await tab.page.get_by_role("button", name="Columns").click()
    await tab.page.get_by_role("menuitemcheckbox", name="Folder").click()
    await expect(sorts.get_by_role("button", name="Folder")).to_have_count(0)
    await tab.page.get_by_role("button", name="Export").click()
    async with tab.page.expect_download(timeout=MS) as download:
        await tab.page.get_by_role("menuitem", name="CSV").click()
    await (await download.value).save_as(tmp_path / "calls.csv")
    exported = [*csv.DictReader((tmp_path / "calls.csv").read_text().splitlines())]
    assert len(exported) == 500
    assert {(one["agent"], one["status"]) for one in exported} == {("codex", "failed")}
    assert [one["id"] for one in exported] == [call.id for call in reversed(by_title)]


async def test_keys_act_on_the_row_with_the_ring_and_selected_calls_are_cancelled(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab
) -> None:
    rows = await open_calls(tab, "tool:execute_command status:ended")
    await expect(row(tab, CALLS - 11)).to_be_visible()
    await tab.page.keyboard.press("Escape")
    await tab.page.locator("#filter").blur()
    await search(tab, "tool:execute_command status:ended")
    await tab.page.locator("#filter").blur()
    for number in (11, 12, 13):
        await tab.page.keyboard.press("j")
        await expect(row(tab, CALLS - number).get_by_role("link")).to_be_focused()
    await tab.page.keyboard.press("x")
    await expect(row(tab, CALLS - 13)).to_have_attribute("aria-selected", "true")
    await tab.sees(tab.page.get_by_role("group", name="Selected calls"), "1 selected")
    await tab.page.keyboard.press("Enter")
    name = f"Call {PastCall(CALLS - 13, 0).id}"
    await expect(tab.detail.get_by_role("article", name=name)).to_be_visible()
    await tab.page.keyboard.press("k")
    name = f"Call {PastCall(CALLS - 12, 0).id}"
    await expect(tab.detail.get_by_role("article", name=name)).to_be_visible()

    async with agent(shared_home, workspace) as client:
        asked = [client.ask("execute_command", command=f"touch {name}") for name in ("one", "two")]
        waiting = [(await shared_person.question(f"touch {name}"))["call_id"] for name in ("one", "two")]
        await search(tab, "status:waiting")
        await expect(rows).to_have_count(2)
        for call in waiting:
            await tab.row(call).get_by_role("checkbox").check()
        await tab.page.get_by_role("button", name="Cancel 2 calls").click()
        assert [(await one.told()).status for one in asked] == ["cancelled", "cancelled"]
        await tab.sees(tab.page.get_by_role("region", name="Calls"), "No call matches this search.")


async def test_the_palette_finds_actions_and_calls_by_keyboard(tab: Tab) -> None:
    await open_calls(tab)
    palette = tab.page.get_by_role("dialog", name="Command palette")
    await tab.page.keyboard.press("Control+k")
    await expect(palette.get_by_role("combobox")).to_be_focused()
    await tab.page.keyboard.type("go to ru")
    await tab.sees(palette.get_by_role("option", selected=True), "Go to Rules")
    await tab.page.keyboard.press("Enter")
    await expect(tab.page).to_have_url(re.compile(r"/rules$"))
    await expect(palette).to_have_count(0)

    await tab.page.keyboard.press("Control+k")
    await expect(palette.get_by_role("combobox")).to_be_focused()
    await tab.page.keyboard.type("part54321")
    await tab.sees(palette.get_by_role("option").first, PastCall(54_321, 0).title)
    await tab.page.keyboard.press("Enter")
    call = PastCall(54_321, 0).id
    await expect(tab.detail.get_by_role("article", name=f"Call {call}")).to_be_visible()

    await tab.page.keyboard.press("Control+k")
    await tab.page.keyboard.type("keep ended calls")
    await tab.sees(palette.get_by_role("option", selected=True), "journal.keep_days")
    await tab.page.keyboard.press("Enter")
    await expect(tab.page.get_by_label("Keep ended calls, journal.keep_days")).to_be_visible()

    await tab.page.keyboard.press("Control+k")
    await expect(palette.get_by_role("combobox")).to_be_focused()
    await tab.page.keyboard.type("status:failed zzz:1")
    await tab.sees(palette.get_by_role("alert"), "There is no key `zzz`.")
    await tab.page.keyboard.press("Escape")
    await expect(palette).to_have_count(0)


async def test_the_waterfall_shows_when_calls_waited_and_is_zoomed_by_keyboard(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab
) -> None:
    async with agent(shared_home, workspace, shared_person) as client:
        asked = client.ask("execute_command", command="echo waited for")
        call = (await shared_person.question("echo waited for"))["call_id"]
        await open_calls(tab, "echo")
        await tab.page.get_by_role("button", name="Waterfall").click()
        await expect(tab.page).to_have_url(re.compile("as=waterfall"))
        bar = tab.page.locator(f'[id="bar-{call}"]')
        await expect(bar).to_be_visible()
        await shared_person.cancel(call)
        await asked.told()
    await expect(bar).to_have_attribute("aria-label", re.compile(r"^echo waited for, .*waited "))
    await tab.sees(tab.page.get_by_role("heading", name=re.compile("waited for you")), "of")

    async def bar_width() -> float:
        return await bar.evaluate("bar => bar.getBoundingClientRect().width")

    chart = tab.page.get_by_role("region", name=re.compile("^Waterfall"))
    await chart.focus()
    before = await bar_width()
    await tab.page.keyboard.press("-")
    await expect(chart.get_by_role("listitem")).to_have_count(1)

    async def is_smaller() -> bool:
        return await bar_width() < before

    await eventually(is_smaller)
    await bar.click()
    await expect(tab.detail.get_by_role("article", name=f"Call {call}")).to_be_visible()


async def test_table_waterfall_and_palette_fit_and_axe_finds_nothing_serious(tab: Tab) -> None:
    problems: list[str] = []
    for width in WIDTHS:
        await tab.page.set_viewport_size({"width": width, "height": 800})
        await tab.visit("/calls")
        await expect(tab.page.locator("[data-list] [data-call]").first).to_be_visible()
        await tab.sees(tab.page.get_by_role("region", name="Calls"), "100,0")
        if width == 360:
            await expect(tab.page.get_by_role("list", name="All calls")).to_be_visible()
        problems += await find_problems(tab.page, "table", [width])
        await tab.page.get_by_role("button", name=re.compile("^Read .10$")).first.click()
        await search(tab, "part9999")
        await tab.page.get_by_role("button", name="Waterfall").click()
        await expect(tab.page.locator('[id^="bar-"]').first).to_be_visible()
        problems += await find_problems(tab.page, "waterfall", [width])
        await tab.page.keyboard.press("Control+k")
        await expect(tab.page.get_by_role("option").first).to_be_visible()
        problems += await find_problems(tab.page, "palette", [width])
        await tab.page.keyboard.press("Escape")
    assert problems == []
