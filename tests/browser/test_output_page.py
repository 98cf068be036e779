"""The output of a call on the page: colours, find, wrapping, download, earlier output; and a password prompt."""

import re
from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.async_api import expect
from tests.support.browser_tab import MS, Tab
from tests.support.daemon_home import Home, running_daemon
from tests.support.mcp_client import agent
from tests.support.person_client import Person

pytestmark = pytest.mark.browser

LINES = 30_000
"""Far more than the page keeps of a live output."""


@pytest.fixture(scope="module")
def shared_home() -> Generator[Home]:
    with running_daemon() as home:
        yield home


async def test_output_has_its_colours_and_all_of_it_can_be_found_read_and_saved(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab
) -> None:
    command = rf"printf 'the first line\n'; seq {LINES}; printf '\033[1;31mFAILED\033[0m needle one\n'"
    async with agent(shared_home, workspace, shared_person) as client:
        asked = client.ask("execute_command", command=command, wait_seconds=50)
        question = await shared_person.question("needle")
        (await shared_person.answer(question, "allow")).raise_for_status()
        await asked.told()
        await tab.open(question["call_id"])
        await tab.sees(tab.output, "needle one")

        red = tab.output.get_by_text("FAILED", exact=True)
        bold, colour = await red.evaluate("n => [getComputedStyle(n).fontWeight, n.style.color]")
        assert (bold, colour) == ("700", "var(--ansi-red)")

        await tab.detail.get_by_role("button", name="Find", exact=True).click()
        found = tab.detail.get_by_role("search")
        await found.get_by_role("textbox").fill("NEEDLE")
        await expect(found).to_contain_text("1 of 1", timeout=MS)
        await tab.page.keyboard.press("Escape")
        await expect(found).to_have_count(0, timeout=MS)

        await tab.detail.get_by_role("button", name="Wrap").click()
        assert await red.evaluate("n => getComputedStyle(n.closest('pre')).whiteSpace") == "pre"

        more = tab.detail.get_by_role("button", name="Show earlier output")
        await expect(more).to_be_visible(timeout=MS)
        await more.click()
        await tab.output.focus()
        while await tab.output.get_by_text("the first line").count() == 0:
            await tab.output.evaluate(
                "pane => { pane.scrollTop = 0; pane.dispatchEvent(new Event('scroll')) }"
            )
        await expect(more).to_have_count(0, timeout=MS)
        text = await tab.output.evaluate(
            "pane => [...pane.querySelectorAll('pre')].map(p => p.textContent).join('')"
        )
        assert re.findall(r"^\d+$", text, re.MULTILINE) == [str(number + 1) for number in range(LINES)]

        async with tab.page.expect_download(timeout=MS) as saving:
            await tab.detail.get_by_role("button", name="Download").click()
        saved = await (await saving.value).path()
        assert saved.read_text().startswith("the first line\n1\n2\n")

        await tab.detail.get_by_role("button", name="Full height").click()
        box = await tab.output.bounding_box()
        assert box is not None
        assert box["height"] > 600


async def test_a_password_prompt_is_a_card_with_a_masked_field_that_has_the_focus(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab
) -> None:
    command = "read -rs -p 'Passphrase for key: ' word; echo; echo got ${#word} letters"
    async with agent(shared_home, workspace, shared_person) as client:
        asked = client.ask("execute_command", command=command, wait_seconds=50)
        question = await shared_person.question("Passphrase")
        (await shared_person.answer(question, "allow")).raise_for_status()
        call = question["call_id"]
        row = tab.needs_you.locator(f'[data-call="{call}"]')
        await expect(row).to_contain_text("waits for input: Passphrase for key:", timeout=MS)
        await expect(row).to_contain_text("PASSWORD")
        await expect(row).not_to_contain_text("HIGH")
        await tab.open(call)
        field = tab.detail.get_by_label("Passphrase for key:")
        await expect(field).to_be_focused(timeout=MS)
        assert await field.get_attribute("type") == "password"
        box = await tab.output.bounding_box()
        assert box is not None
        assert box["height"] > 300, "the output of a call that runs has most of the room"
        await tab.page.keyboard.type("a1c")
        await tab.page.keyboard.press("Enter")
        await tab.sees(tab.output, "got 3 letters")
        await expect(field).to_have_count(0, timeout=MS)
        told = await asked.told()
        outcome = await client.use("get_call", call_id=call) if told.status != "done" else told
    assert "got 3 letters" in outcome.text
