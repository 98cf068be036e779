"""The page's components in a real browser: all of them stand, at every width, in light and dark, for everybody."""

import re
from collections.abc import Sequence
from itertools import product
from typing import Literal
from urllib.parse import quote

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.browser.gallery.conftest import BOUND
from tests.support.axe import AXE, RUN, SCHEMES, Scheme, serious

pytestmark = pytest.mark.browser
COLOUR_SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


def specimen(page: Page, name: str) -> Locator:
    return page.locator(f'[data-specimen="{name}"]')


def shown(page: Page, site: str, only: str = "") -> Page:
    """Open the gallery, or the specimens whose names start with `only`: the whole of it takes seconds to draw."""
    page.goto(f"{site}/gallery?only={quote(only)}")
    expect(page.locator(f'[data-specimen^="{only or "sign in"}"]').first).to_be_attached()
    return page


def overflowing(page: Page) -> list[str]:
    return page.locator("[data-specimen]").evaluate_all(
        "all => all.filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.dataset.specimen)"
    )


@pytest.mark.parametrize("widths", [(1440, 1000), (360,)])
def test_every_specimen_fits(page: Page, site: str, widths: Sequence[int]) -> None:
    page.set_viewport_size({"width": widths[0], "height": 900})
    shown(page, site)
    assert page.locator("[data-specimen]").count() >= 20

    for width, scheme in product(widths, COLOUR_SCHEMES):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        assert overflowing(page) == []


@pytest.mark.parametrize(
    ("width", "scheme"), [(1440, "light"), (360, "light"), (1440, "dark"), (360, "forced")]
)
def test_axe_finds_nothing_serious(page: Page, site: str, width: int, scheme: Scheme) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(
        color_scheme="dark" if scheme == "dark" else "light",
        forced_colors="active" if scheme == "forced" else "none",
    )
    shown(page, site)  # terminals out of sight take up a scheme only when they are drawn
    finding = specimen(page, "terminal: taken over")
    finding.get_by_role("button", name="Find", exact=True).click()
    finding.get_by_placeholder("Find", exact=True).fill("py")
    finding.get_by_role("button", name="All output").click()
    expect(finding.get_by_role("region", name="Found in all output")).to_be_visible()
    page.evaluate(AXE.read_text())

    assert serious(page.evaluate(RUN, dict(SCHEMES)[scheme])) == []


def test_a_new_card_ignores_clicks_and_keys_until_its_guard_is_ready(lone_page: Page, site: str) -> None:
    lone_page.clock.install(time=0)
    shown(lone_page, site, "guard")
    guard = specimen(lone_page, "guard")
    allow = guard.get_by_role("button", name="Allow once")
    lone_page.clock.pause_at(100_000)

    guard.get_by_role("button", name="A new card appears").click()
    expect(allow).to_have_attribute("aria-disabled", "true")
    allow.click(force=True)
    allow.press("Enter")
    lone_page.clock.run_for(690)
    allow.click(force=True)
    expect(guard.get_by_label("presses")).to_have_text("0")

    lone_page.clock.run_for(20)
    expect(allow).not_to_have_attribute("aria-disabled", "true")
    allow.click()
    expect(guard.get_by_label("presses")).to_have_text("1")


def test_a_key_that_is_held_down_presses_once(page: Page, site: str) -> None:
    shown(page, site, "guard")
    guard = specimen(page, "guard")
    allow = guard.get_by_role("button", name="Allow once")
    expect(allow).not_to_have_attribute("aria-disabled", "true")

    allow.focus()
    for _ in range(5):
        page.keyboard.down("Enter")
    page.keyboard.up("Enter")

    expect(guard.get_by_label("presses")).to_have_text("1")


def test_hidden_characters_are_spelled_out_and_flagged(page: Page, site: str) -> None:
    shown(page, site, "detail: disguised command")

    command = specimen(page, "detail: disguised command").get_by_role("region", name="Command")

    expect(command.locator("pre")).to_have_text("ls \\u{202e}# gr- mr\\u{200b}\nrm -rf \\u{a0}~/")
    expect(command.locator("mark").first).to_have_attribute("title", "U+202E text direction override")
    expect(specimen(page, "detail: disguised command").get_by_role("note")).to_contain_text("shown escaped")


def test_high_risk_asks_for_shift_and_says_why(page: Page, site: str) -> None:
    shown(page, site, "detail: ")

    high = specimen(page, "detail: command, high risk")
    medium = specimen(page, "detail: edit, medium risk")

    expect(high).to_contain_text("Why high: deletes files · publishes")
    expect(high.get_by_role("button", name="Allow once")).to_have_attribute("aria-keyshortcuts", "Shift+A")
    expect(medium.get_by_role("button", name="Allow once")).to_have_attribute("aria-keyshortcuts", "a")
    high.get_by_role("button", name="Why am I asked?").click()
    expect(high).to_contain_text("No rule covers this command")


def test_a_diff_is_shown_unified_and_side_by_side(page: Page, site: str) -> None:
    shown(page, site, "detail: edit, medium risk")
    edit = specimen(page, "detail: edit, medium risk")

    removed = edit.locator("tr", has_text="record.password == password")
    expect(removed.locator("td").first).to_have_text("15")
    edit.get_by_role("button", name="Split").click()

    facing = edit.locator("tr", has_text="record.password == password")
    expect(facing.locator("td.code.added")).to_contain_text("verify(record.hash, password)")


def test_complete_says_word_for_word_what_the_agent_will_be_told(page: Page, site: str) -> None:
    shown(page, site, "complete menus")
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
    shown(page, site, "detail: on a phone")
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
    shown(page, site, "detail: flood")
    flood = specimen(page, "detail: flood")

    expect(flood).to_contain_text("5.0 MB", timeout=BOUND * 1000)
    expect(flood.get_by_role("log")).to_contain_text(re.compile(r"[\d.]+ MB before this\."))

    lines = flood.locator("[role=log] pre").evaluate_all(
        "all => all.reduce((sum, one) => sum + one.textContent.split('\\n').length - 1, 0)"
    )
    assert 4000 <= lines <= 5000
    assert flood.locator("[role=log] pre").count() <= 30


FRAMES = """() => new Promise(enough => {
    window.drawn = [];
    const note = now => {
        if (window.drawn.push(now) === 60) enough();
        requestAnimationFrame(note);
    };
    requestAnimationFrame(note);
})"""


def rate(page: Page, since: float = 0) -> float:
    """Pictures per second since then, on the page's clock."""
    drawn = [at for at in page.evaluate("window.drawn") if at >= since]
    return 1000 * (len(drawn) - 1) / (drawn[-1] - drawn[0])


def test_a_flooded_terminal_keeps_drawing_and_keeps_the_end(page: Page, site: str) -> None:
    shown(page, site, "terminal: flood")
    flood = specimen(page, "terminal: flood")
    begin = flood.get_by_role("button", name="Five megabytes in a second")
    begin.scroll_into_view_if_needed()
    page.evaluate(FRAMES)
    idle = rate(page)

    since: float = page.evaluate("performance.now()")
    begin.click()
    expect(flood).to_contain_text("5.0 MB", timeout=BOUND * 1000)
    flooded = rate(page, since)

    expect(flood.locator(".xterm-rows")).to_contain_text("a line of output, one of very many, and red")
    expect(flood.get_by_role("list", name="About this terminal")).to_contain_text("Older output has left")
    print(f"{flooded:.0f} pictures per second in the flood, {idle:.0f} before it")
    assert flooded > min(30, idle / 4)  # a machine that is busy otherwise has fewer to give


def test_a_terminal_says_what_a_person_must_know(page: Page, site: str) -> None:
    shown(page, site, "terminal: ")
    told = {
        "terminal: an agent's": "claude-code typed “npm run watch”",
        "terminal: taken over": "You are in control. Agents cannot type until you release",
        "terminal: asks for a secret": "Waits for input: [sudo] password for ada: — only you can answer; it is not recorded",
        "terminal: seems to wait": "Seems to wait for input: ? Which framework would you like",
        "terminal: larger than the room": "scaled down",
        "terminal: far too large": "The first 3.1 MB, 12,004 lines were dropped to keep within the limits",
        "terminal: ended": "It has ended; its output is kept.",
        "terminal: forgotten": "Its output was deleted",
    }

    for name, words in told.items():
        expect(specimen(page, name).get_by_role("list", name="About this terminal")).to_contain_text(words)


def test_a_terminal_is_ended_by_a_second_click_only(page: Page, site: str) -> None:
    shown(page, site, "terminal: an agent's")
    pane = specimen(page, "terminal: an agent's")

    pane.get_by_role("button", name="Stop", exact=True).click()
    expect(page.get_by_role("list", name="Remarks")).not_to_contain_text("stopped")
    pane.get_by_role("button", name="End it and all it started?").click()

    expect(page.get_by_role("list", name="Remarks")).to_contain_text("stopped")


def test_a_screen_too_large_for_its_room_scrolls_and_others_fit(page: Page, site: str) -> None:
    shown(page, site, "terminal: ")
    over = "one => [one.scrollWidth > one.clientWidth, one.scrollHeight > one.clientHeight]"

    small = specimen(page, "terminal: taken over").locator(".room")
    large = specimen(page, "terminal: far too large").locator(".room")

    large.scroll_into_view_if_needed()
    expect(large.locator(".xterm-screen")).to_be_visible()
    assert large.evaluate(over) == [True, True]
    small.scroll_into_view_if_needed()
    assert small.evaluate(over) == [False, False]


def test_without_a_bearer_the_page_says_how_to_sign_in(page: Page, site: str) -> None:
    page.goto(site)

    expect(page.get_by_text("Sign in from your terminal")).to_be_visible()
    expect(page.locator("code", has_text="handrail open")).to_be_visible()
