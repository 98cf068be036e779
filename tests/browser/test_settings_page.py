"""The settings view: alerts of this browser, the configuration without secrets, folders that are gone, stop everything."""

import re
from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.async_api import expect
from tests.support.axe import find_problems
from tests.support.browser_tab import MS, Tab
from tests.support.daemon_home import Home, find_processes, running_daemon, until
from tests.support.mcp_client import agent
from tests.support.person_client import Person

pytestmark = pytest.mark.browser

CONFIG = """
[journal]
keep_days = 90
[[agents]]
name = "mine"
command = ["/bin/false"]
env = { SOME_API_KEY = "sk-hidden" }
"""


@pytest.fixture(scope="module")
def shared_home() -> Generator[Home]:
    with running_daemon(CONFIG) as home:
        yield home


async def test_settings_are_changed_undone_and_asked_about_where_fewer_calls_would_ask(
    shared_home: Home, shared_person: Person, tab: Tab
) -> None:
    file = shared_home.places.config
    await tab.page.get_by_role("button", name="Settings", exact=True).click()
    settings = tab.page.get_by_role("region", name="Settings", exact=True)
    unnamed = settings.locator(".about:not(:has(b)) code").filter(has_not_text=re.compile("^agents$"))
    kept = settings.get_by_label("Keep ended calls, journal.keep_days")
    await kept.fill("30")
    await expect(unnamed).to_have_count(0, timeout=MS)
    await kept.press("Enter")
    await tab.sees(tab.page.get_by_role("list", name="Remarks"), "journal.keep_days is 30 now.")
    assert "keep_days = 30" in file.read_text()
    await tab.page.get_by_role("button", name="Undo").click()
    await expect(kept).to_have_value("90", timeout=MS)
    assert "keep_days = 90" in file.read_text()

    await settings.get_by_role("combobox", name="default_policy").select_option("allow")
    dialog = tab.page.get_by_role("dialog", name="Change default_policy")
    await tab.sees(dialog, "without asking you")
    await dialog.get_by_role("button", name="Back").click()
    assert "default_policy" not in file.read_text()
    await expect(settings.get_by_role("combobox", name="default_policy")).to_have_value("ask", timeout=MS)

    shell = settings.get_by_label("Hand unfinished calls back after, command.wait_seconds")
    await shell.fill("20")
    await shell.press("Enter")
    await tab.sees(settings, "1 change will be in force after")
    await settings.get_by_role("button", name="Use the default for command.wait_seconds").click()
    await expect(settings.get_by_text("will be in force after")).to_have_count(0, timeout=MS)

    await settings.get_by_role("button", name="Signed-in browsers and devices…").click()
    browsers = tab.page.get_by_role("dialog", name="Signed-in browsers")
    await browsers.get_by_role("button", name="Rename").first.click()
    await browsers.get_by_label("New name").fill("My desk")
    await browsers.get_by_role("button", name="Save").click()
    await tab.sees(browsers, "My desk")
    assert any(each["name"] == "My desk" for each in await shared_person.get("sign-ins"))


async def test_settings_are_shown_and_everything_is_stopped_with_a_receipt(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab
) -> None:
    settings = tab.page.get_by_role("region", name="Settings", exact=True)
    async with agent(shared_home, workspace, shared_person) as client:
        running = client.ask("execute_command", command="sleep 71.0733", wait_seconds=50)
        (await shared_person.answer(await shared_person.question("71.0733"), "allow")).raise_for_status()
        waiting = client.ask("write_file", path="never.txt", content="x")
        await shared_person.question("never.txt")
        await until(lambda: bool(find_processes("sleep\x0071.0733")))

        # who is behind "1 agent at work"
        await tab.page.get_by_role("button", name="1 agent at work").click()
        await tab.sees(tab.page.get_by_role("menuitem"), "1 waiting for you · 1 call running")
        await tab.page.keyboard.press("Escape")

        await tab.page.get_by_role("button", name="Settings", exact=True).click()
        await expect(tab.page).to_have_url(f"{shared_home.url}/settings", timeout=MS)
        await tab.sees(settings, "journal.keep_days")
        await tab.sees(settings, "SOME_API_KEY")
        await expect(settings).not_to_contain_text("sk-hidden")

        await settings.get_by_role("button", name="Stop everything…").click()
        dialog = tab.page.get_by_role("dialog", name="Stop everything")
        await dialog.get_by_role("button", name="Stop everything").click()
        await tab.sees(settings.get_by_role("status"), "Stopped: 2 calls.")
        assert (await running.told()).status == "cancelled"
        assert (await waiting.told()).status == "cancelled"
        await until(lambda: not find_processes("sleep\x0071.0733"))
    assert not (workspace / "never.txt").exists()

    # alerts are kept by the browser
    approvals = settings.get_by_label("A call waits for your answer")
    await approvals.uncheck()
    await settings.get_by_role("combobox", name="Quiet hours").select_option("22-7")
    kept = await tab.page.evaluate(
        "['muted', 'quiet'].map((name) => localStorage.getItem(`handrail.${name}`))"
    )
    assert kept == ["approval", "22-7"]
    await tab.page.get_by_role("link", name="Rules").click()
    await tab.page.go_back()
    await expect(approvals).not_to_be_checked(timeout=MS)

    assert await find_problems(tab.page, "settings") == []
