"""The first minute on the page, its pause, and the key of our own agent."""

import json
from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect
from tests.support.browser_tab import MS, Tab, signed_in
from tests.support.daemon_home import Home, eventually, running_daemon
from tests.support.file_keyring import use_keyring_in_file
from tests.support.mcp_client import agent
from tests.support.person_client import Person

pytestmark = pytest.mark.browser

KEY = "sk-ant-not-a-real-key-73310"


def put_keyring(home: Home) -> None:
    use_keyring_in_file(home.environment, home.places.data)


@pytest.fixture(scope="module")
def shared_home() -> Generator[Home]:
    with running_daemon(prepare=put_keyring) as home:
        yield home


async def test_all_agents_are_paused_and_resumed(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab
) -> None:
    (workspace / "a.txt").write_text("one\n")
    banner = tab.page.get_by_role("status").filter(has_text="All agents are paused")
    await tab.page.get_by_role("button", name="Pause all agents").click()
    await tab.sees(banner, "by you")
    async with agent(shared_home, workspace, shared_person) as client:
        held = client.ask("read_file", path="a.txt")  # allowed by a built-in rule, were it not for the pause
        question = await shared_person.question("a.txt")
        assert question["why"].startswith("All agents are paused.")
        await banner.get_by_role("button", name="Resume").click()
        assert "one" in (await held.told()).text
    await expect(banner).to_have_count(0, timeout=MS)
    await expect(tab.page.get_by_role("button", name="Pause all agents")).to_be_visible(timeout=MS)


async def test_three_first_steps_are_ticked_and_vanish_when_all_are_done(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab
) -> None:
    steps = tab.page.get_by_role("region", name="First steps")
    ticked = steps.get_by_text(", done")
    async with agent(shared_home, workspace, shared_person) as client:
        call = client.ask("write_file", path="b.txt", content="two")
        await shared_person.question("b.txt")
        await expect(ticked).to_have_count(1, timeout=MS)
        await shared_person.deny("b.txt")
        assert (await call.told()).status == "denied"
        await expect(ticked).to_have_count(2, timeout=MS)
    await shared_person.post("rules", {"effect": "ask", "command": "make", "scope": "user"})
    await expect(steps).to_have_count(0, timeout=MS)
    kept = await tab.page.evaluate("localStorage.getItem('handrail.first-steps')")
    assert kept == "connect,answer,rule"


async def test_a_pasted_key_goes_to_the_keyring_and_nowhere_else(
    shared_home: Home, shared_person: Person, tab: Tab
) -> None:
    await tab.page.get_by_role("link", name="Threads").click()
    await (
        tab.page.locator("label", has_text="Handrail").filter(has=tab.page.get_by_role("radio")).first.click()
    )
    form = tab.page.get_by_role("form", name="API key")
    field = form.get_by_label("API key")
    await field.fill(KEY)
    await expect(form.get_by_label("Provider")).to_have_value("anthropic", timeout=MS)
    await form.get_by_role("button", name="Save key").click()
    await expect(form).to_have_count(0, timeout=MS)
    await expect(tab.page.get_by_label("Message")).to_be_focused(timeout=MS)

    ring = shared_home.places.data / "keyring.json"
    assert json.loads(ring.read_text()) == {"handrail ANTHROPIC_API_KEY": KEY}
    views = [await shared_person.get(path) for path in ("keys", "settings", "state")]
    assert KEY not in json.dumps(views)
    kept = [path for path in shared_home.places.data.rglob("*") if path.is_file() and path != ring]
    assert [path for path in kept if KEY.encode() in path.read_bytes()] == []
    page = await tab.page.evaluate("document.documentElement.outerHTML + JSON.stringify(localStorage)")
    assert KEY not in page
    refused = await shared_person.ask("PUT", "keys/openai", {"key": "two words"})
    assert (refused.status_code, "two words" in refused.text) == (422, False)


async def test_a_new_user_tries_the_demo_and_connects_an_agent(
    browser: Browser, home: Home, person: Person, workspace: Path
) -> None:
    (workspace / "a.txt").write_text("one\n")
    async with signed_in(browser, person) as tab:
        page = tab.page
        steps = page.get_by_role("region", name="First steps")
        await page.get_by_role("radio", name="Codex").check(force=True)
        await expect(page.get_by_text("handrail connect codex")).to_be_visible(timeout=MS)
        await page.get_by_label("More agents").select_option("jetbrains")
        await expect(page.get_by_text("handrail connect jetbrains")).to_be_visible(timeout=MS)
        await page.get_by_role("button", name="Try the demo").click()
        await tab.sees(tab.needs_you, "apples.py")
        await expect(steps.get_by_text(", done")).to_have_count(
            0, timeout=MS
        )  # the demo is not an agent of theirs

        await steps.get_by_role("button", name="Connect an agent…").click()
        dialog = page.get_by_role("dialog", name="Connect an agent")
        await dialog.get_by_role("radio", name="Other").check()
        async with agent(home, workspace, person) as client:
            assert "one" in (await client.ask("read_file", path="a.txt").told()).text
            await tab.sees(dialog.get_by_role("status"), "has connected")
        await dialog.get_by_role("button", name="Close").click()
        await expect(steps.get_by_text(", done")).to_have_count(1, timeout=MS)

    again = (await person.post("clients/demo"))["terminal"]
    (terminal,) = [each for each in await person.get("terminals") if each["name"] == "Handrail demo"]
    assert terminal["id"] == again, "a second start shows the first"
    folders = [each["folder"] for each in await person.get("folders") if each["trusted"]]
    assert [Path(each).name for each in folders] == ["orchard"]
    await person.post(f"terminals/{again}/close")

    async def is_cleaned_up() -> bool:
        waiting = await person.get("approvals", open=True)
        trusted = any(each["trusted"] for each in await person.get("folders"))
        return not (waiting or trusted or Path(folders[0]).parent.exists())

    await eventually(is_cleaned_up)
    cancelled = [call for call in await person.get("calls") if call["status"] == "cancelled"]
    assert {call["by"] for call in cancelled} == {"client"}, "no person did that"
