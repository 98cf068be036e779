"""Rules, answers that want more words, and dialogs, in a real browser and without a daemon."""

from typing import Any, Literal
from urllib.parse import quote

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.support.axe import AXE, serious

pytestmark = pytest.mark.browser

DIALOGS = {
    "allow low-risk": "Allow 3 low-risk calls",
    "new rule": "New rule",
    "trust a folder": "Trust this folder",
    "undo": "Undo",
}


def specimen(page: Page, site: str, name: str) -> Locator:
    page.goto(f"{site}/gallery?only={quote(name)}")
    found = page.locator(f'[data-specimen="{name}"]')
    expect(found).to_be_attached()
    return found


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (360, "dark")])
def test_dialogs_fit_and_axe_finds_nothing_serious(
    page: Page, site: str, width: int, scheme: Literal["light", "dark"]
) -> None:
    page.set_viewport_size({"width": width, "height": 740})
    page.emulate_media(color_scheme=scheme)
    buttons = specimen(page, site, "dialogs")
    page.evaluate(AXE.read_text())

    for name, title in DIALOGS.items():
        buttons.get_by_role("button", name=name).click()
        dialog = page.get_by_role("dialog", name=title)
        expect(dialog).to_be_visible()
        box = dialog.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        assert box["y"] + box["height"] <= 740
        found: dict[str, Any] = page.evaluate("axe.run('dialog', { resultTypes: ['violations'] })")
        assert serious(found) == []
        page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)
        expect(buttons.get_by_role("button", name=name)).to_be_focused()


def test_what_came_of_each_of_several_is_told_one_by_one(page: Page, site: str) -> None:
    specimen(page, site, "dialogs").get_by_role("button", name="allow low-risk").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("listitem").locator("code")).to_have_text(
        ["ls -la src", "cat README.md", "git status --short"]
    )

    dialog.get_by_role("button", name="Allow these 3 once").click()

    told = dialog.get_by_role("listitem")
    expect(told.nth(0)).to_contain_text("allowed")
    expect(told.nth(1)).to_contain_text("Already denied from phone 12 s ago.")
    expect(told.nth(2)).to_contain_text("allowed")


def test_a_pattern_that_cannot_be_a_rule_says_why_and_makes_none(page: Page, site: str) -> None:
    always = specimen(page, site, "detail: always allow").get_by_role("region", name="Always allow")
    first = always.get_by_role("textbox").first
    make = always.get_by_role("button", name="Allow and make 2 rules")
    expect(always).to_contain_text(
        "matches 14 of your last 200 calls · would have decided 41 of your last 57 questions"
    )
    expect(make).not_to_have_attribute("aria-disabled", "true")

    first.fill("sudo npm")
    expect(always).to_contain_text("A rule cannot begin with sudo")
    expect(make).to_have_attribute("aria-disabled", "true")
    make.click(force=True)
    expect(page.get_by_role("list", name="Remarks")).not_to_contain_text("allow")

    always.get_by_role("checkbox").first.uncheck()
    one = always.get_by_role("button", name="Allow and make 1 rule")
    expect(one).not_to_have_attribute("aria-disabled", "true")
    one.click()
    remarks = page.get_by_role("list", name="Remarks")
    expect(remarks).to_contain_text('"command":"git push"')
    expect(remarks).to_contain_text('"scope":"project"')


def test_an_edit_can_be_allowed_only_as_its_preview_showed_it(page: Page, site: str) -> None:
    whole = specimen(page, site, "detail: edit the input")
    allow = whole.get_by_role("button", name="Allow once, edited")
    field = whole.get_by_role("textbox", name="command")
    expect(allow).to_have_attribute("aria-disabled", "true")

    field.fill("npm test")
    expect(whole.get_by_role("group", name="What this comes to")).to_contain_text("MEDIUM RISK")
    expect(allow).not_to_have_attribute("aria-disabled", "true")
    field.press("End")
    field.type(" && git push")
    expect(allow).to_have_attribute("aria-disabled", "true")
    expect(whole.get_by_role("group", name="What this comes to")).to_contain_text("HIGH RISK")
    expect(allow).not_to_have_attribute("aria-disabled", "true")
    field.press("Control+Enter")
    remarks = page.get_by_role("list", name="Remarks")
    expect(remarks).to_contain_text("High risk: hold Shift, or click.")
    field.press("Control+Shift+Enter")

    expect(remarks).to_contain_text('allow: {"command":"npm test && git push","wait_seconds":45}')


def test_a_test_names_the_rule_by_its_number_and_shows_the_way(page: Page, site: str) -> None:
    rules = specimen(page, site, "rules")
    tester = rules.get_by_role("region", name="Test a call")
    tester.get_by_label("Command to test").fill("git diff && git push -f")

    expect(tester).to_contain_text("→ ask, by rule 12")
    way = tester.get_by_role("list", name="What was looked at, in order").get_by_role("listitem")
    expect(way).to_have_count(2)
    expect(way.nth(1)).to_contain_text("decides")
    tester.get_by_role("button", name="Show 2 that do not apply").click()
    expect(way).to_have_count(4)
    expect(rules.locator("#rule-r0a1b2c3d4e")).to_have_attribute("aria-current", "true")
    expect(
        rules.get_by_role("region", name="Built-in limits").get_by_role("button", name="Revoke")
    ).to_have_count(0)


def test_a_question_that_no_rule_can_decide_offers_none(page: Page, site: str) -> None:
    whole = specimen(page, site, "detail: not understood")

    expect(whole).to_contain_text("It is a loop: what it runs depends on what it finds.")
    expect(whole).to_contain_text("Always asks. No rule can cover this")
    expect(whole.get_by_role("button", name="Allow for session")).to_have_attribute("aria-disabled", "true")
    expect(whole.get_by_role("button", name="Always allow…")).to_have_attribute("aria-disabled", "true")
