"""The page's components in a real browser: all of them stand, at every width, in light and dark, for everybody."""

import re
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Locator, Page, expect

pytestmark = pytest.mark.browser

AXE = Path(__file__).parents[2] / "ui" / "node_modules" / "axe-core" / "axe.min.js"
WIDTHS = {"wide": 1440, "middle": 1000, "phone": 360}


def specimen(page: Page, name: str) -> Locator:
    return page.locator(f'[data-specimen="{name}"]')


def shown(page: Page, site: str) -> Page:
    page.goto(f"{site}/gallery")
    expect(specimen(page, "sign in")).to_be_attached()
    return page


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS.keys())
def test_every_specimen_fits_and_is_photographed(
    page: Page, site: str, width: int, scheme: Literal["light", "dark"], tmp_path: Path
) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    shown(page, site)

    names = page.locator("[data-specimen]").evaluate_all("all => all.map(one => one.dataset.specimen)")
    wide = page.locator("[data-specimen]").evaluate_all(
        "all => all.filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.dataset.specimen)"
    )

    assert len(names) >= 20
    assert wide == []
    picture = page.screenshot(path=tmp_path / f"gallery-{width}-{scheme}.png")
    assert len(picture) > 10_000


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(page: Page, site: str, scheme: Literal["light", "dark"]) -> None:
    page.emulate_media(color_scheme=scheme)
    shown(page, site)
    page.evaluate(AXE.read_text())

    found: dict[str, Any] = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")

    serious = [one for one in found["violations"] if one["impact"] in ("serious", "critical")]
    assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in serious] == []


def test_a_new_card_ignores_clicks_and_keys_until_its_guard_is_ready(page: Page, site: str) -> None:
    page.clock.install(time=0)
    shown(page, site)
    guard = specimen(page, "guard")
    allow = guard.get_by_role("button", name="Allow once")
    page.clock.pause_at(100_000)

    guard.get_by_role("button", name="A new card appears").click()
    expect(allow).to_have_attribute("aria-disabled", "true")
    allow.click(force=True)
    allow.press("Enter")
    page.clock.run_for(690)
    allow.click(force=True)
    expect(guard.get_by_label("presses")).to_have_text("0")

    page.clock.run_for(20)
    expect(allow).not_to_have_attribute("aria-disabled", "true")
    allow.click()
    expect(guard.get_by_label("presses")).to_have_text("1")


def test_a_key_that_is_held_down_presses_once(page: Page, site: str) -> None:
    shown(page, site)
    guard = specimen(page, "guard")
    allow = guard.get_by_role("button", name="Allow once")
    expect(allow).not_to_have_attribute("aria-disabled", "true")

    allow.focus()
    for _ in range(5):
        page.keyboard.down("Enter")
    page.keyboard.up("Enter")

    expect(guard.get_by_label("presses")).to_have_text("1")


def test_hidden_characters_are_spelled_out_and_flagged(page: Page, site: str) -> None:
    shown(page, site)

    command = specimen(page, "detail: disguised command").get_by_role("region", name="Command")

    expect(command.locator("pre")).to_have_text("ls \\u{202e}# gr- mr\\u{200b}\nrm -rf \\u{a0}~/")
    expect(command.locator("mark").first).to_have_attribute("title", "U+202E text direction override")
    expect(specimen(page, "detail: disguised command").get_by_role("note")).to_contain_text("spelled out")


def test_high_risk_asks_for_shift_and_says_why(page: Page, site: str) -> None:
    shown(page, site)

    high = specimen(page, "detail: command, high risk")
    medium = specimen(page, "detail: edit, medium risk")

    expect(high).to_contain_text("Why high: deletes files · publishes")
    expect(high.get_by_role("button", name="Allow once")).to_have_attribute("aria-keyshortcuts", "Shift+A")
    expect(medium.get_by_role("button", name="Allow once")).to_have_attribute("aria-keyshortcuts", "a")
    high.get_by_role("button", name="Why am I asked?").click()
    expect(high).to_contain_text("No rule covers this command")


def test_a_diff_is_shown_unified_and_side_by_side(page: Page, site: str) -> None:
    shown(page, site)
    edit = specimen(page, "detail: edit, medium risk")

    removed = edit.locator("tr", has_text="record.password == password")
    expect(removed.locator("td").first).to_have_text("15")
    edit.get_by_role("button", name="Split").click()

    facing = edit.locator("tr", has_text="record.password == password")
    expect(facing.locator("td.code.added")).to_contain_text("verify(record.hash, password)")


def test_complete_says_word_for_word_what_the_agent_will_be_told(page: Page, site: str) -> None:
    shown(page, site)
    menus = specimen(page, "complete menus").get_by_role("button", name="Complete")

    menus.nth(0).click()
    menu = page.get_by_role("menu")
    expect(menu.get_by_role("menuitem")).to_have_count(3)
    first = menu.get_by_role("menuitem").first
    expect(first).to_be_focused()
    expect(first).to_contain_text("Return output so far, keep it running")
    expect(first).to_contain_text("“Command force-completed by user. May still be running in terminal.”")
    page.keyboard.press("Escape")
    expect(menu).to_have_count(0)
    expect(menus.nth(0)).to_be_focused()

    menus.nth(2).click()
    expect(menu).to_contain_text("There is nothing partial to return, so this does what Cancel does.")


def test_on_a_phone_deny_stands_left_and_allow_right_both_large(page: Page, site: str) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    shown(page, site)
    answers = specimen(page, "detail: on a phone").get_by_role("group", name="Your answer")

    deny = answers.get_by_role("button", name="Deny", exact=True).bounding_box()
    allow = answers.get_by_role("button", name="Allow once").bounding_box()

    assert deny is not None
    assert allow is not None
    assert deny["x"] + deny["width"] <= allow["x"]
    assert (deny["height"], allow["height"]) == (56, 56)


def test_five_megabytes_in_a_second_leave_the_page_alive_and_what_is_left_out_said(
    page: Page, site: str
) -> None:
    shown(page, site)
    flood = specimen(page, "detail: flood")

    expect(flood).to_contain_text("5.0 MB")
    expect(flood.get_by_role("log")).to_contain_text(re.compile(r"[\d.]+ MB before this are left out here"))

    lines = flood.locator("[role=log] pre").evaluate_all(
        "all => all.reduce((sum, one) => sum + one.textContent.split('\\n').length - 1, 0)"
    )
    assert 4000 <= lines <= 5000
    assert flood.locator("[role=log] pre").count() <= 30


def test_without_a_bearer_the_page_says_how_to_sign_in(page: Page, site: str) -> None:
    page.goto(site)

    expect(page.get_by_text("Sign in from your terminal")).to_be_visible()
    expect(page.locator("code", has_text="handrail open")).to_be_visible()
