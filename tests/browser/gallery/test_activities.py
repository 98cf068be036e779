"""What an operation is busy with, as the gallery shows it: one line that keeps its place, and a tree with a way out of each part."""

import re
from urllib.parse import quote

import pytest
from playwright.sync_api import Locator, Page, expect

pytestmark = pytest.mark.browser

PLACES = """one => {
    const line = one.querySelector(".line").getBoundingClientRect();
    const parts = [".time", ".turn", ".sign"].map(each => one.querySelector(`.line > ${each}`).getBoundingClientRect());
    return [line.height, line.width, ...parts.map(each => each.left - line.left), parts[0].width];
}"""
"""Where everything in the line stands, within it."""


def specimen(page: Page, site: str, name: str, wall: str = "activities") -> Locator:
    page.goto(f"{site}/gallery?wall={wall}&only={quote(name)}")
    found = page.locator(f'[data-specimen="{name}"]')
    expect(found).to_be_attached()
    found.scroll_into_view_if_needed()
    return found


def remarks(page: Page) -> Locator:
    return page.get_by_role("list", name="Remarks")


def line(found: Locator) -> Locator:
    return found.locator(".line")


def node(found: Locator, id: str) -> Locator:
    return found.locator(f'[data-activity="{id}"]')


def turning(found: Locator) -> list[str]:
    """Which activities of the tree have a sign that turns."""
    return found.locator("[data-activity]:has([data-turns])").evaluate_all(
        "all => all.map(one => one.dataset.activity)"
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("model asked", "Step 1 model asked"),
        ("thinking", "Step 2 thinking"),
        ("three calls", "Step 2 3 calls 1 waits for you"),
        ("one call", "Step 2 1 call Run pytest -q"),
        ("compacting", "compacting"),
        ("between two", "at work"),
    ],
)
def test_one_line_says_which_step_and_what_goes_on_in_it(
    page: Page, site: str, name: str, words: str
) -> None:
    shown = line(specimen(page, site, f"doing: {name}"))

    expect(shown).to_contain_text(words, use_inner_text=False)
    expect(shown.get_by_role("img", name="at work")).to_be_visible()
    expect(shown.locator("[data-timer]")).to_be_visible()


def test_the_line_keeps_its_place_and_something_turns_exactly_while_something_is_done(
    page: Page, site: str
) -> None:
    found = specimen(page, site, "doing: fact by fact")
    further = page.get_by_role("button", name="Next fact")
    count = page.get_by_label("facts")
    places = found.evaluate(PLACES)
    seen = [(turning(found), line(found).locator("[data-turns]").count())]

    for at in range(2, 27):
        further.click()
        expect(count).to_have_text(f"{at} of 26")
        assert found.evaluate(PLACES) == places
        seen.append((turning(found), line(found).locator("[data-turns]").count()))

    assert seen[:4] == [([], 1), (["s1"], 1), (["m1"], 1), (["s1"], 1)]
    assert seen[6][0] == ["c2"]
    assert (["t2"], 1) in seen
    assert (["c4", "c5"], 1) in seen  # and the third call waits for the person
    assert seen[-1] == ([], 0)
    assert all(lines == 1 for _, lines in seen[:-1])


def test_any_part_is_cancelled_by_keyboard_and_the_focus_stays(page: Page, site: str) -> None:
    found = specimen(page, site, "doing: unfolded")
    way = node(found, "c4").get_by_role("button", name="Cancel Run `pytest")

    node(found, "s2").get_by_role("button", name="Cancel Step 2").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(way).to_be_focused()
    expect(way).to_have_attribute("title", "Stop this call: the agent is told so, and goes on")
    page.keyboard.press("Enter")

    expect(remarks(page)).to_contain_text("cancelled c4")
    expect(way).to_be_focused()
    expect(node(found, "c5").get_by_role("button")).to_have_count(0)


def test_the_focus_stays_where_something_was_cancelled(page: Page, site: str) -> None:
    found = specimen(page, site, "doing: fact by fact")
    further = page.get_by_role("button", name="Next fact")
    further.click(click_count=1)
    further.click()
    way = node(found, "m1").get_by_role("button", name="Cancel")

    way.focus()
    further.evaluate("one => one.click()")  # without taking the focus along
    expect(node(found, "m1")).to_have_attribute("data-how", "done")

    expect(node(found, "m1")).to_be_focused()


def test_what_is_over_folds_by_itself_but_not_under_a_hand(page: Page, site: str) -> None:
    found = specimen(page, site, "doing: fact by fact")
    further = page.get_by_role("button", name="Next fact")
    for _ in range(7):
        further.click()
    expect(node(found, "c2")).to_be_visible()

    node(found, "c2").hover()
    for _ in range(3):
        further.evaluate("one => one.click()")
    expect(node(found, "s1")).to_have_attribute("data-how", "done")
    expect(node(found, "c2")).to_be_visible()
    page.mouse.move(0, 0)
    expect(node(found, "c2")).to_have_count(0)
    expect(node(found, "s1")).to_contain_text("2 calls")

    node(found, "s1").get_by_role("button").click()
    expect(node(found, "c2")).to_be_visible()
    page.mouse.move(0, 0)
    further.evaluate("one => one.click()")
    expect(node(found, "c2")).to_be_visible()


def test_agents_stand_below_who_sent_them_each_in_one_line(page: Page, site: str) -> None:
    found = specimen(page, site, "doing: agents in agents")

    expect(node(found, "d1")).to_have_count(0)
    expect(found.locator('li:has(> [data-activity="a1"]) [data-activity="a3"]')).to_be_visible()
    assert turning(found) == ["card-runs"]
    expect(node(found, "card-edit")).to_contain_text("waits for you")
    node(found, "a2").hover()
    node(found, "a2").get_by_role("button", name="Cancel").click()
    expect(remarks(page)).to_contain_text("cancelled a2")


def test_after_the_end_what_was_cut_off_is_in_sight_and_nothing_turns(page: Page, site: str) -> None:
    thread = specimen(page, site, "thread: what it did", wall="threads")
    told = thread.locator("summary", has_text="What it did")

    expect(told).to_contain_text("3 steps · 5 calls")
    expect(told).to_contain_text("2 cancelled")
    expect(thread.locator("[data-activity]")).to_have_count(0)
    told.click()
    expect(node(thread, "c4")).to_contain_text("Cancelled by the person")
    expect(node(thread, "m3")).to_have_attribute("data-how", "cancelled")
    expect(node(thread, "c1")).to_have_count(0)  # what went well is folded
    assert thread.locator("[data-turns]").count() == 0
    expect(thread.get_by_role("button", name=re.compile("^Cancel "))).to_have_count(0)


def test_a_thread_whose_agent_tells_nothing_of_this_looks_as_before(page: Page, site: str) -> None:
    thread = specimen(page, site, "thread: running, with a queue", wall="threads")

    expect(thread.get_by_role("button", name="Stop", exact=True)).to_be_visible()
    expect(thread.get_by_role("region", name="What it is doing")).to_have_count(0)
    expect(thread.locator("summary", has_text="What it did")).to_have_count(0)


def test_hidden_characters_in_titles_are_spelled_out(page: Page, site: str) -> None:
    found = specimen(page, site, "doing: hostile words")

    expect(node(found, "s")).to_contain_text("Step \\u{202e}1 <b>not bold</b>")
    expect(line(found)).to_contain_text("Step \\u{202e}1 <b>not bold</b>")
    assert found.evaluate("one => one.scrollWidth <= one.clientWidth")


@pytest.mark.parametrize("width", [1440, 360])
def test_unfolding_leaves_room_to_write_at_any_width(page: Page, site: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 740})
    thread = specimen(page, site, "thread: what it is doing", wall="threads")
    strip = thread.get_by_role("region", name="What it is doing")
    field = thread.get_by_label("Message", exact=True)
    below = field.bounding_box()

    strip.locator(".line").click()
    expect(strip.get_by_role("region", name="Activities")).to_be_visible()

    assert field.bounding_box() == below
    assert thread.evaluate("one => one.scrollWidth <= one.clientWidth")
    expect(node(thread, "card-runs")).to_be_in_viewport()  # the end is in sight


def test_of_very_many_the_newest_are_drawn_and_the_others_when_somebody_asks(page: Page, site: str) -> None:
    found = specimen(page, site, "doing: a long day")

    expect(node(found, "s399")).to_be_attached()
    expect(node(found, "s0")).to_have_count(0)
    assert found.locator("[data-activity]").count() < 110
    found.get_by_role("button", name="300 earlier ones…").click()
    expect(node(found, "s0")).to_be_visible()
