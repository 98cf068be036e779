"""The page in Chromium while the SDK's client talks to the real daemon: seen, decided, cancelled, completed."""

import os
import signal
import time
from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect
from tests.support.browser_tab import MS, Tab, another_tab, signed_in
from tests.support.client_transcripts import write_claude
from tests.support.daemon_home import Home, find_processes, running_daemon, until
from tests.support.hook_client import HookClient
from tests.support.mcp_client import Transport, agent
from tests.support.person_client import Person

pytestmark = pytest.mark.browser
transports = pytest.mark.parametrize("transport", ["stdio", "http"])

AT_ONCE = 2.0
"""Seconds from a click to the client's answer, on a machine that does other things too."""
FOLLOWS = 0.3
"""Seconds within which another tab shows what was decided in this one."""
ROUNDS = 8
"""Decisions at most until one was followed so soon: beside much else, a machine may be late with some of them."""


@pytest.fixture(scope="module")
def shared_home() -> Generator[Home]:
    with running_daemon("[command]\nstop_grace = 1.0\n") as home:
        yield home


@transports
async def test_complete_returns_what_was_printed_while_the_process_goes_on(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab, transport: Transport
) -> None:
    command = "echo first words; while true; do echo tick; sleep 0.0511; done"
    async with agent(shared_home, workspace, shared_person, transport=transport) as client:
        asked = client.ask("execute_command", command=command, wait_seconds=50)
        call = (await shared_person.question("first words"))["call_id"]
        await tab.sees(tab.needs_you, command)
        await tab.sees(tab.detail, command)
        await tab.press("Allow once")
        await tab.reads(call, "running")
        await expect(tab.running.locator(f'[data-call="{call}"]')).to_be_visible(timeout=MS)
        await tab.open(call)
        await tab.sees(tab.output, "first words")
        ticks = await three_readings(tab, call)
        await tab.complete("Return output so far, keep it running")
        told = await asked.told()
        alive = find_processes("sleep 0.0511")
        printed = await shared_person.has_printed(call)
        grown = await shared_person.has_printed(call, more_than=printed + 20)
        await tab.sees(tab.detail, "completed, runs on")
        await tab.press("Stop it")
        await until(lambda: not find_processes("sleep 0.0511"))

    assert len(set(ticks)) == 3, "the timer ticks"
    assert (told.status, told.is_error) == ("force-completed", False)
    assert told.data["exit_code"] is None
    assert told.data["output_captured"] is True
    assert told.data["output"].startswith("first words\ntick\n")
    assert "first words" in told.text
    assert alive
    assert grown > printed


async def three_readings(tab: Tab, call: str) -> list[str]:
    """What a timer shows, each time after it has changed."""
    readings = [await tab.timer(call).inner_text()]
    while len(readings) < 3:
        await expect(tab.timer(call)).not_to_have_text(readings[-1], timeout=MS)
        readings.append(await tab.timer(call).inner_text())
    return readings


@transports
async def test_cancel_returns_at_once_with_the_output_and_ends_the_whole_tree(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab, transport: Transport
) -> None:
    command = "trap '' TERM HUP; echo before the cancel; (setsid sleep 63.1414 &); sleep 63.1414; true"
    async with agent(shared_home, workspace, shared_person, transport=transport) as client:
        asked = client.ask("execute_command", command=command, wait_seconds=50)
        call = (await shared_person.question("63.1414"))["call_id"]
        await tab.press("Allow once")
        await until(lambda: len(find_processes("sleep\x0063.1414")) == 2)
        await tab.open(call)
        await tab.sees(tab.output, "before the cancel")
        await tab.press("Cancel")
        began = time.monotonic()
        told = await asked.told()
        took = time.monotonic() - began
        await until(lambda: not find_processes("63.1414"))
        await tab.sees(tab.detail, "cancelled")
        await shared_person.stopped(call)
        await tab.sees(tab.detail.get_by_role("list", name="Receipt"), "sleep")

    print(f"told {took * 1000:.0f} ms after the click")
    assert took < AT_ONCE
    assert (told.status, told.is_error) == ("cancelled", True)
    assert told.data["message"] == "Cancelled by user"
    assert told.data["output"] == "before the cancel\n"
    assert told.data["output_captured"] is True
    assert told.data["receipt"]["stopped"] is False, "it is told at once, while a stubborn tree has its grace"


@transports
async def test_a_write_is_allowed_after_its_diff_was_seen(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab, transport: Transport
) -> None:
    (workspace / "poem.txt").write_text("roses are red\nviolets are green\n")
    async with agent(shared_home, workspace, shared_person, transport=transport) as client:
        asked = client.ask("edit_file", path="poem.txt", old_string="green", new_string="blue")
        await shared_person.question("poem.txt")
        await tab.sees(tab.needs_you, "poem.txt")
        await tab.sees(tab.diff, "violets are green")
        await tab.sees(tab.diff, "violets are blue")
        before = (workspace / "poem.txt").read_text()
        await tab.press("Allow once")
        told = await asked.told()

    assert before == "roses are red\nviolets are green\n"
    assert told.status == "done"
    assert (workspace / "poem.txt").read_text() == "roses are red\nviolets are blue\n"


@transports
async def test_a_denial_reaches_the_agent_with_its_reason(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab, transport: Transport
) -> None:
    async with agent(shared_home, workspace, shared_person, transport=transport) as client:
        asked = client.ask("execute_command", command="touch production.db")
        call = (await shared_person.question("production.db"))["call_id"]
        await tab.sees(tab.detail, "touch production.db")
        await tab.detail.get_by_role("button", name="Deny and tell the agent…").click()
        await tab.page.get_by_label("Reason, sent to the agent").fill("use the staging database")
        await tab.detail.get_by_role("button", name="Deny and tell the agent").click()
        told = await asked.told()
        await tab.reads(call, "denied")
        await tab.sees(tab.row(call), "use the staging database")

    assert (told.status, told.data["reason"]) == ("denied", "use the staging database")
    assert not (workspace / "production.db").exists()


@transports
async def test_a_call_that_is_answered_too_late_is_handed_back_and_fetched_later(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab, transport: Transport
) -> None:
    async with agent(shared_home, workspace, shared_person, transport=transport) as client:
        told = await client.use("execute_command", command="echo at last", wait_seconds=0.2)
        await tab.sees(tab.needs_you, "echo at last")
        await tab.press("Allow once")
        later = await client.use("wait_for_call", call_id=told.call)
        again = await client.use("get_call", call_id=told.call)
        await tab.reads(told.call, "done")

    assert (told.status, told.is_error) == ("waiting", False)
    assert told.call in told.text
    assert later.data["call"]["status"] == "done"
    assert later.data["call"]["result"]["output"] == "at last\n"
    assert again.data["call"]["result"] == later.data["call"]["result"]


async def test_a_second_tab_follows_all_of_it(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab
) -> None:
    second = await another_tab(tab.page.context, shared_home.url)
    delays: list[float] = []
    async with agent(shared_home, workspace) as client:
        for number in range(ROUNDS):
            asked = client.ask("execute_command", command=f"echo number {number}")
            call = (await shared_person.question(f"number {number}"))["call_id"]
            await tab.open(call)
            await second.reads(call, "waiting")
            await note_click(tab)
            await note_change(second, call)
            await tab.press("Allow once")
            await asked.told()
            await second.reads(call, "done")
            delays.append(await changed_at(second) - await clicked_at(tab))
            if number > 0 and min(delays) < FOLLOWS * 1000:
                break

    print(f"the other tab followed after {', '.join(f'{delay:.0f}' for delay in delays)} ms")
    assert 0 < min(delays) < FOLLOWS * 1000
    assert second.errors == []


async def note_click(tab: Tab) -> None:
    await tab.page.evaluate(
        "addEventListener('click', () => { window.clickedAt = Date.now() }, { capture: true })"
    )


async def clicked_at(tab: Tab) -> float:
    return await tab.page.evaluate("window.clickedAt")


async def note_change(tab: Tab, call: str) -> None:
    """Let the tab itself remember when its row of this call was no longer waiting."""
    await tab.page.evaluate(
        """call => {
            window.watching?.disconnect(); // it would tell of the call before
            window.changedAt = null;
            const look = () => {
                const row = document.querySelector(`[data-call="${call}"]`);
                if (row && row.dataset.status !== "waiting") window.changedAt ??= Date.now();
            };
            window.watching = new MutationObserver(look);
            window.watching.observe(document.body, { subtree: true, childList: true, attributes: true });
        }""",
        call,
    )


async def changed_at(tab: Tab) -> float:
    return await tab.page.evaluate("window.changedAt")


async def test_a_second_answer_is_told_who_was_first(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab
) -> None:
    deaf = Tab(await tab.page.context.new_page())
    await deaf.page.route_web_socket("**/api/live*", lambda _: None)
    async with agent(shared_home, workspace) as client:
        asked = client.ask("execute_command", command="echo who is first")
        call = (await shared_person.question("who is first"))["call_id"]
        await deaf.page.goto(shared_home.url)
        await deaf.sees(deaf.detail, "who is first")
        await tab.press("Allow once")
        await asked.told()
        await deaf.press("Deny")
        await deaf.sees(deaf.remarks, "Already allowed by a person on the page")

    assert (await shared_person.call(call))["status"] == "done"


async def test_the_page_says_that_the_daemon_went_away_or_hangs_and_what_it_found_when_it_came_back(
    home: Home, person: Person, workspace: Path, browser: Browser
) -> None:
    async with signed_in(browser, person) as tab, agent(home, workspace) as client:
        running = client.ask("execute_command", command="echo begun; sleep 63.2525", wait_seconds=50)
        command = (await person.question("63.2525"))["call_id"]
        await tab.press("Allow once")
        await until(lambda: len(find_processes("63.2525")) > 0)
        waiting = client.ask("write_file", path="kept.txt", content="kept\n")
        question = await person.question("kept.txt")
        await tab.sees(tab.needs_you, "kept.txt")
        await tab.page.set_viewport_size({"width": 360, "height": 740})
        await tab.visit(f"/c/{question['call_id']}")
        allow = tab.detail.get_by_role("button", name="Allow once", exact=True)
        await expect(allow).not_to_have_attribute("aria-disabled", "true")
        home.kill()
        banner = tab.detail.get_by_role("status")
        await tab.sees(banner, "The daemon went away")
        await banner.click(trial=True)  # nothing covers it
        await expect(allow).to_have_attribute("aria-disabled", "true")
        await tab.page.set_viewport_size({"width": 1440, "height": 900})
        await running.told()
        await waiting.told()
        await client.use("list_calls")
        await tab.sees(tab.banner, "0 calls interrupted, 1 approval kept, 1 terminal re-adopted")
        await tab.reads(command, "running")
        await tab.open(question["call_id"])
        await tab.press("Allow once")
        await tab.reads(question["call_id"], "done")

        later = client.ask("write_file", path="later.txt", content="later\n")
        await tab.open((await person.question("later.txt"))["call_id"])
        hanging = home.pid
        os.kill(hanging, signal.SIGSTOP)
        try:
            hangs = tab.banner.filter(has_text="The daemon has not answered for")
            await expect(hangs).to_be_visible(timeout=MS)
            await expect(allow).to_have_attribute("aria-disabled", "true")
        finally:
            os.kill(hanging, signal.SIGCONT)
        await expect(allow).not_to_have_attribute("aria-disabled", "true", timeout=MS)
        await tab.press("Allow once")
        assert (await later.told()).status == "done"

    assert (workspace / "kept.txt").read_text() == "kept\n"


async def test_a_client_that_runs_is_shown_with_its_advisory_calls_and_its_transcript(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab
) -> None:
    session = "11112222-3333-4444-8555-666677778888"
    write_claude(Path(shared_home.environment["HOME"]), session=session)
    client = HookClient(shared_home, session, workspace)
    try:
        command = {"command": "npm publish --tag next"}
        client.send("PreToolUse", tool_name="Bash", tool_input=command, tool_use_id="toolu_1")
        await shared_person.question("npm publish")
        row = tab.page.get_by_role("region", name="Running now").get_by_role("button")
        await tab.sees(row, "needs you")
        await tab.sees(tab.detail, "Claude Code runs this itself once you allow it.")
        await tab.press("Allow once")
        await client.hook_ended()
        await tab.sees(row, "working")
        await row.click()
        await expect(tab.page.locator("#filter")).to_have_value(f"session:claude:{session}")
        await tab.page.locator("[data-list] [data-call] a").click()
        await tab.sees(tab.detail, "runs in the client")
        await expect(tab.detail.get_by_role("button", name="Stop following")).to_be_visible()
        await expect(tab.detail.get_by_role("button", name="Complete")).to_have_count(0)
        await client.report(
            "PostToolUse",
            tool_name="Bash",
            tool_input=command,
            tool_use_id="toolu_1",
            tool_response={"stdout": "+ shop@2"},
        )
        await tab.sees(tab.detail, "What the client reported")

        await tab.page.get_by_role("link", name="Threads").click()
        others = tab.page.get_by_role("region", name="From other clients")
        await tab.sees(others, "runs now")
        await others.get_by_role("link", name="Why does the login test fail?").first.click()
        transcript = tab.page.get_by_role("region", name=f"Transcript claude:{session}")
        await tab.sees(transcript, "The key is old.")
        await tab.sees(transcript, "Read-only")
        await expect(transcript.get_by_label("Message", exact=True)).to_have_count(0)
    finally:
        client.end()
    await expect(tab.page.get_by_role("region", name="Running now")).to_have_count(0)
    assert tab.errors == []
