"""Proposed files on the page: kept, rejected and edited hunk by hunk, spoken about, and what the agent is told of it.

By keyboard alone, as the page's own keys let a person do it.
"""

import re
from pathlib import Path

import pytest
from playwright.async_api import Locator, expect
from tests.support.browser_tab import MS, Tab
from tests.support.daemon_home import Home
from tests.support.mcp_client import agent
from tests.support.person_client import Person

pytestmark = pytest.mark.browser

BEFORE = "".join(f"line {number}\n" for number in range(1, 31))
AFTER = (
    BEFORE.replace("line 2\n", "line two\n")
    .replace("line 15\n", "line 15\nand a half\n")
    .replace("line 28\n", "line twenty-eight\n")
)
WIDER = """detail => [...detail.querySelectorAll("*")].filter((one) =>
  /auto|scroll/.test(getComputedStyle(one).overflowX) && one.scrollWidth > one.clientWidth + 1).map((one) => one.className)"""
"""What scrolls sideways."""


def review(tab: Tab) -> Locator:
    return tab.detail.get_by_role("group", name="Your review")


def hunk(tab: Tab, number: int) -> Locator:
    return tab.detail.get_by_role("group", name=re.compile(rf"^Hunk {number} of "))


def editor(tab: Tab) -> Locator:
    return tab.detail.locator(".cm-content")


def send(tab: Tab) -> Locator:
    return review(tab).get_by_role("button", name=re.compile("^Send review"))


async def armed(button: Locator) -> None:
    """The guard lets a hand through."""
    await expect(button).not_to_have_attribute("aria-disabled", "true", timeout=MS)


async def press(tab: Tab, *keys: str) -> None:
    for key in keys:
        await tab.page.keyboard.press(key)


async def reads(tab: Tab, number: int, state: str) -> None:
    await expect(hunk(tab, number)).to_have_accessible_name(re.compile(rf", {state}$"), timeout=MS)


async def test_two_of_three_hunks_are_kept_and_one_of_them_edited(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab
) -> None:
    (workspace / "list.txt").write_text(BEFORE)
    async with agent(shared_home, workspace) as client:
        asked = client.ask("write_file", path="list.txt", content=AFTER)
        call = (await shared_person.question("list.txt"))["call_id"]
        await armed(send(tab))
        await press(tab, "]", "n", "]", "e")
        await expect(editor(tab)).to_be_focused(timeout=MS)
        await press(tab, "Control+End")
        await tab.page.keyboard.type(", by hand")
        await press(tab, "Escape")
        await reads(tab, 1, "kept")
        await reads(tab, 2, "rejected")
        await reads(tab, 3, "edited by you")
        await tab.sees(review(tab), "Agent will be told: kept 1 of 3 hunks, 1 edited")
        untouched = (workspace / "list.txt").read_text()
        await press(tab, "Control+Enter")
        told = await asked.told()
        await tab.reads(call, "done")
        change = tab.detail.get_by_role("region", name="Diff").first
        await expect(change).to_contain_text("line twenty-eight, by hand", timeout=MS)
        await expect(change).not_to_contain_text("and a half")

    written = BEFORE.replace("line 2\n", "line two\n").replace("line 28\n", "line twenty-eight, by hand\n")
    assert untouched == BEFORE
    assert (workspace / "list.txt").read_text() == written
    assert told.status == "done"
    assert "kept 1 of 3 hunks, edited one and rejected one" in told.text
    counts = {name: told.data["review"][name] for name in ("hunks", "kept", "rejected", "edited")}
    assert counts == {"hunks": 3, "kept": 1, "rejected": 1, "edited": 1}
    assert "\n-line 2\n+line two\n" in told.data["applied"]
    assert "\n-line twenty-eight\n+line twenty-eight, by hand\n" in told.data["review"]["patch"]
    assert "\n-and a half\n" in told.data["review"]["patch"]


async def test_a_hunk_is_split_and_single_lines_of_it_are_rejected(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab
) -> None:
    """Two changes five lines apart are one hunk; the agent is told what was kept in part, and the page shows it later."""
    before = "".join(f"x{number} = {number}\n" for number in range(1, 11))
    after = before.replace("x2 = 2\n", "x2 = 20\n").replace("x7 = 7\n", "x7 = 70\ny7 = 77\n")
    (workspace / "list.py").write_text(before)
    async with agent(shared_home, workspace) as client:
        asked = client.ask("write_file", path="list.py", content=after)
        call = (await shared_person.question("list.py"))["call_id"]
        await armed(send(tab))
        await expect(hunk(tab, 1)).to_have_accessible_name("Hunk 1 of 1, kept", timeout=MS)
        await press(tab, "h")
        await expect(hunk(tab, 1)).to_have_accessible_name("Hunk 1 of 2, kept", timeout=MS)
        await expect(hunk(tab, 1)).to_be_focused(timeout=MS)
        await press(tab, "n", "]")
        await reads(tab, 1, "rejected")
        await hunk(tab, 2).get_by_role("button", name="Reject line 8").click()
        await reads(tab, 2, "kept in part")
        await press(tab, "m", "Escape", "x")  # the focus is on the removed line: it stays too
        await expect(hunk(tab, 2).get_by_role("button", name="Reject removed line 7")).to_have_attribute(
            "aria-pressed", "true", timeout=MS
        )
        await press(tab, "x")
        await tab.sees(review(tab), "Agent will be told: kept some of its lines")
        await press(tab, "Control+Enter")
        told = await asked.told()
        await tab.reads(call, "done")

        sent = tab.detail.get_by_role("region", name="Diff").last
        await expect(sent.locator(".removed")).to_have_text(
            [re.compile("x2 = 20"), re.compile("y7 = 77")], timeout=MS
        )
        await expect(sent.locator(".tok-number").first).to_be_visible(timeout=MS)
        await expect(sent.locator(".marked").first).to_have_text("20", timeout=MS)
        await expect(tab.detail).to_contain_text("kept 0 of 1 hunk, 1 in part", timeout=MS)
        await expect(sent).not_to_contain_text("@@ -")

    assert (workspace / "list.py").read_text() == before.replace("x7 = 7\n", "x7 = 70\n")
    assert "kept some of its lines and rejected the others" in told.text
    assert "\n-y7 = 77\n" in told.data["review"]["patch"]
    assert told.data["review"]["partly"] == 1


async def test_the_panes_are_dragged_and_a_review_takes_the_whole_width(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab
) -> None:
    (workspace / "list.txt").write_text(BEFORE)
    async with agent(shared_home, workspace) as client:
        asked = client.ask("write_file", path="list.txt", content=AFTER)
        await shared_person.question("list.txt")
        await armed(send(tab))
        divider = tab.page.get_by_role("separator", name="List and call")
        was = await width_of(tab.detail)
        await drag(tab, divider, -150)
        assert await width_of(tab.detail) == pytest.approx(was + 150, abs=3)
        await divider.focus()
        await press(tab, "ArrowRight", "ArrowLeft")
        await divider.dblclick()
        assert await width_of(tab.detail) == pytest.approx(was, abs=3)

        await hunk(tab, 1).focus()
        await press(tab, "z")
        await expect(tab.page.get_by_role("region", name="Inbox")).to_be_hidden(timeout=MS)
        assert await width_of(tab.detail) > was + 300
        await press(tab, "v")
        sides = tab.page.get_by_role("separator", name="Old and new")
        old = hunk(tab, 1).locator(".removed").first
        was = await width_of(old)
        await drag(tab, sides, -100)
        assert await width_of(old) == pytest.approx(was - 100, abs=3)
        await sides.dblclick()
        await hunk(tab, 1).focus()
        await press(tab, "v", "z")
        await expect(tab.page.get_by_role("region", name="Inbox")).to_be_visible(timeout=MS)
        await press(tab, "d")
        assert (await asked.told()).status == "denied"


async def width_of(element: Locator) -> float:
    box = await element.bounding_box()
    assert box is not None
    return box["width"]


async def drag(tab: Tab, divider: Locator, by: int) -> None:
    box = await divider.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + 40
    await tab.page.mouse.move(x, y)
    await tab.page.mouse.down()
    await tab.page.mouse.move(x + by, y, steps=4)
    await tab.page.mouse.up()


async def test_comments_reach_the_agent_with_all_of_it_kept(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab
) -> None:
    (workspace / "list.txt").write_text(BEFORE)
    async with agent(shared_home, workspace) as client:
        asked = client.ask("write_file", path="list.txt", content=AFTER)
        await shared_person.question("list.txt")
        await armed(send(tab))
        await press(tab, "m")
        await tab.page.keyboard.type("why spell it out?")
        await press(tab, "Enter", "ArrowDown", "m")
        await tab.page.keyboard.type("no,")
        await press(tab, "Shift+Enter")
        await tab.page.keyboard.type("really")
        await press(tab, "Enter")
        pending = review(tab).get_by_role("list", name="Pending comments")
        await expect(pending.get_by_role("listitem")).to_have_count(2, timeout=MS)
        await tab.sees(review(tab), "Agent will be told: kept all 3 hunks, 2 comments")
        await press(tab, "Control+Enter")
        told = await asked.told()

    assert (workspace / "list.txt").read_text() == AFTER
    assert told.status == "done"
    said = [(comment["line"], comment["text"]) for comment in told.data["review"]["comments"]]
    assert said == [(2, "About the removed line “line 2”: why spell it out?"), (2, "no,\nreally")]
    assert "why spell it out?" in told.text


async def test_everything_rejected_is_a_denial_that_carries_the_comments(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab
) -> None:
    (workspace / "list.txt").write_text(BEFORE)
    async with agent(shared_home, workspace) as client:
        asked = client.ask("write_file", path="list.txt", content=AFTER)
        await shared_person.question("list.txt")
        await armed(send(tab))
        await press(tab, "n", "]", "n", "]", "n", "m")
        await tab.page.keyboard.type("numbers stay numbers")
        await press(tab, "Enter")
        await tab.sees(review(tab), "Everything is rejected")
        await expect(review(tab).get_by_role("button", name="Deny with comments")).to_be_visible(timeout=MS)
        await press(tab, "Control+Enter")
        told = await asked.told()

    assert (workspace / "list.txt").read_text() == BEFORE
    assert told.status == "denied"
    assert "Rejected all 3 hunks" in told.data["reason"]
    assert "numbers stay numbers" in told.data["reason"]


async def test_a_file_that_changed_on_disk_is_said_so_and_its_review_is_not_sent(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab
) -> None:
    (workspace / "list.txt").write_text(BEFORE)
    async with agent(shared_home, workspace) as client:
        asked = client.ask("write_file", path="list.txt", content=AFTER)
        question = await shared_person.question("list.txt")
        await armed(send(tab))
        await press(tab, "n")
        (workspace / "list.txt").write_text(BEFORE.replace("line 20\n", "line twenty\n"))
        await tab.sees(tab.detail, "This file changed on disk since the question was asked.")
        await tab.sees(review(tab), "This review cannot be sent")
        await tab.sees(tab.diff.filter(has_text="line twenty").first, "line twenty")
        await press(tab, "Control+Enter")
        await expect(send(tab)).to_have_attribute("aria-disabled", "true", timeout=MS)
        still = await shared_person.question("list.txt")
        await press(tab, "d")
        told = await asked.told()

    assert still["id"] == question["id"]
    assert told.status == "denied"
    assert (workspace / "list.txt").read_text() == BEFORE.replace("line 20\n", "line twenty\n")


async def test_a_new_file_is_edited_whole_before_it_is_made(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab
) -> None:
    folder = "a_new_folder_whose_name_is_longer_than_a_phone_is_wide"
    async with agent(shared_home, workspace) as client:
        asked = client.ask("write_file", path=f"{folder}/notes.md", content="# Notes\n\nfirst\n")
        call = (await shared_person.question("notes.md"))["call_id"]
        await armed(send(tab))
        await tab.sees(tab.detail, "New file")
        await tab.sees(tab.detail, "Creates the directory")
        await tab.row(call).get_by_role("link").click()
        await tab.page.set_viewport_size({"width": 360, "height": 800})
        assert await tab.detail.evaluate(WIDER) == []
        await tab.page.set_viewport_size({"width": 1440, "height": 900})
        await press(tab, "Shift+E")
        await expect(editor(tab)).to_be_focused(timeout=MS)
        await press(tab, "Control+End")
        await tab.page.keyboard.type("second\n")
        await press(tab, "Escape")
        await tab.sees(review(tab), "Agent will be told: edited the file")
        await press(tab, "Control+Enter")
        told = await asked.told()

    assert (workspace / folder / "notes.md").read_text() == "# Notes\n\nfirst\nsecond\n"
    assert told.data["created"] is True
    assert "\n+second\n" in told.data["review"]["patch"]


async def test_a_deletion_is_shown_plainly_and_needs_a_strong_hand(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab
) -> None:
    (workspace / "old.txt").write_text("one\ntwo\n")
    diff = "--- a/old.txt\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n-two\n"
    async with agent(shared_home, workspace) as client:
        asked = client.ask("apply_diff", path="old.txt", diff=diff)
        await shared_person.question("old.txt")
        await armed(send(tab))
        await tab.sees(tab.detail, "Deletion")
        await tab.sees(tab.diff, "two")
        await press(tab, "m")
        await tab.page.keyboard.type("good riddance")
        await press(tab, "Enter")
        await tab.sees(review(tab), "Agent will be told: allowed the deletion, 1 comment")
        await press(tab, "Control+Enter")
        await tab.sees(tab.remarks, "High risk")
        kept = (workspace / "old.txt").exists()
        await press(tab, "Control+Shift+Enter")
        told = await asked.told()

    assert kept
    assert not (workspace / "old.txt").exists()
    assert told.data["deleted"] is True
    assert "good riddance" in told.text


async def test_line_endings_stay_what_they_were_through_an_edit(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab
) -> None:
    (workspace / "dos.txt").write_bytes(b"one\r\ntwo\r\n")
    async with agent(shared_home, workspace) as client:
        asked = client.ask("edit_file", path="dos.txt", old_string="two", new_string="2")
        await shared_person.question("dos.txt")
        await armed(send(tab))
        await tab.sees(tab.detail, "Line endings are CRLF, as before.")
        await press(tab, "e")
        await expect(editor(tab)).to_have_text("2", timeout=MS)
        await press(tab, "Control+End")
        await tab.page.keyboard.type("\nthree")
        await press(tab, "Escape", "Control+Enter")
        told = await asked.told()

    assert told.status == "done"
    assert (workspace / "dos.txt").read_bytes() == b"one\r\n2\r\nthree\r\n"


async def test_what_would_hide_is_spelled_out_in_the_diff_and_in_the_editor(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab
) -> None:
    (workspace / "login.py").write_text("admin = False\n")
    disguised = "admin = False \u202e # eurT = nimda\u200b\n"
    async with agent(shared_home, workspace) as client:
        asked = client.ask("write_file", path="login.py", content=disguised)
        await shared_person.question("login.py")
        await armed(send(tab))
        await tab.sees(tab.diff, "admin = False \\u{202e} # eurT = nimda\\u{200b}")
        await tab.sees(tab.detail.get_by_role("note"), "1 text direction override")
        await press(tab, "e")
        await tab.sees(editor(tab), "admin = False \\u{202e} # eurT = nimda\\u{200b}")
        await press(tab, "Escape", "Control+Enter")
        told = await asked.told()

    assert told.status == "done"
    assert (workspace / "login.py").read_text() == disguised


EAGER = """() => {
    window.pressed = [];
    const press = (key, more) => {
        window.pressed.push(key);
        dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more }));
    };
    const watcher = new MutationObserver(() => {
        if (!document.querySelector("[data-hunk]")) return;
        watcher.disconnect();
        press("n");
        press("Enter", { ctrlKey: true });
    });
    watcher.observe(document.body, { subtree: true, childList: true });
}"""


async def test_keys_that_come_with_the_review_itself_do_nothing(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab
) -> None:
    (workspace / "list.txt").write_text(BEFORE)
    await tab.page.evaluate(EAGER)
    async with agent(shared_home, workspace) as client:
        asked = client.ask("write_file", path="list.txt", content=AFTER)
        question = await shared_person.question("list.txt")
        await armed(send(tab))
        pressed = await tab.page.evaluate("window.pressed")
        await reads(tab, 1, "kept")
        still = await shared_person.question("list.txt")
        await press(tab, "Control+Enter")
        told = await asked.told()

    assert pressed == ["n", "Enter"]
    assert still["id"] == question["id"]
    assert told.status == "done"
    assert "review" not in told.data or told.data["review"] is None
    assert (workspace / "list.txt").read_text() == AFTER


async def test_a_half_made_review_is_still_there_after_a_look_at_another_question(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab
) -> None:
    for name in ("a.txt", "b.txt"):
        (workspace / name).write_text(BEFORE)
    async with agent(shared_home, workspace) as client:
        first = client.ask("write_file", path="a.txt", content=AFTER)
        a = (await shared_person.question("a.txt"))["call_id"]
        await armed(send(tab))
        await press(tab, "n")
        second = client.ask("write_file", path="b.txt", content=AFTER)
        b = (await shared_person.question("b.txt"))["call_id"]
        await tab.open(b)
        await reads(tab, 1, "kept")
        await tab.open(a)
        await reads(tab, 1, "rejected")
        await armed(send(tab))
        await press(tab, "a")
        await tab.sees(tab.remarks, "send your review")
        await press(tab, "Control+Enter")
        told = await first.told()
        await shared_person.deny("b.txt")
        await second.told()

    assert told.data["review"]["rejected"] == 1
    assert (workspace / "a.txt").read_text() == AFTER.replace("line two\n", "line 2\n")
