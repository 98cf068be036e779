"""Conversations in a real browser and without a daemon: read, written, scrolled through, and safe to look at."""

import base64
from urllib.parse import quote

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.browser.gallery.conftest import BOUND

pytestmark = pytest.mark.browser

SPOKEN = 4 * BOUND * 1000
"""A long answer has been given by then, on a machine that is busy otherwise too."""
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="


def specimen(page: Page, site: str, name: str) -> Locator:
    page.goto(f"{site}/gallery?wall=threads&only={quote(name)}")
    found = page.locator(f'[data-specimen="{name}"]')
    expect(found).to_be_attached()
    found.scroll_into_view_if_needed()
    return found


def remarks(page: Page) -> Locator:
    return page.get_by_role("list", name="Remarks")


def top_of(pane: Locator) -> float:
    return pane.evaluate("one => one.scrollTop")


def gap_of(pane: Locator) -> float:
    return pane.evaluate("one => one.scrollHeight - one.scrollTop - one.clientHeight")


def test_what_an_agent_writes_has_no_effect_on_the_page(page: Page, site: str) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    thread = specimen(page, site, "thread: hostile words")

    expect(thread).to_contain_text("""<script>document.title = "owned"</script>""")
    expect(thread.get_by_role("heading", level=2)).to_contain_text("Hostile \\u{202e} words")
    assert page.title() == "Handrail"
    said = thread.get_by_role("article")
    assert said.locator("img, script, style, iframe, form, input, [onclick], [onerror], [style]").count() == 0
    hrefs = said.locator("a").evaluate_all(
        "all => all.map(one => [one.getAttribute('href'), one.target, one.rel])"
    )
    assert hrefs
    assert all(href.startswith("https://") for href, _, _ in hrefs)
    assert {(target, rel) for _, target, rel in hrefs} == {("_blank", "noopener noreferrer nofollow")}
    expect(thread).to_contain_text("github.com (leads to evil.example)")
    assert [url for url in asked if not url.startswith((site, "data:"))] == []


def test_the_browser_itself_refuses_markup_that_was_not_cleaned(lone_page: Page, site: str) -> None:
    other = lone_page.context.new_page()  # whose complaints are what is wanted
    other.goto(f"{site}/gallery?only=guard")

    refused = other.evaluate(
        """() => {
            const box = document.createElement("div");
            try { box.innerHTML = "<b>x</b>"; } catch (error) { return String(error); }
            return "";
        }"""
    )

    assert "TrustedHTML" in refused


def test_code_can_be_copied_wherever_it_stands(lone_page: Page, site: str) -> None:
    lone_page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    nested = specimen(lone_page, site, "thread: hostile words")
    nested.get_by_role("button", name="Copy this code").click()
    assert "nested" in lone_page.evaluate("navigator.clipboard.readText()")

    answer = specimen(lone_page, site, "thread: an answer")
    block = answer.locator("figure", has_text="python")
    expect(block.locator(".tok-keyword").first).to_be_attached()
    block.get_by_role("button", name="Copy this code").click()
    copied: str = lone_page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("def login(user: User, password: str) -> Session:\n    record =")


def test_thoughts_are_folded_and_what_the_agent_did_itself_is_said_to_be_its_word(
    page: Page, site: str
) -> None:
    answer = specimen(page, site, "thread: an answer")

    thought = answer.locator("details", has_text="Thought")
    expect(thought.get_by_text("whether there are tests")).to_have_count(0)
    thought.locator("summary").click()
    expect(thought.get_by_text("whether there are tests")).to_be_visible()

    edit = answer.locator("details", has_text="Edit src/auth.py")
    expect(edit.locator("summary")).to_contain_text("+2 \N{MINUS SIGN}1")
    expect(edit.locator("summary")).to_contain_text("agent's word")
    edit.locator("summary").click()
    expect(edit.get_by_role("region", name="Diff")).to_contain_text("B")


def test_what_goes_wrong_is_said_with_last_words_and_ways_to_log_in(page: Page, site: str) -> None:
    thread = specimen(page, site, "thread: what goes wrong")

    broken = thread.get_by_role("group", name="Error").first
    expect(broken).to_contain_text("gemini ended with code 1 before it answered.")
    broken.locator("summary").click()
    expect(broken.locator("pre")).to_contain_text("Cannot find module 'undici'")
    thread.get_by_role("button", name="Log in with Claude").click()
    expect(remarks(page)).to_contain_text("log in to claude by oauth")
    for word in ("interrupted", "stopped at its token limit", "refused"):
        expect(thread).to_contain_text(word)
    thread.get_by_text("An update of a kind that Handrail does not know").click()
    expect(thread.locator("pre", has_text="weather_update")).to_be_visible()


def test_a_question_in_a_thread_is_guarded_like_any_other(lone_page: Page, site: str) -> None:
    lone_page.clock.install(time=0)
    thread = specimen(lone_page, site, "thread: high risk")
    answers = thread.get_by_role("group", name="Your answer")

    expect(answers.get_by_role("button", name="Allow once")).to_have_attribute("aria-keyshortcuts", "Shift+A")
    lone_page.clock.run_for(1000)
    expect(answers.get_by_role("button", name="Allow once")).not_to_have_attribute("aria-disabled", "true")
    answers.get_by_role("button", name="Allow once").click()
    expect(remarks(lone_page)).to_contain_text("allow:")


def test_a_form_is_filled_in_where_it_is_asked(page: Page, site: str) -> None:
    answers = specimen(page, site, "thread: a form").get_by_role("group", name="Your answer")

    answers.get_by_label("Database").select_option("postgres")
    answers.get_by_label("Host").fill("db.example.org")
    answers.get_by_label("public").check()
    answers.get_by_role("button", name="Answer").click()

    expect(remarks(page)).to_contain_text(
        '"values":{"kind":"postgres","host":"db.example.org","port":5432,"tls":true,"schemas":["public"]}'
    )


def test_enter_sends_shift_enter_does_not_and_files_are_pointed_to(page: Page, site: str) -> None:
    thread = specimen(page, site, "thread: empty")
    field = thread.get_by_label("Message", exact=True)

    field.fill("look at @src/auth.py")
    field.press("Shift+Enter")
    field.press_sequentially("please")
    expect(remarks(page)).not_to_contain_text("said:")
    field.press("Enter")

    expect(remarks(page)).to_contain_text(r"look at @src/auth.py\nplease")
    expect(remarks(page)).to_contain_text('"files":["src/auth.py"]')
    expect(field).to_have_value("")


def test_a_new_thread_is_with_the_agent_used_last_and_says_what_another_lacks(page: Page, site: str) -> None:
    new = specimen(page, site, "new thread")

    expect(new.get_by_role("radio", name="opencode")).to_be_checked()
    expect(new.get_by_role("note")).to_have_count(0)
    new.get_by_role("radio", name="Handrail").check()
    new.get_by_placeholder("Paste an API key").fill("sk-ant-1")
    new.get_by_role("button", name="Save key").click()
    expect(remarks(page)).to_contain_text("stored a key of anthropic")


def test_commands_are_offered_while_they_are_typed(page: Page, site: str) -> None:
    thread = specimen(page, site, "thread: an answer")
    field = thread.get_by_label("Message", exact=True)

    field.press_sequentially("/")
    offered = thread.get_by_role("listbox", name="Commands")
    expect(offered.get_by_role("option")).to_have_count(3)
    field.press("ArrowDown")
    field.press("Enter")

    expect(field).to_have_value("/compact ")
    expect(offered).to_have_count(0)
    field.fill("/re")
    field.press("Escape")
    expect(offered).to_have_count(0)


def test_a_pasted_picture_goes_with_the_message(page: Page, site: str) -> None:
    thread = specimen(page, site, "thread: an answer")
    field = thread.get_by_label("Message", exact=True)

    field.evaluate(
        """(one, data) => {
            const bytes = Uint8Array.from(atob(data), letter => letter.charCodeAt(0));
            const clipboard = new DataTransfer();
            clipboard.items.add(new File([bytes], "pasted.png", { type: "image/png" }));
            one.dispatchEvent(new ClipboardEvent("paste", { clipboardData: clipboard, bubbles: true, cancelable: true }));
        }""",
        PIXEL,
    )
    expect(thread.get_by_role("img", name="Picture 1")).to_be_visible()
    thread.get_by_role("button", name="Send", exact=True).click()

    expect(remarks(page)).to_contain_text(f'"mime":"image/png","data":"{PIXEL}"')
    assert base64.b64decode(PIXEL)


def test_while_the_agent_works_a_message_replaces_or_is_queued_and_escape_twice_stops(
    page: Page, site: str
) -> None:
    thread = specimen(page, site, "thread: running, with a queue")
    field = thread.get_by_label("Message", exact=True)

    field.fill("next")
    thread.get_by_role("radio", name="Queue").check()
    field.press("Enter")
    expect(remarks(page)).to_contain_text('"queue":true')

    field.press("Escape")
    expect(thread).to_contain_text("Escape again to stop the agent")
    expect(remarks(page)).not_to_contain_text("stopped")
    page.keyboard.press("Escape")
    expect(remarks(page)).to_contain_text("stopped")

    waiting = thread.get_by_role("region", name="Queued messages").get_by_role("listitem")
    expect(waiting).to_have_count(2)
    waiting.first.get_by_role("button", name="Send now").click()
    expect(remarks(page)).to_contain_text("sent now")
    waiting.last.get_by_role("button", name="Drop this message").click()
    expect(remarks(page)).to_contain_text("dropped")


def test_a_message_is_said_another_way_in_a_fork(page: Page, site: str) -> None:
    thread = specimen(page, site, "thread: an answer")
    mine = thread.get_by_role("article", name="You").last

    mine.hover()
    mine.get_by_role("button", name="Edit and send again, in a fork").click()
    mine.get_by_label("Say it another way").fill("Do it differently.")
    mine.get_by_role("button", name="Send in a fork").click()
    expect(remarks(page)).to_contain_text("said in a fork: Do it differently.")

    mine.get_by_role("button", name="Fork the thread from here").click()
    expect(remarks(page)).to_contain_text("forked")


def test_a_thread_is_renamed_and_deleted_where_it_stands(page: Page, site: str) -> None:
    rows = specimen(page, site, "rows: threads")
    row = rows.locator('[data-thread="h3"]')

    row.hover()
    row.get_by_role("button", name="More about Default").click()
    page.get_by_role("menuitem", name="Rename").click()
    row.get_by_label("Title").fill("Passwords")
    row.get_by_label("Title").press("Enter")
    expect(remarks(page)).to_contain_text("renamed to Passwords")

    row.get_by_role("button", name="More about Default").click()
    page.get_by_role("menuitem", name="Delete…").click()
    sure = row.get_by_role("group", name="Delete this thread?")
    expect(sure.get_by_role("button", name="Keep")).to_be_focused()
    sure.get_by_role("button", name="Keep").click()
    expect(remarks(page)).not_to_contain_text("deleted")
    row.get_by_role("button", name="More about Default").click()
    page.get_by_role("menuitem", name="Delete…").click()
    row.get_by_role("button", name="Delete", exact=True).click()
    expect(remarks(page)).to_contain_text("deleted")


def test_the_end_is_followed_until_somebody_looks_up(page: Page, site: str) -> None:
    thread = specimen(page, site, "thread: growing")
    pane = thread.get_by_role("log", name="Conversation")
    speak = page.get_by_role("button", name="Say 200 words")
    below = thread.get_by_role("button", name="New below")

    speak.click()
    expect(thread).to_contain_text("word200 ", timeout=SPOKEN)
    assert gap_of(pane) < 40
    pane.evaluate("one => (one.scrollTop -= 300)")
    expect(below).to_have_count(0)
    speak.click()
    expect(below).to_be_visible()
    read = top_of(pane)
    expect(thread).to_contain_text("word400 ", timeout=SPOKEN)
    assert abs(top_of(pane) - read) <= 1

    below.click()
    expect(below).to_have_count(0)
    assert gap_of(pane) < 40
    speak.click()
    expect(thread).to_contain_text("word600 ", timeout=SPOKEN)
    assert gap_of(pane) < 40


def test_an_answer_that_grows_is_drawn_block_by_block(page: Page, site: str) -> None:
    thread = specimen(page, site, "thread: growing")
    speak = page.get_by_role("button", name="Say 200 words")
    speak.click()
    expect(thread).to_contain_text("word200 ", timeout=SPOKEN)

    kept = thread.locator(".markdown .block", has_text="word41").first.element_handle()
    assert kept is not None
    speak.click()
    expect(thread).to_contain_text("word400 ", timeout=SPOKEN)

    assert kept.evaluate("one => one.isConnected && one.textContent.includes('word41')")


STEP = """async (one, step) => {
    const frame = () => new Promise(requestAnimationFrame);
    const edge = one.getBoundingClientRect().top;
    const place = each => each.getBoundingClientRect().top - edge;
    const first = [...one.querySelectorAll("[data-message]")].find(each => place(each) + each.offsetHeight > 1);
    const before = place(first);
    one.scrollTop -= step;
    const seen = [];
    for (let pictures = 0; pictures < 6; pictures++) {
        await frame();
        await new Promise(drawn => setTimeout(drawn, 20));
        seen.push(place(first) - before);
    }
    return seen;
}"""
"""How far what was read has moved, in each of the next pictures: exactly as far as it was scrolled."""


def test_five_thousand_messages_are_scrolled_without_a_jump_and_few_are_drawn(page: Page, site: str) -> None:
    thread = specimen(page, site, "thread: five thousand messages")
    pane = thread.get_by_role("log", name="Conversation")
    expect(thread).to_contain_text("Answer 4999.")
    assert gap_of(pane) < 40

    most = 0
    for _ in range(40):
        moved: list[float] = pane.evaluate(STEP, 400)
        assert max(abs(each - 400) for each in moved) < 2, moved
        most = max(most, thread.locator("[data-message]").count())

    assert most < 90
    seen = thread.locator("[data-message]").first.inner_text()
    assert "4999" not in seen
    thread.get_by_role("button", name="To the end").click()
    expect(thread).to_contain_text("Answer 4999.")
    assert gap_of(pane) < 40
