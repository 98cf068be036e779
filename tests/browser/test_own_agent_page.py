"""What an operation is doing, on the page: the line above the composer, its tree, and cancelling any part of it.

In a real browser behind a real daemon: with a scripted agent that tells of its activities at its own pace, and with our own
agent and a scripted model.
"""

import json
import re
from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.async_api import Browser, Locator, expect
from tests.browser.test_threads_page import answers, field, opened, pane, ready, room, say
from tests.support.axe import find_problems
from tests.support.browser_tab import MS, Tab, another_tab, signed_in
from tests.support.daemon_home import Home, running_daemon
from tests.support.model_server.script import Call, Turn, script
from tests.support.model_server.server import ModelServer, model_server
from tests.support.person_client import Json, Person
from tests.support.scripted_agent import ACTIVITY_CAPABILITIES, command
from tests.support.thread_client import Conversation, agents_config, open_thread

pytestmark = [pytest.mark.anyio, pytest.mark.browser]


def config(model: ModelServer) -> str:
    """A scripted agent that tells what it is busy with, one that does not, and our own with a scripted model."""
    env = {
        "OPENAI_BASE_URL": f"{model.url}/v1",
        "OPENAI_API_KEY": "of-nobody",
        "HANDRAIL_MODEL": "openai:scripted",
    }
    words = ", ".join(f"{name} = {json.dumps(value)}" for name, value in env.items())
    own = f'[[agents]]\nname = "handrail"\nenv = {{ {words} }}\n'
    return agents_config(telling=command(capabilities=ACTIVITY_CAPABILITIES), quiet=command()) + own


ROOT: Json = {"begin": "a0", "sort": "operation", "title": "Do it"}
STEP: Json = {"begin": "a1", "in": "a0", "sort": "step", "title": "Step 1"}
MODEL: Json = {"begin": "a2", "in": "a1", "sort": "model", "title": "some:model"}


@pytest.fixture(scope="module")
def model() -> Generator[ModelServer]:
    with model_server() as model:
        yield model
        assert model.refused == []


@pytest.fixture(scope="module")
def shared_home(model: ModelServer) -> Generator[Home]:
    with running_daemon(config(model)) as home:
        yield home


def strip(tab: Tab) -> Locator:
    return room(tab).get_by_role("region", name="What it is doing")


def line(tab: Tab) -> Locator:
    return strip(tab).locator("button[aria-expanded]").last


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
    talk = await open_thread(person, workspace, agent="telling")
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

    await tab.sees(line(tab), "Step 1 model asked")
    await expect(strip(tab).get_by_role("img", name="at work")).to_be_visible(timeout=MS)
    await tab.sees(tab.page.get_by_role("banner"), "1 agent at work")
    before = await strip(tab).bounding_box()
    await unfold(tab)
    await expect(node(tab, "a2").locator("[data-turns]")).to_be_visible(timeout=MS)
    await expect(node(tab, "a1").locator("[data-turns]")).to_have_count(0)

    await cancel(tab, "a2")
    await ended(tab, "a2", "cancelled")
    await tab.sees(node(tab, "a2"), "cancelled by a person on the page")
    await tab.sees(line(tab), "2 calls")
    await expect(strip(tab).locator("[data-activity] [data-turns]")).to_have_count(2, timeout=MS)

    await cancel(tab, "c1")
    await tab.sees(told(tab), "1 step · 2 calls")
    await tab.sees(told(tab), "2 cancelled")
    await at_rest(tab)
    await tab.sees(tab.page.get_by_role("banner"), "no agent at work")
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

    await tab.sees(line(tab), "Step 1 thinking")
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
        await one.sees(line(one), "model asked")
        other = await another_tab(one.page.context, f"{shared_home.url}/t/{talk.id}")
        await other.sees(line(other), "Step 1 model asked")

        await one.page.reload()
        await one.sees(line(one), "Step 1 model asked")
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

    await tab.sees(line(tab), "Step 1 model asked · 1 sub-agent")
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
    talk = await open_thread(shared_person, workspace, agent="quiet")
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

    await line(tab).focus()
    await tab.page.keyboard.press("Enter")
    await expect(strip(tab).get_by_role("region", name="Activities")).to_be_visible(timeout=MS)

    assert await field(tab).bounding_box() == place
    wide = await room(tab).evaluate("one => one.scrollWidth - one.clientWidth")
    assert wide == 0
    assert await find_problems(tab.page, "activities", [width]) == []

    await node(tab, "c1").get_by_role("button", name=re.compile("^Cancel ")).focus()
    await tab.page.keyboard.press("Enter")
    await at_rest(tab)
    await expect(field(tab)).to_be_focused(timeout=MS)  # whoever had the focus there writes next


async def with_ours(tab: Tab, person: Person, workspace: Path, *turns: Turn) -> Conversation:
    """A new conversation with our own agent, whose model answers so."""
    talk = await open_thread(person, workspace, agent="handrail")
    await opened(tab, talk)
    await tell(tab, *turns)
    return talk


async def tell(tab: Tab, *turns: Turn) -> None:
    await field(tab).fill(script(*turns))
    await field(tab).press("Enter")
    await expect(field(tab)).to_have_value("", timeout=MS)


def sort(tab: Tab, name: str, how: str = "open") -> Locator:
    return room(tab).locator(f'[data-sort="{name}"][data-how="{how}"]')


def answer(tab: Tab) -> Locator:
    return pane(tab).get_by_role("article", name="handrail").last


async def test_our_agents_steps_model_requests_and_calls_are_seen_and_a_call_is_cancelled_by_itself(
    shared_person: Person, workspace: Path, tab: Tab, model: ModelServer
) -> None:
    edit = Call("write_file", {"path": "a.txt", "content": "a"})
    await with_ours(
        tab,
        shared_person,
        workspace,
        Turn("I look around.", "list_files", {"path": "."}, hold="first"),
        Turn("Two things at once.", calls=(edit, Call("execute_command", {"command": "sleep 1000"}))),
        Turn("That is all.", hold="last"),
    )

    await tab.sees(line(tab), "Step 1 model asked")
    await unfold(tab)
    await expect(sort(tab, "model").locator("[data-turns]")).to_be_visible(timeout=MS)
    model.let_go("first")

    # both calls ask, and each is answered where it stands
    await tab.sees(line(tab), "2 calls")
    await tab.sees(line(tab), "2 wait for you")
    await tab.sees(sort(tab, "call").first, "waits for you")
    await (await ready(tab, "Allow once")).click()
    await tab.sees(answers(tab), "Allow once")
    await tab.sees(line(tab), "1 waits for you")
    await (await ready(tab, "Allow once")).click()
    await tab.sees(line(tab), "Step 2 1 call")
    assert (workspace / "a.txt").read_text() == "a"
    await expect(line(tab)).not_to_contain_text("for you", timeout=MS)

    # the one that hangs is cancelled by itself, and the agent goes on
    sleeping = sort(tab, "call").filter(has_text="sleep 1000")
    await sleeping.hover()
    await sleeping.get_by_role("button", name=re.compile("^Cancel ")).click()
    await expect(sort(tab, "call", "cancelled")).to_contain_text("sleep 1000", timeout=MS)
    await tab.sees(line(tab), "Step 3 model asked")
    assert "cancelled" in json.dumps(model.asked[-1].body["messages"][-1]).lower()
    model.let_go("last")

    await tab.sees(answer(tab), "That is all.")
    await at_rest(tab)
    await tab.sees(told(tab), "3 steps · 3 calls")
    await tab.sees(told(tab), "1 cancelled")
    await expect(answer(tab)).not_to_contain_text("cancelled with its operation")


async def test_cancelling_a_model_request_closes_it_keeps_its_words_and_the_next_prompt_works(
    shared_person: Person, workspace: Path, tab: Tab, model: ModelServer
) -> None:
    talk = await with_ours(tab, shared_person, workspace, Turn("Half a sentence", hang=True))
    await tab.sees(answer(tab), "Half a sentence")
    await unfold(tab)
    asking = sort(tab, "model")
    await asking.hover()
    await asking.get_by_role("button", name=re.compile("^Cancel ")).click()

    await at_rest(tab)
    await model.until(lambda: model.asked[-1].ended == "left")
    await tab.sees(answer(tab), "Half a sentence")
    await tab.sees(answer(tab), "cancelled")
    await told(tab).click()
    await expect(sort(tab, "model", "cancelled")).to_contain_text("by a person on the page", timeout=MS)

    await tell(tab, Turn("Whole again."))
    await tab.sees(answer(tab), "Whole again.")
    await at_rest(tab)
    await tab.page.keyboard.press("Escape")  # another room, and back: it is asked for anew
    await tab.page.keyboard.press("g")
    await tab.page.keyboard.press("i")
    await expect(room(tab)).to_have_count(0, timeout=MS)
    await opened(tab, talk)
    await tab.sees(answer(tab), "Whole again.")
    await expect(pane(tab).locator("summary", has_text="What it did")).to_have_count(2, timeout=MS)
    await at_rest(tab)
