"""What an operation is doing, on the page: the line above the composer, its tree, and cancelling any part of it.

In a real browser behind a real daemon: with a scripted agent that tells of its activities at its own pace, and with our own
agent and a scripted model.
"""

import re
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest
from playwright.async_api import Browser, Locator, expect
from tests.agents.scripted import TELLING, command
from tests.e2e.browser import MS, Tab, another_tab, chromium, signed_in
from tests.e2e.conversing import Conversation, agents, begun
from tests.e2e.home import Home, living
from tests.e2e.person import Json, Person, person_of
from tests.e2e.test_threads_page import AXE, field, opened, pane, room, say

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

CONFIG = agents(telling=command(capabilities=TELLING), quiet=command())

ROOT: Json = {"begin": "a0", "sort": "operation", "title": "Do it"}
STEP: Json = {"begin": "a1", "in": "a0", "sort": "step", "title": "Step 1"}
MODEL: Json = {"begin": "a2", "in": "a1", "sort": "model", "title": "some:model"}


@pytest.fixture(scope="module")
def shared_home() -> Generator[Home]:
    with living(CONFIG) as home:
        yield home


@pytest.fixture(scope="module")
def shared_person(shared_home: Home) -> Person:
    return person_of(shared_home)


@pytest.fixture(scope="module")
async def browser() -> AsyncGenerator[Browser]:
    async with chromium() as browser:
        yield browser


@pytest.fixture
async def tab(browser: Browser, shared_person: Person) -> AsyncGenerator[Tab]:
    async with signed_in(browser, shared_person) as tab:
        yield tab


def strip(tab: Tab) -> Locator:
    return room(tab).get_by_role("region", name="What it is doing")


def turning(tab: Tab) -> Locator:
    """Every sign on the page that turns, or waits for what comes."""
    return tab.page.locator("[data-turns], [aria-label='The agent is at work']")


def node(tab: Tab, id: str) -> Locator:
    return room(tab).locator(f'[data-activity="{id}"]')


def told(tab: Tab) -> Locator:
    """The line under the last answer."""
    return pane(tab).locator("summary", has_text="What it did").last


async def unfold(tab: Tab) -> None:
    await strip(tab).locator("button[aria-expanded=false]").first.click()
    await expect(strip(tab).get_by_role("region", name="Activities")).to_be_visible(timeout=MS)


async def cancel(tab: Tab, id: str) -> None:
    await node(tab, id).hover()
    await node(tab, id).get_by_role("button", name=re.compile("^Cancel ")).click()


async def ended(tab: Tab, id: str, how: str) -> None:
    await expect(node(tab, id)).to_have_attribute("data-how", how, timeout=MS)


async def at_rest(tab: Tab) -> None:
    """Nothing turns anywhere, and nothing can be stopped."""
    await expect(strip(tab)).to_have_count(0, timeout=MS)
    await expect(turning(tab)).to_have_count(0, timeout=MS)
    await expect(room(tab).get_by_role("button", name="Stop", exact=True)).to_have_count(0, timeout=MS)


async def with_telling(tab: Tab, person: Person, workspace: Path) -> Conversation:
    talk = await begun(person, workspace, agent="telling")
    await opened(tab, talk)
    return talk


async def test_each_fact_starts_or_stops_a_sign_and_any_part_can_be_cancelled(
    shared_person: Person, workspace: Path, tab: Tab
) -> None:
    await with_telling(tab, shared_person, workspace)
    calls = [{"begin": f"c{n}", "in": "a1", "sort": "call", "title": f"Run `make part{n}`"} for n in (1, 2)]
    await say(
        tab,
        ROOT,
        STEP,
        MODEL,
        {
            "busy": "a2",
            "then": [
                *calls,
                {
                    "busy": "c1",
                    "then": [{"finish": "c2", "detail": "exit code 0"}, {"finish": "a1"}, {"say": "Enough."}],
                },
                {"finish": "a0"},
            ],
        },
    )

    await tab.sees(strip(tab), "Step 1 model asked")
    await expect(strip(tab).get_by_role("img", name="at work")).to_be_visible(timeout=MS)
    before = await strip(tab).bounding_box()
    await unfold(tab)
    await expect(node(tab, "a2").locator("[data-turns]")).to_be_visible(timeout=MS)
    await expect(node(tab, "a1").locator("[data-turns]")).to_have_count(0)

    await cancel(tab, "a2")
    await ended(tab, "a2", "cancelled")
    await tab.sees(node(tab, "a2"), "cancelled by a person on the page")
    await tab.sees(strip(tab).locator("button[aria-expanded]").last, "2 calls")
    await expect(strip(tab).locator("[data-activity] [data-turns]")).to_have_count(2, timeout=MS)

    await cancel(tab, "c1")
    await tab.sees(told(tab), "1 step · 2 calls")
    await tab.sees(told(tab), "2 cancelled")
    await at_rest(tab)
    await told(tab).click()
    await ended(tab, "c1", "cancelled")
    await ended(tab, "c2", "done")
    await tab.sees(node(tab, "c2"), "exit code 0")
    assert before is not None
    assert before["height"] == 28


async def test_stopping_all_of_it_puts_the_page_at_rest_and_says_what_was_cut_off(
    shared_person: Person, workspace: Path, tab: Tab
) -> None:
    await with_telling(tab, shared_person, workspace)
    thinking = {"begin": "a3", "in": "a2", "sort": "thinking", "title": "Thinking"}
    await say(tab, ROOT, STEP, MODEL, thinking, {"think": "Let me see."}, {"hang": True})

    await tab.sees(strip(tab), "Step 1 thinking")
    await unfold(tab)
    await strip(tab).get_by_role("region", name="Activities").focus()
    await room(tab).get_by_role("button", name="Stop", exact=True).click()

    await at_rest(tab)
    await tab.sees(told(tab), "1 cancelled")
    await told(tab).click()
    for each in ("a1", "a2", "a3"):
        await ended(tab, each, "cancelled")
    await say(tab, ROOT, {"say": "And on it goes."}, {"finish": "a0"})
    await tab.sees(pane(tab).get_by_role("article").last, "And on it goes.")
    await at_rest(tab)


async def test_a_reload_keeps_what_goes_on_and_two_tabs_see_the_same(
    shared_home: Home, shared_person: Person, browser: Browser, workspace: Path
) -> None:
    async with signed_in(browser, shared_person) as one:
        talk = await with_telling(one, shared_person, workspace)
        await say(one, ROOT, STEP, MODEL, {"busy": "a2", "then": [{"finish": "a1"}, {"finish": "a0"}]})
        await one.sees(strip(one), "model asked")
        other = await another_tab(one.page.context, f"{shared_home.url}/t/{talk.id}")
        await other.sees(strip(other), "Step 1 model asked")

        await one.page.reload()
        await one.sees(strip(one), "Step 1 model asked")
        await unfold(one)
        await cancel(one, "a2")

        for each in (one, other):
            await at_rest(each)
            await each.sees(told(each), "1 step")
        await one.page.reload()
        await told(one).click()
        await ended(one, "a2", "cancelled")
        await at_rest(one)
        await other.page.close()


async def test_sub_agents_stand_below_who_sent_them_and_go_with_them(
    shared_person: Person, workspace: Path, tab: Tab
) -> None:
    await with_telling(tab, shared_person, workspace)
    sent = [
        {"begin": "c1", "in": "a1", "sort": "call", "title": "Find the callers", "call": "tc1"},
        {"begin": "b0", "in": "c1", "sort": "agent", "title": "Find the callers"},
        {"begin": "b1", "in": "b0", "sort": "step", "title": "Step 1"},
        {"begin": "b2", "in": "b1", "sort": "model", "title": "some:model"},
    ]
    gone = [{"finish": each, "how": "cancelled"} for each in ("b2", "b1")]
    after = [*gone, {"finish": "c1"}, {"say": "Without it."}, {"finish": "a1"}, {"finish": "a0"}]
    await say(tab, ROOT, STEP, *sent, {"busy": "b0", "then": after})

    await tab.sees(strip(tab), "Step 1 model asked · 1 sub-agent")
    await unfold(tab)
    await expect(node(tab, "c1")).to_have_count(0)
    below = room(tab).locator('li:has(> [data-activity="b0"]) [data-activity="b2"]')
    await expect(below).to_be_visible(timeout=MS)
    await cancel(tab, "b0")

    await tab.sees(pane(tab).get_by_role("article").last, "Without it.")
    await at_rest(tab)
    await tab.sees(told(tab), "1 step · 1 call · 1 sub-agent")


async def test_an_agent_that_tells_nothing_of_this_looks_as_before(
    shared_person: Person, workspace: Path, tab: Tab
) -> None:
    talk = await begun(shared_person, workspace, agent="quiet")
    await opened(tab, talk)
    await say(tab, {"say": "word{n} ", "times": 100_000, "every": 0.02})
    await tab.sees(pane(tab).get_by_role("article", name="quiet"), "word5 ")
    await expect(strip(tab)).to_have_count(0)
    await room(tab).get_by_role("button", name="Stop", exact=True).click()
    await at_rest(tab)
    await expect(told(tab)).to_have_count(0)


async def test_a_cancel_that_did_not_arrive_is_said_and_can_be_tried_again(
    shared_person: Person, workspace: Path, tab: Tab
) -> None:
    await with_telling(tab, shared_person, workspace)
    await say(tab, ROOT, STEP, MODEL, {"busy": "a2", "then": [{"finish": "a1"}, {"finish": "a0"}]})
    await unfold(tab)
    await tab.page.route("**/activities/*/cancel", lambda route: route.abort())
    await cancel(tab, "a2")
    await tab.sees(tab.remarks, "The daemon did not answer")
    await ended(tab, "a2", "open")

    await tab.page.unroute("**/activities/*/cancel")
    await cancel(tab, "a2")
    await at_rest(tab)


@pytest.mark.parametrize("width", [1440, 900, 360])
async def test_it_fits_is_worked_by_keyboard_and_axe_finds_nothing_serious(
    shared_person: Person, workspace: Path, tab: Tab, width: int
) -> None:
    await with_telling(tab, shared_person, workspace)
    long = {"begin": "c1", "in": "a1", "sort": "call", "title": "Run `" + "a very long command " * 20 + "`"}
    await say(tab, ROOT, STEP, long, {"busy": "c1", "then": [{"finish": "a1"}, {"finish": "a0"}]})
    await tab.page.set_viewport_size({"width": width, "height": 740})
    await expect(strip(tab)).to_be_visible(timeout=MS)
    place = await field(tab).bounding_box()

    line = strip(tab).locator("button[aria-expanded]").last
    await line.focus()
    await tab.page.keyboard.press("Enter")
    await expect(strip(tab).get_by_role("region", name="Activities")).to_be_visible(timeout=MS)

    assert await field(tab).bounding_box() == place
    over = await tab.page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    wide = await room(tab).evaluate("one => one.scrollWidth - one.clientWidth")
    assert (over, wide) == (0, 0)
    await tab.page.evaluate(AXE.read_text())
    found = await tab.page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    serious = [one for one in found["violations"] if one["impact"] in ("serious", "critical")]
    assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in serious] == []

    await node(tab, "c1").get_by_role("button", name=re.compile("^Cancel ")).focus()
    await tab.page.keyboard.press("Enter")
    await at_rest(tab)
    await expect(field(tab)).to_be_focused(timeout=MS)  # whoever had the focus there writes next
