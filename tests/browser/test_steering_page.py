"""Steering, earlier sessions and forks on the page, in a real browser, with scripted agents behind a real daemon."""

import json
from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.async_api import Locator, expect
from tests.support.browser_tab import MS, Tab
from tests.support.daemon_home import Home, running_daemon
from tests.support.person_client import Json, Person
from tests.support.scripted_agent import command, script
from tests.support.thread_client import Conversation, agents_config, open_thread

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

WAIT: tuple[Json, ...] = ({"say": "at work. "}, {"take_steering": "x"}, {"say": "now: "}, {"tell": "x"})


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where `helm` keeps its sessions."""
    return tmp_path_factory.mktemp("shelf")


@pytest.fixture(scope="module")
def shared_home(shelf: Path) -> Generator[Home]:
    config = agents_config(helm=command(steers=True, sessions=str(shelf)), plain=command())
    with running_daemon(config) as home:
        yield home


def room(tab: Tab) -> Locator:
    return tab.page.get_by_role("complementary", name="Selected thread")


def field(tab: Tab) -> Locator:
    return room(tab).get_by_label("Message", exact=True)


def said(tab: Tab, agent: str = "helm") -> Locator:
    return room(tab).get_by_role("article", name=agent).last


async def go(tab: Tab) -> None:
    """To the threads, by keyboard."""
    await tab.page.keyboard.press("g")
    await tab.page.keyboard.press("t")
    await expect(tab.page.get_by_role("region", name="Threads")).to_be_visible(timeout=MS)


async def opened(tab: Tab, talk: Conversation) -> None:
    await go(tab)
    await tab.page.locator(f'[data-list] [data-thread="{talk.id}"]').get_by_role("link").click()
    await expect(room(tab).get_by_role("region", name=f"Thread {talk.id}")).to_be_visible(timeout=MS)


async def write(tab: Tab, words: str) -> None:
    await field(tab).fill(words)
    await field(tab).press("Enter")
    await expect(field(tab)).to_have_value("", timeout=MS)


async def test_enter_while_the_agent_works_steers_it(
    shared_person: Person, workspace: Path, tab: Tab
) -> None:
    talk = await open_thread(shared_person, workspace, agent="helm")
    await opened(tab, talk)
    await write(tab, script(*WAIT))
    await tab.sees(said(tab), "at work.")
    await field(tab).fill("use tabs")
    await tab.sees(room(tab), "helm reads this now, while it works.")
    await expect(room(tab).get_by_role("radio", name="Steer", exact=True)).to_be_checked(timeout=MS)
    send = room(tab).get_by_role("button", name="Steer", exact=True)
    await expect(send).to_be_visible(timeout=MS)
    place, text = await send.bounding_box(), await field(tab).bounding_box()
    assert place, "the button has a place"
    assert text, "the field has a place"
    assert place["x"] >= text["x"] + text["width"] / 2, "at 1440 px it stays on the right"
    assert place["y"] < text["y"] + text["height"] + 60, "and does not wrap to a line of its own"
    await field(tab).press("Enter")
    await tab.sees(said(tab), 'now: "use tabs"')
    await expect(room(tab).get_by_role("article", name="helm")).to_have_count(2, timeout=MS)
    await tab.sees(room(tab).get_by_role("article", name="You").last, "to helm, while it worked")


async def test_a_queued_message_can_be_given_to_the_agent_now(
    shared_person: Person, workspace: Path, tab: Tab
) -> None:
    talk = await open_thread(shared_person, workspace, agent="helm")
    await opened(tab, talk)
    await write(tab, script(*WAIT))
    await tab.sees(said(tab), "at work.")
    await field(tab).fill("use tabs")
    await room(tab).get_by_role("radio", name="Queue").check()
    await tab.sees(room(tab), "helm gets this when it has finished.")
    await field(tab).press("Enter")
    queue = room(tab).get_by_role("region", name="Queued messages").get_by_role("listitem")
    await expect(queue).to_have_count(1, timeout=MS)
    await queue.get_by_role("button", name="Steer", exact=True).click()
    await tab.sees(said(tab), 'now: "use tabs"')
    await expect(queue).to_have_count(0, timeout=MS)


async def test_an_agent_that_cannot_be_steered_gets_the_message_afterwards_and_the_page_says_so(
    shared_person: Person, workspace: Path, tab: Tab
) -> None:
    talk = await open_thread(shared_person, workspace, agent="plain")
    await opened(tab, talk)
    await write(tab, script({"say": "at work"}, {"hang": True}))
    await tab.sees(said(tab, "plain"), "at work")
    await field(tab).fill("use tabs")
    await tab.sees(room(tab), "plain takes no message while it works. It gets this when it has finished.")
    await expect(room(tab).get_by_role("radio", name="Steer", exact=True)).to_have_count(0, timeout=MS)
    await field(tab).press("Enter")
    queue = room(tab).get_by_role("region", name="Queued messages").get_by_role("listitem")
    await expect(queue).to_have_count(1, timeout=MS)
    await expect(queue.get_by_role("button", name="Steer", exact=True)).to_have_count(0, timeout=MS)


def chunk(kind: str, words: str) -> Json:
    return {"sessionUpdate": kind, "content": {"type": "text", "text": words}}


async def test_an_earlier_session_is_continued_with_its_messages_and_then_forked(
    shared_person: Person, workspace: Path, tab: Tab, shelf: Path
) -> None:
    said_before = [
        chunk("user_message_chunk", "an old prompt"),
        chunk("agent_message_chunk", "an old answer"),
    ]
    kept = {"opened": {"cwd": str(workspace)}, "said": said_before}
    (shelf / "session-early.json").write_text(json.dumps(kept))
    await go(tab)
    await tab.page.keyboard.press("n")
    await room(tab).get_by_role("radio", name="helm").check()
    await room(tab).get_by_role("combobox", name="Folder").select_option("…")
    await room(tab).get_by_label("Path of the folder").fill(str(workspace))
    await room(tab).get_by_role("button", name="Continue an earlier session").click()
    earlier = room(tab).get_by_role("region", name="Earlier sessions")
    await earlier.get_by_role("button", name="about session-early").click()
    await tab.sees(said(tab), "an old answer")
    await tab.sees(room(tab).get_by_role("article", name="You").last, "an old prompt")
    await tab.sees(room(tab), "Continued from a session of helm, which sent its messages.")
    await room(tab).get_by_role("button", name="More about this thread").click()
    await tab.page.get_by_role("menuitem", name="Fork thread").click()
    await tab.sees(room(tab), "helm copied its session, so it knows this conversation.")
    await tab.sees(room(tab), "fork of another thread")
    await tab.sees(said(tab), "an old answer")
