"""Conversations on the page, in a real browser, with real agents behind a real daemon."""

import base64
import json
import re
import sqlite3
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest
from playwright.async_api import Browser, Locator, expect
from tests.support.axe import find_problems
from tests.support.browser_tab import MS, Tab, another_tab, signed_in
from tests.support.daemon_home import Home, eventually, find_processes, running_daemon, until
from tests.support.person_client import Json, Person, person_of
from tests.support.scripted_agent import command, script
from tests.support.thread_client import Conversation, agents_config, open_thread, text_of

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

MODES: Json = {
    "currentModeId": "ask",
    "availableModes": [
        {"id": "ask", "name": "Ask"},
        {"id": "code", "name": "Code"},
        {"id": "yolo", "name": "Yolo"},
    ],
}
LOGINS = [{"id": "key", "name": "With a key", "description": "Set KEY first."}]
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
CONFIG = agents_config(scripted=command(modes=MODES), locked=command(logins=LOGINS, login_needed=True))


@pytest.fixture(scope="module")
def shared_home() -> Generator[Home]:
    with running_daemon(CONFIG) as home:
        yield home


def room(tab: Tab) -> Locator:
    return tab.page.get_by_role("complementary", name="Selected thread")


def field(tab: Tab) -> Locator:
    return room(tab).get_by_label("Message", exact=True)


def pane(tab: Tab) -> Locator:
    return room(tab).get_by_role("log", name="Conversation")


def said(tab: Tab) -> Locator:
    """What the scripted agent says now; what it was told to stands in the message above."""
    return pane(tab).get_by_role("article", name="scripted").last


def answers(tab: Tab) -> Locator:
    return room(tab).get_by_role("group", name="Your answer")


def row(tab: Tab, thread: str) -> Locator:
    return tab.page.locator(f'[data-list] [data-thread="{thread}"]')


async def go(tab: Tab) -> None:
    """To the threads, by keyboard."""
    await tab.page.keyboard.press("g")
    await tab.page.keyboard.press("t")
    await expect(tab.page.get_by_role("region", name="Threads")).to_be_visible(timeout=MS)


async def opened(tab: Tab, talk: Conversation) -> None:
    await go(tab)
    await row(tab, talk.id).get_by_role("link").click()
    await expect(room(tab).get_by_role("region", name=f"Thread {talk.id}")).to_be_visible(timeout=MS)


async def say(tab: Tab, *steps: Json) -> None:
    await field(tab).fill(script(*steps))
    await field(tab).press("Enter")
    await expect(field(tab)).to_have_value("", timeout=MS)


async def ready(tab: Tab, name: str) -> Locator:
    """An answer's button, once its guard lets a hand act."""
    button = answers(tab).get_by_role("button", name=name, exact=True)
    await expect(button).not_to_have_attribute("aria-disabled", "true", timeout=MS)
    return button


async def test_a_newcomer_talks_with_the_demo_agent(
    shared_home: Home, shared_person: Person, browser: Browser, workspace: Path
) -> None:
    """Begin, see it stream, approve its edit, cancel, switch, reload, find, export."""
    async with signed_in(browser, shared_person) as tab:
        await go(tab)
        await tab.page.keyboard.press("n")
        await room(tab).get_by_role("radio", name="Demo").check()
        await room(tab).get_by_role("combobox", name="Folder").select_option("…")
        await room(tab).get_by_label("Path of the folder").fill(str(workspace))
        await field(tab).fill("edit")
        await field(tab).press("Enter")

        # it streams
        await tab.sees(pane(tab), "I will write down what we talk about.")
        times = pane(tab).get_by_role("article", name="demo").locator("time")
        await expect(times.first).to_have_text(re.compile(r"^\d\d:\d\d$"), timeout=MS)  # as everywhere
        await expect(room(tab).get_by_role("button", name="Stop")).to_be_visible(timeout=MS)
        thread = (await shared_person.get("threads", workspace=str(workspace)))[0]["id"]
        await expect(row(tab, thread)).to_have_attribute("data-state", "needs you", timeout=MS)
        await tab.sees(answers(tab), "Allow once")

        # its edit is approved where it stands, by keyboard
        await ready(tab, "Allow once")
        assert not (workspace / "handrail-demo-notes.md").exists()
        await field(tab).press("Alt+KeyA")
        toast = await tab.remarks.get_by_role("listitem").first.bounding_box()
        composer = await room(tab).bounding_box()
        assert toast is not None
        assert composer is not None
        assert toast["x"] + toast["width"] <= composer["x"], "it covers what is written"
        await tab.sees(pane(tab), "Written.")
        await tab.sees(pane(tab), "Write handrail-demo-notes.md")  # relative to the folder
        assert await field(tab).input_value() == ""
        assert "Notes of the demo agent" in (workspace / "handrail-demo-notes.md").read_text()

        # what the turn changed is told, and undone
        changes = pane(tab).get_by_role("group", name="Changed files")
        await tab.sees(changes, "1 file changed")
        await changes.get_by_role("button", name="Undo…").click()
        undo = tab.page.get_by_role("dialog", name="Undo")
        await undo.get_by_role("button", name=re.compile("^Undo 1 file")).click()
        await until(lambda: not (workspace / "handrail-demo-notes.md").exists())
        await tab.page.get_by_role("dialog", name="Undone").get_by_role("button", name="Close").click()
        await tab.sees(changes, "nothing to undo")

        # a file is mentioned by some of its letters, and an image goes along
        (workspace / "orchard.py").write_text("pears = 4\n")
        await field(tab).press_sequentially("see @rchard")
        await tab.sees(room(tab).get_by_role("listbox", name="Files"), "orchard.py")
        await field(tab).press("Enter")
        await expect(field(tab)).to_have_value("see @orchard.py ")
        await (
            room(tab)
            .locator("input[type=file]")
            .set_input_files({"name": "dot.png", "mimeType": "image/png", "buffer": PNG})
        )
        await field(tab).press("Enter")
        shown = pane(tab).get_by_role("article", name="You").last
        await expect(shown.locator("img")).to_be_visible(timeout=MS)
        await expect(row(tab, thread)).not_to_have_attribute("data-state", "running", timeout=MS)
        await expect(row(tab, thread)).not_to_have_attribute("data-state", "running", timeout=MS)

        # it is cancelled
        await field(tab).fill("long")
        await field(tab).press("Enter")
        await tab.sees(pane(tab), "Paragraph 2:")
        await field(tab).press("Escape")
        await tab.sees(room(tab), "Escape again to stop the agent")
        await tab.page.keyboard.press("Escape")
        await expect(row(tab, thread)).to_have_attribute("data-state", "cancelled", timeout=MS)
        await expect(pane(tab)).not_to_contain_text("Paragraph 60:")

        # another thread, and back: what was being written is still there
        await field(tab).fill("half a thought")
        other = await open_thread(shared_person, workspace, title="Another thread")
        await row(tab, other.id).get_by_role("link").click()
        await expect(room(tab).get_by_role("heading", name="Another thread")).to_be_visible(timeout=MS)
        await expect(field(tab)).to_have_value("")
        await row(tab, thread).get_by_role("link").click()
        await expect(field(tab)).to_have_value("half a thought", timeout=MS)
        await tab.sees(pane(tab), "Paragraph 2:")

        # a reload: another tab signs it in, and all of it is there
        watching = await another_tab(tab.page.context, f"{shared_home.url}/threads")
        await tab.page.reload()
        await tab.sees(pane(tab), "Paragraph 2:")
        await expect(field(tab)).to_have_value("half a thought", timeout=MS)
        await watching.page.close()

        # a word is found, and looked at
        await tab.page.locator("#filter").fill("fibonacci")
        found = tab.page.get_by_role("list", name="Found")
        await tab.sees(found, "fibonacci")
        await found.locator(f'[data-thread="{thread}"]').get_by_role("link").first.click()
        await expect(tab.page).to_have_url(re.compile(rf"/t/{thread}\?q=fibonacci#m\w+$"), timeout=MS)
        await expect(pane(tab).locator(".found")).to_contain_text("fibonacci", timeout=MS)
        await tab.page.locator("#filter").fill("")

        # it is exported
        for word, ending in (("Export as Markdown", ".md"), ("Export as JSON", ".json")):
            async with tab.page.expect_download() as download:
                await room(tab).get_by_role("button", name="More about this thread").click()
                await tab.page.get_by_role("menuitem", name=word).click()
            saved = await (await download.value).path()
            assert (await download.value).suggested_filename.endswith(ending)
            assert "Paragraph 2" in saved.read_text()


WATCH_START = """() => {
    window.waited = null;
    addEventListener("keydown", ({ key }) => {
        if (key !== "Enter") return;
        const began = performance.now();
        const watch = new MutationObserver(() => {
            if (!document.querySelector("[data-start], [data-doing]")) return;
            window.waited = performance.now() - began;
            watch.disconnect();
        });
        watch.observe(document.body, { subtree: true, childList: true });
    }, { capture: true, once: true });
}"""


async def test_what_happens_is_shown_within_200_ms_of_a_message(
    shared_home: Home, shared_person: Person, browser: Browser, workspace: Path
) -> None:
    gone = workspace / "gone"
    gone.mkdir()
    for folder in (workspace, gone):
        await shared_person.post("folders/trust", {"folder": str(folder), "config": None})
    await open_thread(shared_person, gone)
    gone.rmdir()
    async with signed_in(browser, shared_person) as tab:
        await go(tab)
        await tab.page.keyboard.press("n")
        await room(tab).get_by_role("radio", name="Demo").check()
        folders = room(tab).get_by_role("combobox", name="Folder")
        await expect(folders.locator(f'option[value="{workspace}"]')).to_have_count(1, timeout=MS)
        await expect(folders.locator(f'option[value="{gone}"]')).to_have_count(0, timeout=MS)
        await folders.select_option("…")
        await room(tab).get_by_label("Path of the folder").fill(str(workspace))
        waits: list[float] = []
        for text in ("hello", "hello again"):
            await tab.page.evaluate(WATCH_START)
            await field(tab).fill(text)
            await field(tab).press("Enter")
            waits.append(await eventually(lambda: tab.page.evaluate("window.waited")))
            await expect(pane(tab).get_by_role("article", name="demo")).to_have_count(len(waits), timeout=MS)
            await expect(room(tab).get_by_role("button", name="Stop")).to_have_count(0, timeout=MS)
            await expect(room(tab).locator("[data-start], [data-doing]")).to_have_count(0, timeout=MS)
    assert 0 < min(waits) < 200, waits  # one of them, since others may be using the processors


async def test_a_search_that_failed_is_repeated_while_its_words_stand(
    shared_person: Person, workspace: Path, tab: Tab
) -> None:
    talk = await open_thread(shared_person, workspace)
    await talk.act({"say": "A kittiwake."})
    await go(tab)
    await tab.page.route("**/api/search?*", lambda route: route.abort())
    await tab.page.locator("#filter").fill("kittiwake")
    await tab.sees(tab.page.get_by_role("region", name="Threads"), "The daemon does not answer.")
    await tab.page.unroute("**/api/search?*")
    await tab.sees(tab.page.get_by_role("list", name="Found"), "kittiwake")


async def test_words_come_as_they_are_said_and_markup_stays_words(
    shared_person: Person, workspace: Path, tab: Tab
) -> None:
    talk = await open_thread(shared_person, workspace)
    await opened(tab, talk)
    await say(
        tab,
        {"think": "Hm. "},
        {"say": "# Title\n\nSome **bold** words and <img src=x onerror=alert(1)>\n\n"},
        {"say": "word{n} ", "times": 40, "every": 0.01},
        {"plan": [{"content": "look", "status": "completed"}, "do"]},
        {"usage": {"used": 1200, "size": 2000, "cost": {"amount": 0.25, "currency": "USD"}}},
        {"update": {"sessionUpdate": "of_no_known_kind", "x": 1}},
        {"hang": True},
    )

    await tab.sees(said(tab), "word39 ")
    await expect(said(tab).get_by_role("heading", name="Title")).to_be_visible(timeout=MS)
    await expect(said(tab).locator("strong")).to_have_text("bold", timeout=MS)
    assert await said(tab).locator("img").count() == 0
    await tab.sees(said(tab), "<img src=x onerror=alert(1)>")
    await tab.sees(said(tab).get_by_role("region", name="Plan"), "1 of 2")
    await tab.sees(said(tab), "of_no_known_kind")
    await tab.sees(room(tab).locator("header").first, "1.2k / 2k")
    await tab.sees(room(tab).locator("header").first, "$0.25")
    await room(tab).get_by_role("button", name="Stop").click()
    await tab.sees(said(tab), "cancelled")


async def test_what_an_agent_runs_is_a_card_with_output_and_a_way_out(
    shared_person: Person, workspace: Path, tab: Tab
) -> None:
    talk = await open_thread(shared_person, workspace)
    await opened(tab, talk)
    line = "echo first; exec sleep 600"
    await say(
        tab,
        {"terminal": {"command": "sh", "args": ["-c", line]}, "as": "t"},
        {"wait_for_exit": "$t.terminalId", "as": "e"},
        {"say": "over"},
    )
    await (await ready(tab, "Allow once")).click()
    card = room(tab).get_by_role("group", name=re.compile("^Call c"))
    log = card.get_by_role("log", name="Output")
    await tab.sees(log, "first")
    await expect(card).not_to_contain_text("no longer waiting")  # it waits for the exit of its terminal
    whole, printed = await card.bounding_box(), await log.bounding_box()
    assert whole is not None
    assert printed is not None
    assert whole["y"] + whole["height"] - printed["y"] - printed["height"] < 40, (
        "there is empty room below the output"
    )
    await card.get_by_role("button", name="Cancel").click()

    await tab.sees(said(tab), "over")
    await tab.sees(card, "cancelled")
    await card.get_by_role("link").first.click()
    await tab.sees(card.get_by_role("log", name="Output"), "first")
    await tab.sees(card.get_by_role("region", name="Outcome"), "cancelled by you")


async def test_a_denial_reaches_the_agent_and_a_permission_is_its_own_word(
    shared_person: Person, workspace: Path, tab: Tab
) -> None:
    talk = await open_thread(shared_person, workspace)
    await opened(tab, talk)
    call = {"toolCallId": "1", "title": "Paint the house", "kind": "other"}
    await say(tab, {"ask": {"toolCall": call}, "as": "x"}, {"tell": "x"})
    await tab.sees(said(tab), "Paint the house")
    await (await ready(tab, "Deny")).click()

    await tab.sees(said(tab), '{"outcome": {"outcome": "selected", "optionId": "no"')


async def test_a_form_is_filled_in_and_its_values_reach_the_agent(
    shared_person: Person, workspace: Path, tab: Tab
) -> None:
    talk = await open_thread(shared_person, workspace)
    await opened(tab, talk)
    schema = {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "title": "Name"},
            "loud": {"type": "boolean", "title": "Loud"},
        },
    }
    await say(
        tab, {"elicit": {"message": "Who are you?", "requestedSchema": schema}, "as": "x"}, {"tell": "x"}
    )
    await tab.sees(said(tab), "Who are you?")
    await ready(tab, "Answer")
    await answers(tab).get_by_role("button", name="Answer").click()
    await tab.sees(answers(tab), "Name is required")
    await answers(tab).get_by_label("Name").fill("Ada")
    await answers(tab).get_by_label("Loud").check()
    await (await ready(tab, "Answer")).click()

    await tab.sees(said(tab), '"Ada"')


async def test_a_second_message_is_queued_sent_or_dropped(
    shared_person: Person, workspace: Path, tab: Tab
) -> None:
    talk = await open_thread(shared_person, workspace)
    await opened(tab, talk)
    await say(tab, {"say": "first"}, {"hang": True})
    await tab.sees(said(tab), "first")
    queue = room(tab).get_by_role("region", name="Queued messages").get_by_role("listitem")

    for word in ("second", "third"):
        await field(tab).fill(script({"say": f"{word} answer"}))
        await room(tab).get_by_role("radio", name="Queue").check()
        await field(tab).press("Enter")
        await expect(field(tab)).to_have_value("", timeout=MS)
    await expect(queue).to_have_count(2, timeout=MS)
    await queue.last.get_by_role("button", name="Drop this message").click()
    await expect(queue).to_have_count(1, timeout=MS)
    await queue.first.get_by_role("button", name="Send now").click()

    await tab.sees(said(tab), "second answer")
    await expect(queue).to_have_count(0, timeout=MS)
    await expect(pane(tab).get_by_role("article", name="scripted")).to_have_count(2, timeout=MS)

    await say(tab, {"say": "fourth"}, {"hang": True})
    await tab.sees(said(tab), "fourth")
    await field(tab).fill(script({"say": "fifth answer"}))
    await room(tab).get_by_role("radio", name="Replace").check()
    await field(tab).press("Enter")
    await tab.sees(said(tab), "fifth answer")


async def test_modes_are_chosen_and_threads_forked_renamed_and_deleted(
    shared_person: Person, workspace: Path, tab: Tab
) -> None:
    talk = await open_thread(shared_person, workspace, title="The original")
    await opened(tab, talk)
    await say(tab, {"say": "an answer"})
    await tab.sees(said(tab), "an answer")
    mode, asks_nobody = room(tab).get_by_role("combobox", name="Mode"), room(tab).get_by_text("asks nobody")
    await mode.select_option("Yolo")
    await expect(asks_nobody).to_be_visible(timeout=MS)
    await say(
        tab, {"tool_call": {"toolCallId": "r", "title": "make", "kind": "execute", "status": "completed"}}
    )
    await tab.sees(said(tab), "unasked")
    await room(tab).get_by_role("button", name="Switch to “Ask”").click()
    await expect(asks_nobody).to_have_count(0, timeout=MS)
    await mode.select_option("Code")

    async def chosen() -> Json | None:
        seen = await talk.look()
        return seen if seen["state"]["modes"]["current"] == "code" else None

    await eventually(chosen)
    mine = pane(tab).get_by_role("article", name="You").first
    await mine.hover()
    await mine.get_by_role("button", name="Edit and send again, in a fork").click()
    await mine.get_by_label("Say it another way").fill(script({"say": "another answer"}))
    await mine.get_by_label("Say it another way").press("Enter")
    await tab.sees(said(tab), "another answer")
    await expect(pane(tab).get_by_role("article")).to_have_count(2, timeout=MS)
    await tab.sees(room(tab).locator("header").first, "fork of another thread")

    await room(tab).get_by_role("button", name="More about this thread").click()
    await tab.page.get_by_role("menuitem", name="Rename").click()
    await room(tab).get_by_label("Title").fill("The branch")
    await room(tab).get_by_label("Title").press("Enter")
    threads = tab.page.get_by_role("region", name="Threads")
    await tab.sees(threads, "The branch")

    await room(tab).get_by_role("button", name="More about this thread").click()
    await tab.page.get_by_role("menuitem", name="Delete…").click()
    await room(tab).get_by_role("button", name="Delete", exact=True).click()
    await expect(threads).not_to_contain_text("The branch", timeout=MS)
    await tab.sees(threads, "The original")


async def test_what_goes_wrong_is_said_and_the_thread_goes_on(
    shared_person: Person, workspace: Path, tab: Tab
) -> None:
    talk = await open_thread(shared_person, workspace)
    await opened(tab, talk)
    await say(tab, {"say": "half a sent"}, {"crash": 3, "stderr": ["last", "words"]})
    error = pane(tab).get_by_role("group", name="Error")
    await expect(error).to_be_visible(timeout=MS)
    await error.locator("summary").click()
    await tab.sees(error.locator("pre"), "words")
    await say(tab, {"say": "here again"})
    await tab.sees(said(tab), "here again")

    locked = await open_thread(shared_person, workspace, agent="locked")
    await opened(tab, locked)
    await say(tab, {"say": "never"})
    await expect(pane(tab).get_by_role("button", name="With a key")).to_be_visible(timeout=MS)


async def test_two_tabs_show_the_same_words_and_an_answer_in_one_clears_the_other(
    shared_home: Home, shared_person: Person, browser: Browser, workspace: Path
) -> None:
    talk = await open_thread(shared_person, workspace)
    async with signed_in(browser, shared_person) as one:
        await opened(one, talk)
        other = await another_tab(one.page.context, f"{shared_home.url}/t/{talk.id}")
        await expect(field(other)).to_be_visible(timeout=MS)
        await say(one, {"write": {"path": str(workspace / "a.txt"), "content": "a"}}, {"say": "done it"})
        await ready(other, "Allow once")
        await (await ready(one, "Allow once")).click()

        await expect(answers(other)).to_have_count(0, timeout=MS)
        await other.sees(said(other), "done it")
        assert (workspace / "a.txt").read_text() == "a"
        await other.page.close()


def _long(count: int) -> Json:
    """An exported conversation of so many messages."""
    said = [
        {
            "role": "user" if at % 2 == 0 else "assistant",
            "agent": "scripted",
            "opened_at": 1_700_000_000_000 + at,
            "ended_at": 1_700_000_000_000 + at,
            "stop": None if at % 2 == 0 else "end_turn",
            "parts": [{"kind": "text", "text": f"Message {at}. " + "It goes on for a while. " * (at % 7)}],
        }
        for at in range(count)
    ]
    thread = {
        "title": "Very long",
        "agent": "scripted",
        "created_at": 1_700_000_000_000,
        "updated_at": 1_700_000_000_000,
    }
    return {"handrail": 1, "thread": thread, "messages": said}


async def test_five_thousand_messages_are_imported_opened_and_an_old_one_is_found(
    shared_person: Person, tab: Tab, tmp_path: Path
) -> None:
    file = tmp_path / "long.json"
    file.write_text(json.dumps(_long(5000)))
    await go(tab)
    await tab.page.get_by_role("region", name="Threads").locator('input[type="file"]').set_input_files(file)
    await tab.sees(pane(tab), "Message 4999.")
    drawn = await pane(tab).locator("[data-message]").count()
    assert drawn < 90

    thread = tab.page.url.rpartition("/")[2]
    old = (await shared_person.get(f"threads/{thread}/messages", before=1000, limit=1))["said"][0]
    words = old["parts"][0]["text"].partition(".")[0]
    await tab.page.locator("#filter").fill(f"{words.replace('Message ', '')} message")
    hit = tab.page.locator(f'[data-hit="{old["id"]}"]')
    await hit.get_by_role("link").click()
    await expect(pane(tab).locator(".found")).to_contain_text(f"{words}.", timeout=MS)
    await expect(pane(tab)).not_to_contain_text("Message 4999.")

    other = await open_thread(shared_person, title="Elsewhere")  # and back: it is read on where it was left
    await tab.page.locator("#filter").fill("")
    await row(tab, other.id).get_by_role("link").click()
    await expect(room(tab).get_by_role("heading", name="Elsewhere")).to_be_visible(timeout=MS)
    await row(tab, thread).get_by_role("link").click()
    await expect(pane(tab).get_by_text(f"{words}.").first).to_be_in_viewport(timeout=MS)
    await room(tab).get_by_role("button", name="To the end").click()
    await tab.sees(pane(tab), "Message 4999.")


async def test_a_daemon_that_is_killed_while_an_agent_speaks_leaves_an_honest_thread(
    browser: Browser, workspace: Path
) -> None:
    with running_daemon(CONFIG) as home:
        person = person_of(home)
        async with signed_in(browser, person) as tab:
            talk = await open_thread(person, workspace)
            await opened(tab, talk)
            await say(tab, {"say": "word{n} ", "times": 100_000, "every": 0.02})
            await tab.sees(said(tab), "word20 ")
            await written(home, "word20 ")  # a kill may cost what was shown in the last moment
            home.kill()
            home.up()

            await tab.sees(said(tab), "interrupted")
            await tab.sees(said(tab), "word20 ")
            last = int(text_of((await talk.look())["said"][-1]).split()[-1].removeprefix("word"))
            await tab.sees(said(tab), f"word{last}")
            await expect(said(tab)).not_to_contain_text(f"word{last + 1}")
            await say(tab, {"say": "and on it goes"})
            await tab.sees(said(tab), "and on it goes")


async def test_commands_whose_agent_ended_with_the_daemon_are_stopped_with_one_button(
    browser: Browser, workspace: Path
) -> None:
    marks = ("69.1111", "69.1112")
    with running_daemon(CONFIG) as home:
        person = person_of(home)
        talk = await open_thread(person, workspace)
        steps = ({"terminal": {"command": "sleep", "args": [mark]}, "as": mark} for mark in marks)
        await talk.prompt(*steps, {"hang": True})
        for mark in marks:
            await person.allow(mark)
        await until(lambda: len(find_processes("sleep\x0069.111")) == 2)
        home.kill()
        home.up()
        async with signed_in(browser, person) as tab:
            await (
                tab.page.get_by_role("navigation", name="Views").get_by_role("link", name="Terminals").click()
            )
            notice = tab.page.get_by_role("group", name="Commands without their agent")
            await tab.sees(notice, "2 commands run on, though their agents ended with the daemon.")
            await expect(tab.running.get_by_text("agent gone")).to_have_count(2)
            await notice.get_by_role("button", name="Stop them all").click()
            await notice.get_by_role("button", name="End all of this?").click()
            await expect(notice).to_have_count(0)
            await until(lambda: not find_processes("sleep\x0069.111"))


async def written(home: Home, words: str) -> None:
    """Wait until the daemon has written these streamed words to its database."""

    async def look() -> bool:
        with closing(sqlite3.connect(f"file:{home.places.database}?mode=ro", uri=True)) as database:
            pieces = database.execute("SELECT text FROM parts UNION ALL SELECT text FROM growths").fetchall()
        return any(words in text for (text,) in pieces)

    await eventually(look)


@pytest.mark.parametrize("width", [1440, 900, 640, 360])
async def test_the_page_fits_and_axe_finds_nothing_serious(
    shared_person: Person, workspace: Path, tab: Tab, width: int
) -> None:
    talk = await open_thread(shared_person, workspace, title="A thread to look at")
    await talk.act(
        {"think": "hm"}, {"say": "Some `code` and a [link](https://example.org).\n\n```py\nx = 1\n```\n"}
    )
    await opened(tab, talk)
    await tab.sees(pane(tab), "Some code and a link.")
    await tab.page.set_viewport_size({"width": width, "height": 800})
    await expect(field(tab)).to_be_visible(timeout=MS)

    wide = await room(tab).evaluate("one => one.scrollWidth - one.clientWidth")
    assert wide == 0
    assert await find_problems(tab.page, "thread", [width]) == []


async def test_threads_are_reached_and_left_by_keyboard(
    shared_person: Person, workspace: Path, tab: Tab
) -> None:
    first = await open_thread(shared_person, workspace, title="First")
    second = await open_thread(shared_person, workspace, title="Second")
    await go(tab)
    await expect(row(tab, second.id)).to_be_visible(timeout=MS)
    await row(tab, second.id).get_by_role("link").focus()
    await tab.page.keyboard.press("j")
    await expect(tab.page).to_have_url(re.compile(first.id), timeout=MS)
    await expect(room(tab).get_by_role("heading", name="First")).to_be_visible(timeout=MS)
    await tab.page.keyboard.press("i")
    await expect(field(tab)).to_be_focused(timeout=MS)
    await tab.page.keyboard.press("Escape")
    await tab.page.keyboard.press("?")
    await tab.sees(tab.page.get_by_role("dialog", name="Keys"), "go to the threads")
