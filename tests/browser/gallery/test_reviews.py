"""Reviews of proposed files, as the gallery shows them: what they say, how they are worked, and that large ones stay light."""

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.browser.gallery.conftest import BOUND
from tests.browser.gallery.test_gallery import FRAMES, rate, shown, specimen

pytestmark = pytest.mark.browser


def review(page: Page, site: str, name: str) -> Locator:
    """A review, once the guard over it is ready."""
    found = specimen(shown(page, site, f"review: {name}"), f"review: {name}")
    expect(found.locator("[data-hunk]").first).to_be_visible()
    expect(found.get_by_role("button", name="Keep").first).to_be_visible()
    expect(found.get_by_role("button", name="Send review")).not_to_have_attribute("aria-disabled", "true")
    found.locator("[data-hunk]").first.focus()
    return found


def test_a_review_says_what_a_person_must_know(page: Page, site: str) -> None:
    told = {
        "three hunks": "Agent will be told: kept all 3 hunks",
        "chosen, edited, spoken about": "Agent will be told: kept 1 of 3 hunks, 1 edited, 2 comments",
        "everything rejected": "Everything is rejected, so nothing would be written",
        "changed on disk": "This review cannot be sent: the file changed on disk since the question was asked",
        "new file": "Agent will be told: kept it as proposed",
        "deletion": "Agent will be told: allowed the deletion",
        "refused by a rule": "This cannot be written: Denied by rule 4 of config.toml",
    }
    shown(page, site, "review: ")

    for name, words in told.items():
        answer = specimen(page, f"review: {name}").get_by_role("group", name="Your review")
        expect(answer).to_contain_text(words)
    expect(specimen(page, "review: three hunks")).to_contain_text("Line endings are CRLF, as before.")
    expect(specimen(page, "review: new file")).to_contain_text("Creates the directory")
    expect(specimen(page, "review: disguised").locator("mark").first).to_have_attribute(
        "title", "U+202E text direction override"
    )
    odd = specimen(page, "review: not UTF-8")
    expect(odd.locator(".added")).to_have_text("caf\\xe9 cr\\xe8me")
    odd.get_by_role("button", name="Edit", exact=True).click()
    expect(odd.locator(".cm-content")).to_have_text("caf\\xe9 cr\\xe8me")


def test_code_is_coloured_by_the_name_of_its_file(page: Page, site: str) -> None:
    python = review(page, site, "three hunks")

    expect(python.locator(".tok-keyword", has_text="import").first).to_be_visible()
    markdown = specimen(shown(page, site, "review: new file"), "review: new file")
    expect(markdown.locator(".tok-heading").first).to_be_visible()


def test_hunks_are_chosen_and_left_with_the_keyboard(page: Page, site: str) -> None:
    found = review(page, site, "three hunks")
    answer = found.get_by_role("group", name="Your review")

    page.keyboard.press("n")
    page.keyboard.press("]")
    page.keyboard.press("]")
    page.keyboard.press("n")
    expect(answer).to_contain_text("kept 1 of 3 hunks")
    page.keyboard.press("y")
    page.keyboard.press("[")
    page.keyboard.press("[")
    page.keyboard.press("[")
    page.keyboard.press("y")
    expect(answer).to_contain_text("kept all 3 hunks")
    page.keyboard.press("Control+Enter")

    expect(page.get_by_role("list", name="Remarks")).to_contain_text("sent: as proposed, 0 comments")


def test_an_edit_can_be_undone_and_what_was_written_is_not_lost(page: Page, site: str) -> None:
    found = review(page, site, "three hunks")
    answer = found.get_by_role("group", name="Your review")

    page.keyboard.press("e")
    expect(found.locator(".cm-content")).to_be_focused()
    page.keyboard.press("Control+a")
    page.keyboard.type("import hashing")
    page.keyboard.press("Escape")
    expect(answer).to_contain_text("kept 2 of 3 hunks, 1 edited")
    expect(found.locator('[data-hunk="0"]')).to_be_focused()
    page.keyboard.press("y")
    expect(answer).to_contain_text("kept all 3 hunks")
    page.keyboard.press("e")
    expect(found.locator(".cm-content")).to_have_text("import hashing")


def test_a_comment_is_changed_and_taken_back(page: Page, site: str) -> None:
    found = review(page, site, "three hunks")
    pending = found.get_by_role("list", name="Pending comments")

    page.keyboard.press("m")
    page.keyboard.type("why?")
    page.keyboard.press("Enter")
    expect(pending).to_contain_text("why?")
    page.keyboard.press("m")
    page.keyboard.type(" and how")
    page.keyboard.press("Escape")
    expect(pending).to_contain_text("why?")
    pending.get_by_role("button", name="Remove the comment on line 4").click()

    expect(pending).to_have_count(0)


def test_on_a_phone_it_is_never_side_by_side(page: Page, site: str) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    shown(page, site, "guard")
    page.evaluate("localStorage.setItem('handrail.diff', 'split')")
    found = review(page, site, "three hunks")

    expect(found.locator(".row .added").first).to_be_visible()
    expect(found.locator(".blank")).to_have_count(0)
    expect(found.get_by_role("button", name="Split")).to_have_count(0)


def test_four_thousand_lines_are_drawn_while_the_page_goes_on(page: Page, site: str) -> None:
    shown(page, site, "review: large")
    large = specimen(page, "review: large")
    page.evaluate(FRAMES)
    idle = rate(page)
    since: float = page.evaluate("performance.now()")

    large.get_by_role("button", name="Draw it").click()
    expect(large.locator('[data-hunk="0"]')).to_be_visible()
    large.locator('[data-hunk="399"]').wait_for(state="attached", timeout=BOUND * 1000)
    drawing = rate(page, since)
    large.locator('[data-hunk="0"]').focus()
    page.keyboard.press("n")
    expect(large.locator('[data-hunk="0"]')).to_have_accessible_name("Hunk 1 of 400, rejected")

    print(f"{drawing:.0f} pictures per second while it is drawn, {idle:.0f} before")
    assert drawing > min(5, idle / 12)  # a machine that is busy otherwise has fewer to give


def test_an_endless_line_is_cut_and_said_so(page: Page, site: str) -> None:
    shown(page, site, "review: one endless line")
    endless = specimen(page, "review: one endless line")

    endless.get_by_role("button", name="Draw it").click()

    expect(endless.get_by_role("button", name="156,000 more characters").first).to_be_visible()
