"""Answers on the page, by keyboard alone, while the SDK's client waits for them: given, edited, made into rules, undone."""

import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Locator, expect
from tests.support.browser_tab import MS, Tab, another_tab, signed_in
from tests.support.daemon_home import Home, running_daemon
from tests.support.mcp_client import agent
from tests.support.person_client import Person

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def shared_home() -> Generator[Home]:
    with running_daemon("[command]\nstop_grace = 1.0\n") as home:
        yield home


def button(tab: Tab, name: str) -> Locator:
    return tab.detail.get_by_role("button", name=name, exact=True)


async def armed(tab: Tab, words: str) -> None:
    """The card about this is open, by the keyboard where it is not by itself, and its guard lets a hand act."""
    row = tab.needs_you.locator("[data-call]", has_text=words).get_by_role("link").first
    await expect(tab.detail.filter(has_text=words).or_(row).first).to_be_visible(timeout=MS)
    if words not in await tab.detail.inner_text():  # none is open, or one that an earlier test left behind
        await row.focus()
        await tab.page.keyboard.press("Enter")
    await tab.sees(tab.detail, words)
    await expect(button(tab, "Allow once")).not_to_have_attribute("aria-disabled", "true", timeout=MS)


async def waits(person: Person, call: str) -> bool:
    return (await person.call(call))["status"] == "waiting"


async def test_a_allows_and_never_a_high_risk_for_which_shift_is_held(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab
) -> None:
    (workspace / "build").mkdir()
    async with agent(shared_home, workspace) as client:
        first = client.ask("execute_command", command="touch allowed.txt")
        await shared_person.question("allowed.txt")
        await armed(tab, "touch allowed.txt")
        await tab.page.keyboard.press("a")
        told = await first.told()

        second = client.ask("execute_command", command="rm -rf build")
        call = (await shared_person.question("rm -rf build"))["call_id"]
        await armed(tab, "rm -rf build")
        await tab.sees(tab.detail, "Why high: deletes files")
        await tab.page.keyboard.press("a")
        await tab.sees(tab.remarks, "High risk: hold Shift, or click.")
        still = await waits(shared_person, call)
        await tab.page.keyboard.press("Shift+A")
        gone = await second.told()

    assert (told.status, gone.status) == ("done", "done")
    assert still
    assert (workspace / "allowed.txt").exists()
    assert not (workspace / "build").exists()


async def test_each_part_tells_its_own_risk_and_a_command_of_one_part_is_not_repeated(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab
) -> None:
    parts = tab.detail.get_by_role("region", name="Parts").get_by_role("listitem")
    async with agent(shared_home, workspace) as client:
        client.ask("execute_command", command="rm -rf build && make all")
        first = await shared_person.question("rm -rf build")
        await tab.open(first["call_id"])
        await expect(parts).to_have_count(2, timeout=MS)
        await tab.sees(parts.nth(0), "HIGH")
        await tab.sees(parts.nth(0), "deletes files")
        await tab.sees(parts.nth(0), "in workspace")
        await expect(parts.nth(1)).not_to_contain_text("HIGH", timeout=MS)
        await tab.sees(parts.nth(1), "runs make")
        await expect(tab.row(first["call_id"])).not_to_contain_text("runs make", timeout=MS)

        client.ask("execute_command", command="make one")
        await tab.open((await shared_person.question("make one"))["call_id"])
        await tab.sees(tab.detail, "Why medium: runs make")
        await expect(parts).to_have_count(0, timeout=MS)


async def test_of_very_many_cards_the_first_are_drawn_and_the_rest_when_asked_for(
    home: Home, person: Person, workspace: Path, browser: Browser
) -> None:
    async with agent(home, workspace) as client, signed_in(browser, person) as tab:
        for number in range(103):
            client.ask("write_file", path=f"{number}.txt", content="")
        await tab.sees(tab.needs_you, "(103)")
        rows = tab.needs_you.locator("[data-call]")
        await expect(rows).to_have_count(100, timeout=MS)
        await tab.needs_you.get_by_role("button", name="Show 3 more").click()
        await expect(rows).to_have_count(103, timeout=MS)


async def test_a_denial_with_a_reason_is_written_by_keyboard_and_reaches_the_agent(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab
) -> None:
    async with agent(shared_home, workspace) as client:
        asked = client.ask("execute_command", command="touch denied.txt")
        call = (await shared_person.question("denied.txt"))["call_id"]
        await armed(tab, "touch denied.txt")
        await tab.page.keyboard.press("Shift+D")
        await expect(tab.page.get_by_label("Reason, sent to the agent")).to_be_focused(timeout=MS)
        await tab.page.keyboard.type("a d s: put it under build/")
        await expect(button(tab, "Deny and tell the agent")).not_to_have_attribute(
            "aria-disabled", "true", timeout=MS
        )
        await tab.page.keyboard.press("Enter")
        told = await asked.told()
        await tab.reads(call, "denied")
        # The focus is somewhere when a card is gone.
        await tab.page.wait_for_function("document.activeElement !== document.body")

    assert (told.status, told.data["reason"]) == ("denied", "a d s: put it under build/")
    assert not (workspace / "denied.txt").exists()


async def test_what_runs_is_edited_and_the_agent_is_told_what_changed(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab
) -> None:
    async with agent(shared_home, workspace) as client:
        asked = client.ask("execute_command", command="echo wrong > out.txt")
        call = (await shared_person.question("wrong"))["call_id"]
        await armed(tab, "echo wrong")
        await tab.page.keyboard.press("e")
        field = tab.detail.get_by_role("textbox", name="command")
        await expect(field).to_be_focused(timeout=MS)
        allow = button(tab, "Allow once, edited")
        await expect(allow).to_have_attribute("aria-disabled", "true", timeout=MS)
        await tab.page.keyboard.press("ControlOrMeta+Enter")
        unchanged = await waits(shared_person, call)
        await tab.page.keyboard.press("ControlOrMeta+A")
        await tab.page.keyboard.type("touch right.txt")
        comes = tab.detail.get_by_role("group", name="What this comes to")
        await tab.sees(comes, "MEDIUM RISK")
        await tab.sees(comes, "The agent will be told")
        await tab.sees(comes, "touch right.txt")
        await expect(allow).not_to_have_attribute("aria-disabled", "true", timeout=MS)
        await tab.page.keyboard.press("ControlOrMeta+Enter")
        told = await asked.told()
        await tab.open(call)
        edited = tab.detail.get_by_role("region", name="Edited before it ran")
        await tab.sees(edited, "echo wrong > out.txt")
        await tab.sees(edited, "touch right.txt")

    assert unchanged, "nothing is sent before something was changed and previewed"
    assert told.status == "done"
    assert told.data["edited"]["asked"]["command"] == "echo wrong > out.txt"
    assert told.data["edited"]["input"]["command"] == "touch right.txt"
    assert "A person changed this call before allowing it" in told.text
    assert (workspace / "right.txt").exists()
    assert not (workspace / "out.txt").exists()


async def test_a_rule_made_from_a_card_lets_the_next_such_call_pass_and_is_linked_from_it(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab
) -> None:
    async with agent(shared_home, workspace) as client:
        asked = client.ask("execute_command", command="touch first.txt")
        await shared_person.question("first.txt")
        await armed(tab, "touch first.txt")
        await expect(button(tab, "Always allow…")).not_to_have_attribute("aria-disabled", "true", timeout=MS)
        await tab.page.keyboard.press("r")
        always = tab.detail.get_by_role("region", name="Always allow")
        pattern = always.get_by_role("textbox")
        await expect(pattern).to_be_focused(timeout=MS)
        suggested = await pattern.input_value()
        await tab.sees(always, "of your last")
        make = always.get_by_role("button", name="Allow and make 1 rule")
        await tab.page.keyboard.press("ControlOrMeta+A")
        await tab.page.keyboard.type("sudo touch")
        await expect(pattern).to_have_attribute("aria-invalid", "true", timeout=MS)
        await expect(make).to_have_attribute("aria-disabled", "true", timeout=MS)
        await tab.page.keyboard.press("ControlOrMeta+A")
        await tab.page.keyboard.type("touch")
        await expect(make).not_to_have_attribute("aria-disabled", "true", timeout=MS)
        await tab.page.keyboard.press("Enter")
        first = await asked.told()

        second = await client.use("execute_command", command="touch second.txt")
        await tab.open(second.call)
        link = tab.detail.get_by_role("link", name="touch …")
        await expect(link).to_be_visible(timeout=MS)
        await link.focus()
        await tab.page.keyboard.press("Enter")
        rule = tab.page.get_by_role("region", name="Rules").locator("li[aria-current]")
        await tab.sees(rule, "touch …")
        await tab.sees(rule, "hit")
        allowed = (await shared_person.call(second.call))["allowed_by"]

    assert suggested == "touch"
    assert (first.status, second.status) == ("done", "done")
    assert await rule.get_attribute("id") == f"rule-{allowed.removeprefix('rule ')}"


async def test_allowed_for_the_session_is_allowed_again_for_that_agent_alone(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab
) -> None:
    async with agent(shared_home, workspace) as one, agent(shared_home, workspace) as other:
        asked = one.ask("execute_command", command="mkdir here")
        await shared_person.question("mkdir here")
        await armed(tab, "mkdir here")
        await expect(button(tab, "Allow for session")).not_to_have_attribute(
            "aria-disabled", "true", timeout=MS
        )
        await tab.page.keyboard.press("s")
        first = await asked.told()
        second = await one.use("execute_command", command="mkdir there")
        third = other.ask("execute_command", command="mkdir elsewhere")
        await shared_person.question("mkdir elsewhere")
        await armed(tab, "mkdir elsewhere")
        await tab.page.keyboard.press("d")
        refused = await third.told()

    assert (first.status, second.status, refused.status) == ("done", "done", "denied")


PRESSES = """() => {
    window.presses = 0;
    // A busy machine may need long for one event: none may come when the guard is ready.
    const isLate = () => performance.now() - window.shownAt > 500;
    const act = (what) => {
        if (isLate()) return;
        what();
        window.presses++;
    };
    const strike = () => {
        const target = document.activeElement ?? document.body;
        for (const key of ["a", "Enter", "s", "d", "A"]) {
            const how = { key, shiftKey: key === "A", bubbles: true, cancelable: true };
            act(() => target.dispatchEvent(new KeyboardEvent("keydown", how)));
        }
        for (const button of document.querySelectorAll("[aria-label='Your answer'] button")) act(() => button.click());
    };
    new MutationObserver(() => {
        if (window.shownAt || !document.querySelector("[aria-label='Your answer']")) return;
        window.shownAt = performance.now();
        const go = () => {
            strike();
            if (isLate()) document.body.dataset.hands = "off";
            else setTimeout(go, 10);
        };
        go();
    }).observe(document.body, { subtree: true, childList: true });
}"""


async def test_keys_and_clicks_at_the_moment_a_card_appears_do_nothing(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab
) -> None:
    await tab.page.evaluate(PRESSES)
    async with agent(shared_home, workspace) as client:
        asked = client.ask("execute_command", command="touch struck.txt")
        call = (await shared_person.question("struck.txt"))["call_id"]
        await expect(tab.page.locator("body")).to_have_attribute("data-hands", "off", timeout=MS)
        presses = await tab.page.evaluate("window.presses")
        still = await waits(shared_person, call)
        await armed(tab, "touch struck.txt")
        await tab.page.keyboard.press("a")
        told = await asked.told()

    assert presses > 5
    assert still
    assert told.status == "done", "the same key works once the guard is ready"


RUNS_ON = """words => {
    const watcher = new MutationObserver(() => {
        const card = document.querySelector("[aria-label='Selected call'] [aria-label='Your answer']");
        if (!card || !card.closest("[aria-label='Selected call']").textContent.includes(words)) return;
        watcher.disconnect();
        const target = document.activeElement ?? document.body;
        target.dispatchEvent(new KeyboardEvent("keydown", { key: "a", bubbles: true, cancelable: true }));
        document.body.dataset.hands = "off";
    });
    watcher.observe(document.body, { subtree: true, childList: true, characterData: true });
}"""


async def test_a_key_that_runs_on_decides_one_card_and_not_the_next(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab
) -> None:
    async with agent(shared_home, workspace) as client:
        first = client.ask("execute_command", command="touch one.txt")
        await shared_person.question("touch one.txt")
        second = client.ask("execute_command", command="touch two.txt")
        call = (await shared_person.question("touch two.txt"))["call_id"]
        await armed(tab, "touch one.txt")
        await tab.page.evaluate(RUNS_ON, "touch two.txt")
        for _ in range(3):
            await tab.page.keyboard.press("a")
        told = await first.told()
        await tab.sees(tab.detail, "touch two.txt")
        await expect(tab.page.locator("body")).to_have_attribute("data-hands", "off", timeout=MS)
        still = await waits(shared_person, call)
        await expect(tab.row(call).get_by_role("link").first).to_be_focused(timeout=MS)
        await armed(tab, "touch two.txt")
        await tab.page.keyboard.press("d")
        refused = await second.told()

    assert told.status == "done"
    assert still
    assert refused.status == "denied"


async def test_what_would_hide_in_a_command_is_spelled_out_on_its_card(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab
) -> None:
    command = "echo \u202egnp.exe\u2066 a\u200bb \x1b[2K\x07 done"
    async with agent(shared_home, workspace) as client:
        asked = client.ask("execute_command", command=command)
        await shared_person.question("echo")
        shown = tab.detail.get_by_role("region", name="Command").locator("pre")
        await expect(shown).to_have_text(
            "echo \\u{202e}gnp.exe\\u{2066} a\\u{200b}b \\e[2K\\u{7} done", timeout=MS
        )
        await tab.sees(tab.detail.get_by_role("note"), "shown escaped")
        await tab.sees(tab.needs_you, "\\u{202e}gnp.exe")
        text = await tab.page.locator("body").inner_text()
        await armed(tab, "Why high")
        await tab.page.keyboard.press("d")
        told = await asked.told()

    assert not set(text) & set("\u202e\u2066\u200b\x1b\x07")
    assert told.status == "denied"


async def test_decided_in_one_tab_it_clears_in_the_other(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab
) -> None:
    second = await another_tab(tab.page.context, shared_home.url)
    async with agent(shared_home, workspace) as client:
        asked = client.ask("execute_command", command="touch both.txt")
        call = (await shared_person.question("both.txt"))["call_id"]
        await armed(second, "touch both.txt")
        await second.page.keyboard.press("Shift+D")
        await expect(second.page.get_by_label("Reason, sent to the agent")).to_be_focused(timeout=MS)
        await second.page.keyboard.type("half an ans")
        await armed(tab, "touch both.txt")
        await tab.page.keyboard.press("a")
        await asked.told()
        await second.reads(call, "done")
        await expect(second.page.get_by_role("group", name="Your answer")).to_have_count(0, timeout=MS)
        await expect(second.page).to_have_title("Handrail", timeout=MS)

    assert second.errors == []


async def test_several_of_low_risk_are_allowed_in_one_step_and_nothing_else_is(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab
) -> None:
    async with agent(shared_home, workspace) as client:
        low = [client.ask("execute_command", command=f"echo number {number}") for number in range(3)]
        for number in range(3):
            await shared_person.question(f"number {number}")
        other = client.ask("execute_command", command="touch medium.txt")
        call = (await shared_person.question("medium.txt"))["call_id"]
        bulk = tab.needs_you.get_by_role("button", name="Allow 3 low-risk…")
        await expect(bulk).not_to_have_attribute("aria-disabled", "true", timeout=MS)
        await bulk.focus()
        await tab.page.keyboard.press("Enter")
        dialog = tab.page.get_by_role("dialog")
        lines = dialog.get_by_role("listitem").locator("code")
        await expect(lines).to_have_count(3, timeout=MS)
        listed = await lines.all_inner_texts()
        allow = dialog.get_by_role("button", name="Allow these 3 once")
        await expect(allow).not_to_have_attribute("aria-disabled", "true", timeout=MS)
        await tab.page.keyboard.press("ControlOrMeta+Enter")
        told = [await asked.told() for asked in low]
        await expect(dialog.get_by_text("allowed", exact=True)).to_have_count(3, timeout=MS)
        await tab.page.keyboard.press("Escape")
        await expect(dialog).to_have_count(0, timeout=MS)
        still = await waits(shared_person, call)
        await shared_person.deny("medium.txt")
        await other.told()
        by = [(await shared_person.call(one.call))["allowed_by"] for one in told]

    assert sorted(listed) == [f"echo number {number}" for number in range(3)]
    assert [one.status for one in told] == ["done"] * 3
    assert still
    assert len(set(by)) == 3, "each by an approval of its own"


async def test_the_rules_are_tested_made_and_revoked_in_their_view(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab
) -> None:
    gone = workspace / "gone"
    gone.mkdir()
    for folder in (workspace, gone):
        async with agent(shared_home, folder) as client:
            await client.use("list_files", path=".")
    gone.rmdir()
    await tab.page.keyboard.press("g")
    await tab.page.keyboard.press("r")
    rules = tab.page.get_by_role("region", name="Rules", exact=True)
    tester = rules.get_by_role("region", name="Test a call")
    folders = tester.get_by_label("Folder of the call")
    await expect(folders.locator(f'option[value="{workspace}"]')).to_have_count(1, timeout=MS)
    await expect(folders.locator(f'option[value="{gone}"]')).to_have_count(0)
    await folders.select_option(value=str(workspace))
    await tester.get_by_label("Command to test").focus()
    await tab.page.keyboard.type("git push -f")
    await tab.sees(tester, "→ ask, by rule")
    await tab.sees(tester, "HIGH RISK")
    await tab.sees(tester.get_by_role("list", name="What was looked at, in order"), "decides")

    await rules.get_by_role("button", name="New rule…").focus()
    await tab.page.keyboard.press("Enter")
    form = tab.page.get_by_role("dialog", name="New rule")
    await expect(form.locator(f'option[value="{gone}"]')).to_have_count(0)
    await form.get_by_label("Folder").select_option(value=str(workspace))
    await form.get_by_label("Pattern").fill("git push")
    await tab.sees(form, "git push …")
    await expect(form.get_by_role("button", name="Make rule")).not_to_have_attribute(
        "aria-disabled", "true", timeout=MS
    )
    await tab.page.keyboard.press("ControlOrMeta+Enter")
    await expect(form).to_have_count(0, timeout=MS)
    await tab.sees(tester, "→ allow, by rule")

    revoke = (
        rules.get_by_role("region", name="Allow", exact=True)
        .locator("li", has_text="git push …")
        .get_by_role("button", name="Revoke")
    )
    await revoke.focus()
    await tab.page.keyboard.press("Enter")
    await tab.sees(tab.remarks, "Revoked: git push …")
    await tab.sees(tester, "→ ask, by rule")
    await tab.remarks.get_by_role("button", name="Undo").click()
    await tab.sees(tester, "→ allow, by rule")

    builtin = rules.get_by_role("region", name="Built-in limits")
    await expect(builtin.locator("li").first).to_be_hidden()
    made = rules.get_by_role("region", name="Allow", exact=True).locator("li", has_text="git push …")
    await made.get_by_role("button", name="Disable rule").click()
    await tab.sees(made, "disabled")
    await tab.sees(tester, "→ ask, by rule")
    await expect(made.get_by_role("button", name="Edit rule")).to_have_count(0)
    await tab.remarks.get_by_role("button", name="Undo").last.click()
    await tab.sees(tester, "→ allow, by rule")

    scope = {"effect": "allow", "scope": "project", "workspace": str(workspace)}
    await shared_person.post("rules", {**scope, "command": "git push -f"})
    allows = rules.get_by_role("region", name="Allow", exact=True).locator("li", has_text="git push")
    await expect(allows).to_have_text([re.compile("git push …"), re.compile("git push -f …")], timeout=MS)
    await made.focus()
    await tab.page.keyboard.press("Alt+ArrowDown")
    await expect(allows).to_have_text([re.compile("git push -f …"), re.compile("git push …")], timeout=MS)
    await expect(made).to_be_focused(timeout=MS)
    await tab.sees(tester.locator("li.decides"), "git push -f …")
    await allows.first.get_by_role("button", name="Edit rule").click()
    form = tab.page.get_by_role("dialog", name="Change rule")
    await form.get_by_label("Pattern").fill("git push --force")
    await form.get_by_role("button", name="Change rule").click()
    await expect(allows).to_have_text(
        [re.compile("git push --force …"), re.compile("git push …")], timeout=MS
    )
    await allows.first.get_by_role("button", name="Revoke rule").click()
    await expect(allows).to_have_count(1, timeout=MS)

    await made.get_by_role("button", name="Edit rule").click()
    form = tab.page.get_by_role("dialog", name="Change rule")
    await expect(form.get_by_label("Pattern")).to_have_value("git push")
    await form.get_by_role("radio", name="Deny").check()
    await form.get_by_role("button", name="Change rule").click()
    await expect(form).to_have_count(0, timeout=MS)
    await tab.sees(tester, "→ deny, by rule")
    await expect(made).to_have_count(0, timeout=MS)


async def test_a_folder_is_trusted_from_a_card_after_it_was_said_what_that_means(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab
) -> None:
    async with agent(shared_home, workspace) as client:
        asked = client.ask("execute_command", command="touch trusted.txt")
        await shared_person.question("trusted.txt")
        await armed(tab, "touch trusted.txt")
        await tab.sees(tab.detail, "This folder is not trusted yet")
        await tab.page.keyboard.press("w")
        why = tab.detail.get_by_role("region", name="Why am I asked?")
        await tab.sees(why, "not trusted")
        await expect(why.get_by_role("link", name="untrusted folder")).to_have_attribute(
            "href", "/rules#untrusted%20folder", timeout=MS
        )
        await button(tab, "Trust this folder…").focus()
        await tab.page.keyboard.press("Enter")
        dialog = tab.page.get_by_role("dialog", name="Trust this folder")
        await tab.sees(dialog, str(workspace))
        trust = dialog.get_by_role("button", name="Trust this folder")
        await expect(trust).not_to_have_attribute("aria-disabled", "true", timeout=MS)
        await trust.focus()
        await tab.page.keyboard.press("Enter")
        await tab.sees(tab.remarks, f"Trusted: {workspace}")
        await expect(tab.detail.get_by_text("This folder is not trusted yet")).to_have_count(0, timeout=MS)
        folders: list[dict[str, Any]] = await shared_person.get("folders")
        await shared_person.deny("trusted.txt")
        await asked.told()

    assert next(one["trusted"] for one in folders if one["folder"] == str(workspace))


async def test_a_change_is_undone_from_its_call_after_it_was_seen(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab
) -> None:
    (workspace / "poem.txt").write_text("roses are red\nviolets are green\n")
    async with agent(shared_home, workspace) as client:
        asked = client.ask("edit_file", path="poem.txt", old_string="green", new_string="blue")
        await shared_person.question("poem.txt")
        await armed(tab, "poem.txt")
        await tab.page.keyboard.press("a")
        told = await asked.told()
        changed = (workspace / "poem.txt").read_text()
        await tab.open(told.call)
        await button(tab, "Undo…").focus()
        await tab.page.keyboard.press("Enter")
        dialog = tab.page.get_by_role("dialog", name="Undo")
        await tab.sees(dialog, "violets are green")
        undo = dialog.get_by_role("button", name="Undo 1 file")
        await expect(undo).not_to_have_attribute("aria-disabled", "true", timeout=MS)
        seen = (workspace / "poem.txt").read_text()
        await tab.page.keyboard.press("ControlOrMeta+Enter")
        await tab.sees(tab.page.get_by_role("dialog", name="Undone"), "restored")
        await tab.page.keyboard.press("Escape")

    assert changed == seen == "roses are red\nviolets are blue\n"
    assert (workspace / "poem.txt").read_text() == "roses are red\nviolets are green\n"


async def test_a_decision_answers_back_and_the_rule_it_made_can_be_taken_back(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab
) -> None:
    async with agent(shared_home, workspace) as client:
        once = client.ask("execute_command", command="basename one")
        await shared_person.question("basename one")
        await armed(tab, "basename one")
        await tab.page.keyboard.press("a")
        await tab.sees(tab.remarks, "Allowed basename one.")
        await once.told()

        asked = client.ask("execute_command", command="basename two")
        call = (await shared_person.question("basename two"))["call_id"]
        await armed(tab, "basename two")
        session = button(tab, "Allow for session")
        await expect(session).not_to_have_attribute("aria-disabled", "true", timeout=MS)
        await tab.page.keyboard.press("s")
        await tab.sees(tab.remarks, "1 rule made")
        await asked.told()
        await tab.sees(tab.detail.get_by_role("region", name="Outcome"), "Allowed by you")
        made = (await shared_person.get("rules"))["rules"]
        await tab.remarks.get_by_role("button", name="Undo").click()
        await tab.sees(tab.remarks, "Rule revoked.")
        left = (await shared_person.get("rules"))["rules"]

        client.ask("execute_command", command="basename three")
        await shared_person.deny("basename three")
    assert len(made) == len(left) + 1
    assert (await shared_person.call(call))["answered_by"] == "a person on the page"


async def test_a_proposal_that_can_no_longer_be_written_cannot_be_allowed(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab
) -> None:
    file = workspace / "pears.py"
    file.write_text("pears = 1\n")
    async with agent(shared_home, workspace) as client:
        await client.use("read_file", path="pears.py")
        client.ask("edit_file", path="pears.py", old_string="1", new_string="2")
        call = (await shared_person.question("pears.py"))["call_id"]
        await expect(tab.detail.get_by_role("group", name="Your review")).to_be_visible(timeout=MS)
        await armed(tab, "pears.py")
        file.write_text("apples = 1\n")
        await tab.page.keyboard.press("a")
        await tab.sees(tab.remarks, "can no longer be written")
        await expect(button(tab, "Allow once")).to_have_attribute("aria-disabled", "true", timeout=MS)
        await tab.page.keyboard.press("a")
        still = await waits(shared_person, call)
        await tab.press("Deny")
        await shared_person.settled(call)
    assert still
    assert file.read_text() == "apples = 1\n"


async def test_a_new_rule_opens_without_an_error_and_with_the_focus_in_its_field(tab: Tab) -> None:
    await tab.page.get_by_role("link", name="Rules").click()
    await tab.page.get_by_role("button", name="New rule…").click()
    dialog = tab.page.get_by_role("dialog", name="New rule")
    await expect(dialog.get_by_label("Pattern")).to_be_focused(timeout=MS)
    await tab.sees(dialog, "Type what the rule should match.")
    await expect(dialog.locator("[aria-invalid]")).to_have_count(0, timeout=MS)
    await tab.page.keyboard.type("git log")
    await tab.sees(dialog, "git log …")
