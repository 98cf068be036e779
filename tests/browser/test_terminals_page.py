"""Terminals in Chromium: watched, typed into, taken over, resumed; and output that tries to act gets nowhere."""

import json
import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import anyio
import pytest
from playwright.async_api import Browser, BrowserContext, Locator, Page, WebSocketRoute, expect
from playwright.async_api import TimeoutError as PlaywrightTimeout
from tests.support.browser_tab import MS, Tab, another_tab, signed_in
from tests.support.daemon_home import Home, eventually, running_daemon
from tests.support.mcp_client import agent
from tests.support.person_client import Person

pytestmark = pytest.mark.browser

BY = "\N{MULTIPLICATION SIGN}"


@pytest.fixture(scope="module")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Generator[Home]:
    """A daemon whose person has an empty home: shells start at once, whatever this machine's start-up files do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("person")))
        patch.setenv("SHELL", "/bin/bash")
        with running_daemon("[command]\nstop_grace = 0.3\n") as home:
            yield home


class Watched:
    """The terminal that is open in a tab."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.pane = page.get_by_role("complementary", name="Selected terminal")
        self.rows = self.pane.locator(".xterm-rows")
        self.field = self.pane.locator(".xterm-helper-textarea")

    @property
    def remarks(self) -> Locator:
        return self.pane.get_by_role("list", name="About this terminal")

    def button(self, name: str) -> Locator:
        return self.pane.get_by_role("button", name=name, exact=True)

    async def sees(self, words: str) -> None:
        await expect(self.rows).to_contain_text(words, timeout=MS, use_inner_text=False)

    async def types(self, text: str, *keys: str) -> None:
        await self.field.focus()
        await self.page.keyboard.type(text)
        for key in keys:
            await self.page.keyboard.press(key)

    async def runs(self, line: str) -> None:
        await self.types(line, "Enter")

    async def all_text(self) -> str:
        """Everything that can be scrolled back to, by the menu and the clipboard."""
        for item in ("Select all", "Copy selection"):
            await self.button("More").click()
            await self.page.get_by_role("menuitem", name=item).click()
        await expect(self.page.get_by_role("list", name="Remarks")).to_contain_text("Copied.", timeout=MS)
        return await self.page.evaluate("navigator.clipboard.readText()")


async def open_one(person: Person, *command: str, cols: int = 80, rows: int = 24, **more: Any) -> str:
    """A terminal of the person's own; its id."""
    body = {"command": command, "cols": cols, "rows": rows, **more}
    return (await person.post("terminals", body))["id"]


async def watch(tab: Tab, terminal: str) -> Watched:
    """Go to the terminals by key, and open one."""
    await tab.page.keyboard.press("g")
    await tab.page.keyboard.press("x")
    await tab.page.locator(f'[data-terminal="{terminal}"]').get_by_role("link").click()
    await expect(tab.page.get_by_role("article", name=f"Terminal {terminal}")).to_be_visible(timeout=MS)
    return Watched(tab.page)


async def test_a_person_opens_a_terminal_types_and_sees_it(shared_person: Person, tab: Tab) -> None:
    await tab.page.get_by_role("navigation", name="Views").get_by_role("link", name="Terminals").click()
    await tab.page.get_by_role("button", name="New terminal").click()
    terminal = Watched(tab.page)
    await expect(terminal.field).to_be_focused(timeout=MS)
    await terminal.runs("echo $((6 * 7)) is the answer")
    await terminal.sees("42 is the answer")

    one = tab.page.url.rpartition("/x/")[2]
    found = await shared_person.get(f"terminals/{one}")
    assert found["owner"]["person"] is True
    assert await tab.page.title() == "Handrail"
    row = tab.page.locator(f'[data-terminal="{one}"]')
    await expect(row).to_contain_text("you")
    await terminal.runs("exit 3")
    await expect(row).to_contain_text("exit 3", timeout=MS)
    await expect(terminal.pane).to_contain_text("exit 3", timeout=MS)
    await terminal.sees("42 is the answer")


COUNTING = 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); echo "line $i."; sleep 0.005; done'


@pytest.mark.parametrize("cut", ["the daemon is killed", "the line is cut"])
async def test_a_cut_line_goes_on_without_a_gap_or_a_repeat(
    home: Home, person: Person, browser: Browser, cut: str
) -> None:
    lines: list[WebSocketRoute] = []

    def connect(route: WebSocketRoute) -> None:
        route.connect_to_server()
        lines.append(route)

    async with signed_in(browser, person) as tab:
        await allow_clipboard(tab.page.context)
        await tab.page.route_web_socket("**/attach?*", connect)
        terminal = await watch(tab, await open_one(person, "bash", "-c", COUNTING))
        await eventually(lambda: further(terminal, 40))
        if cut == "the daemon is killed":
            home.kill()
            await expect(terminal.remarks).to_contain_text("The connection was lost", timeout=MS)
            home.up()
        else:
            await lines[0].close(code=1012)
        seen = await last_number(terminal)
        await eventually(lambda: further(terminal, seen + 50))
        await terminal.button("Stop").click()
        await terminal.button("End it and all it started?").click()
        await expect(terminal.pane).to_contain_text("ended", timeout=MS)
        shown = await terminal.all_text()
        whole = (await person.ask("GET", f"terminals/{id_of(tab)}/output", mode="text", download=1)).text

    numbers = [int(number) for number in re.findall(r"line (\d+)\.", shown)]
    assert len(lines) > 1, "it was attached anew"
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) == whole.count("line "), "to the very end"


async def last_number(terminal: Watched) -> int:
    found = re.findall(r"line (\d+)\.", await terminal.rows.inner_text())
    return int(found[-1]) if found else 0


async def further(terminal: Watched, than: int) -> bool:
    return await last_number(terminal) > than


def id_of(tab: Tab) -> str:
    return tab.page.url.rpartition("/x/")[2]


async def allow_clipboard(context: BrowserContext) -> None:
    await context.grant_permissions(["clipboard-read", "clipboard-write"])


async def test_two_tabs_see_the_same_and_the_one_typed_in_last_sets_the_size(
    shared_home: Home, shared_person: Person, tab: Tab
) -> None:
    one = await open_one(shared_person, "bash", "--norc", cols=80, rows=24)
    first = await watch(tab, one)
    other = await another_tab(tab.page.context, f"{shared_home.url}/x/{one}")
    second = Watched(other.page)
    await other.page.set_viewport_size({"width": 1200, "height": 600})
    await expect(second.pane).to_contain_text(f"80 {BY} 24", timeout=MS)

    await first.runs("echo typed in the $((0 + 1))st")
    await second.sees("typed in the 1st")
    wide = await settled_size(shared_person, one, (80, 24))
    await expect(second.pane).to_contain_text(f"{wide[0]} {BY} {wide[1]}", timeout=MS)
    await expect(second.remarks).to_contain_text("scaled down", timeout=MS)

    await second.runs("echo typed in the $((1 + 1))nd")
    await first.sees("typed in the 2nd")
    narrow = await settled_size(shared_person, one, wide)
    await expect(first.pane).to_contain_text(f"{narrow[0]} {BY} {narrow[1]}", timeout=MS)
    assert other.errors == []
    assert narrow[0] < wide[0]
    assert narrow[1] < wide[1]
    await shared_person.post(f"terminals/{one}/close")


async def settled_size(person: Person, one: str, before: tuple[int, int]) -> tuple[int, int]:
    """A terminal's size, once it is another than it was."""

    async def look() -> tuple[int, int] | None:
        cols, rows = (await person.get(f"terminals/{one}"))["size"]
        return (cols, rows) if (cols, rows) != before else None

    return await eventually(look)


HOSTILE = (
    "\x1b[c\x1b[>c\x1b[=c\x1bZ\x1b[5n\x1b[6n\x1b[?6n\x1b[?15n\x1b[?25n\x1b[?26n\x1b[?53n\x1b[?996n"  # who are you, where am I
    "\x1b[?1$p\x1b[4$p\x1b[?2026$p\x1bP$qm\x1b\\\x1bP$qr\x1b\\\x1bP+q544e\x1b\\\x1b[x\x1b[1x\x1b[>q\x1b[?u\x1b[?4m"
    "\x1b]4;1;?\x07\x1b]10;?\x07\x1b]11;?\x1b\\\x1b]12;?\x07\x1b]17;?\x07\x1b]19;?\x07\x1b]21;foreground=?\x07"
    "\x1b[11t\x1b[13t\x1b[14t\x1b[15t\x1b[16t\x1b[18t\x1b[19t\x1b[20t\x1b[21t\x1b[8;5;5t\x1b[1;2;3;4;5;6*y\x05"
    "\x1b]52;c;aGFja2Vk\x07\x1b]52;c;?\x07\x1b]1337;File=inline=1:AAAA\x07\x1b]9;note\x07\x1b]777;notify;a;b\x07"
    "\x1b[?1000h\x1b[?1002h\x1b[?1003h\x1b[?1006h\x1b[?1015h\x1b[?1004h\x1b[?2031h\x1b[?2048h\x1b[?1004;1003h"
    "\x1b]2;<img src=x onerror=alert(1)> (9) Handrail\x07\x1b]0;hostile title\x07\x1b]50;font\x07\x07"
    "\x1b]8;;javascript:document.title='owned'\x1b\\click me\x1b]8;;\x1b\\ \x1b]8;;file:///etc/passwd\x1b\\and me\x1b]8;;\x1b\\ "
    "\x1b]8;;https://example.invalid/real\x1b\\http://looks.invalid/other\x1b]8;;\x1b\\ "
    "\x1b]133;C;nonce=forged\x07\x1b]133;D;0;nonce=forged\x07\x1b]633;E;forged;forged\x07\x1b]11;#ff0000\x07"
)

READER = """
import sys, termios, tty
old = termios.tcgetattr(0); tty.setraw(0)
out = open(sys.argv[1], "wb", buffering=0)
sys.stdout.write(open(sys.argv[2], newline="").read() + "all of it printed")
sys.stdout.flush()
while b"q" not in (got := sys.stdin.buffer.raw.read(4096)):
    out.write(got)
out.write(got); out.close()
sys.stdout.write("\\x1b[?1000l\\x1b[?1002l\\x1b[?1003l\\x1b[?1004l\\r\\nthe reader has ended"); sys.stdout.flush()
termios.tcsetattr(0, termios.TCSANOW, old)
sys.stdin.buffer.raw.read(1)
"""


async def test_hostile_output_sends_no_byte_back_and_leaves_clipboard_title_and_page_alone(
    shared_person: Person, tab: Tab, tmp_path: Path
) -> None:
    script, corpus, got = tmp_path / "reader.py", tmp_path / "corpus", tmp_path / "got"
    script.write_text(READER)
    corpus.write_text(HOSTILE, newline="")
    await allow_clipboard(tab.page.context)
    await tab.page.evaluate("navigator.clipboard.writeText('mine')")
    opened: list[str] = []
    tab.page.context.on("page", lambda page: opened.append(page.url))
    tab.page.on("dialog", lambda dialog: opened.append(dialog.message))
    one = await open_one(shared_person, "python3", str(script), str(got), str(corpus))
    terminal = await watch(tab, one)
    await terminal.sees("all of it printed")
    await tab.page.get_by_role("navigation", name="Views").get_by_role("link", name="Inbox").click()
    terminal = await watch(tab, one)  # and once more, as a replay
    await terminal.sees("all of it printed")
    await expect(terminal.pane).to_contain_text("“hostile title”")

    await point(tab, terminal, "click me")
    await tab.page.mouse.wheel(0, 200)
    await terminal.field.focus()
    await terminal.field.blur()
    for words in ("click me", "and me"):
        await point(tab, terminal, words, click=True)
    await eventually(
        lambda: points_to(tab, terminal, "http://looks.invalid/other", "https://example.invalid/real")
    )

    await terminal.types("q")
    await terminal.sees("the reader has ended")
    assert got.read_bytes() == b"q"
    assert await tab.page.evaluate("navigator.clipboard.readText()") == "mine"
    assert await tab.page.title() == "Handrail"
    assert opened == []
    assert await terminal.pane.locator(".gutter").count() == 0
    assert await tab.page.locator("img").count() == 0
    assert (await shared_person.get(f"terminals/{one}"))["size"] != [5, 5]
    await shared_person.post(f"terminals/{one}/close")


async def points_to(tab: Tab, terminal: Watched, words: str, address: str) -> bool:
    """Whether the page says of these words that they lead to this address."""
    await tab.page.mouse.move(1, 1)
    await point(tab, terminal, words)
    try:
        await terminal.pane.get_by_text(f"click opens {address}").wait_for(timeout=MS / 20)
    except PlaywrightTimeout:  # the rows were drawn anew beneath the pointer
        return False
    return True


async def point(tab: Tab, terminal: Watched, words: str, *, click: bool = False) -> None:
    """Put the pointer on words in the terminal; click them as one who wants a link opened."""
    box = await eventually(
        terminal.rows.get_by_text(words).last.bounding_box
    )  # rows are drawn anew at any time
    await tab.page.mouse.move(box["x"] + 12, box["y"] + 6)
    await tab.page.mouse.move(box["x"] + 14, box["y"] + 7)
    if click:
        await tab.page.keyboard.down("Control")
        await tab.page.mouse.click(box["x"] + 14, box["y"] + 7)
        await tab.page.keyboard.up("Control")


async def test_a_link_opens_by_a_deliberate_click_at_its_real_address_only(
    shared_person: Person, tab: Tab
) -> None:
    await tab.page.context.route("**://*.invalid/**", lambda route: route.fulfill(body="elsewhere"))
    text = r"\e]8;;http://real.invalid/page\e\\a friendly name\e]8;;\e\\ and http://plain.invalid/x?y=1 here"
    one = await open_one(shared_person, "bash", "-c", f"printf '{text}'; read")
    terminal = await watch(tab, one)
    await terminal.sees("here")
    await eventually(lambda: points_to(tab, terminal, "a friendly name", "http://real.invalid/page"))
    async with tab.page.context.expect_page() as opening:
        await point(tab, terminal, "a friendly name", click=True)
    opened = await opening.value
    await opened.wait_for_url("http://real.invalid/page")
    assert await opened.evaluate("window.opener") is None
    await opened.close()
    await shared_person.post(f"terminals/{one}/close")


async def test_commands_are_marked_with_how_they_ended(shared_person: Person, tab: Tab) -> None:
    await allow_clipboard(tab.page.context)
    await tab.page.get_by_role("navigation", name="Views").get_by_role("link", name="Terminals").click()
    one = (await shared_person.post("terminals", {"shell": "bash", "name": "marked"}))["id"]
    terminal = await watch(tab, one)
    await eventually(lambda: at_prompt(shared_person, one))
    signs = terminal.pane.locator(".gutter:visible")
    ran: list[str] = []
    for line, sign in (("echo one two", "✓"), ("sh -c 'exit 7'", "✗7"), ("sleep 100", "◐")):
        await terminal.runs(line)
        ran.append(sign)
        await expect(signs).to_have_text(ran, timeout=MS)
    await terminal.button("Commands").click()
    commands = terminal.pane.get_by_role("region", name="Commands").get_by_role("listitem")
    await expect(commands).to_have_count(3, timeout=MS)
    await expect(commands.nth(0)).to_contain_text("sleep 100")
    await expect(commands.nth(1)).to_contain_text("7")
    await commands.nth(2).get_by_role("button", name="Copy the output of echo one two").click()
    await expect(tab.page.get_by_role("list", name="Remarks")).to_contain_text("Copied.", timeout=MS)
    assert (await tab.page.evaluate("navigator.clipboard.readText()")).strip() == "one two"

    await terminal.button("Ctrl-C").click()
    await expect(signs).to_have_text(["✓", "✗7", "✗130"], timeout=MS)
    await terminal.runs("seq -f 'far below %g' 200")
    await terminal.sees("far below 200")
    await expect(terminal.rows).not_to_contain_text("one two")
    await (
        commands.filter(has_text="echo one two")
        .get_by_role("button", name="echo one two", exact=True)
        .click()
    )
    await terminal.sees("one two")
    await terminal.button("Next command").click()
    await expect(terminal.rows).not_to_contain_text("one two")
    await terminal.button("Follow").click()
    await terminal.sees("far below 200")
    await shared_person.post(f"terminals/{one}/close")


async def at_prompt(person: Person, one: str) -> bool:
    return (await person.get(f"terminals/{one}"))["at_prompt"] is True


async def test_find_counts_what_it_finds_and_searches_all_that_is_kept(
    shared_person: Person, tab: Tab
) -> None:
    one = await open_one(shared_person, "bash", "-c", "seq -f 'number %g' 1 30000; echo done; read")
    terminal = await watch(tab, one)
    await terminal.sees("done")
    await terminal.field.focus()
    await tab.page.keyboard.press("Control+f")
    await tab.page.keyboard.type("number 2999")
    await expect(terminal.pane.get_by_label("Matches")).to_have_text(re.compile(r"of 10$"), timeout=MS)
    await tab.page.get_by_placeholder("Find", exact=True).fill("number 77")
    await expect(terminal.pane.get_by_label("Matches")).to_have_text("none", timeout=MS)
    await terminal.button("All output").click()
    found = terminal.pane.get_by_role("region", name="Found in all output")
    await expect(found).to_contain_text("111 lines", timeout=MS)
    await expect(found.get_by_role("listitem").first).to_contain_text("number 77")
    await shared_person.post(f"terminals/{one}/close")


async def test_output_is_downloaded_as_text_and_as_it_was(shared_person: Person, tab: Tab) -> None:
    one = await open_one(shared_person, "bash", "-c", r"printf '\e[31mred\e[0m\n'; read", name="to keep")
    terminal = await watch(tab, one)
    await terminal.sees("red")
    kept: dict[str, bytes] = {}
    for item in ("Download as text", "Download raw"):
        await terminal.button("More").click()
        async with tab.page.expect_download() as downloading:
            await tab.page.get_by_role("menuitem", name=item).click()
        download = await downloading.value
        kept[download.suggested_filename] = await anyio.Path(await download.path()).read_bytes()

    assert kept == {f"to-keep-{one}.txt": b"red\n", f"to-keep-{one}.raw": b"\x1b[31mred\x1b[0m\r\n"}
    await shared_person.post(f"terminals/{one}/close")


async def test_several_lines_are_pasted_only_when_a_person_says_so(
    shared_person: Person, tab: Tab, tmp_path: Path
) -> None:
    await allow_clipboard(tab.page.context)
    one = await open_one(shared_person, "bash", "-c", f"cat > {tmp_path}/pasted; echo it is kept; read")
    terminal = await watch(tab, one)
    await tab.page.evaluate("navigator.clipboard.writeText('one\\u001b[201~\\ntwo\\n')")
    for answer in ("Do not paste", "Paste 3 lines"):
        await terminal.field.focus()
        await tab.page.keyboard.press("Control+Shift+V")
        await tab.page.get_by_role("alertdialog").get_by_role("button", name=answer).click()
    await terminal.types("", "Control+d")
    await terminal.sees("it is kept")

    assert (tmp_path / "pasted").read_text() == "one[201~\ntwo\n"
    await shared_person.post(f"terminals/{one}/close")


async def test_bracketed_paste_is_honoured(shared_person: Person, tab: Tab, tmp_path: Path) -> None:
    await allow_clipboard(tab.page.context)
    command = rf"printf '\e[?2004h'; stty raw; echo ready; head -c 19 > {tmp_path}/pasted; stty sane; echo it is kept; read"
    one = await open_one(shared_person, "bash", "-c", command)
    terminal = await watch(tab, one)
    await terminal.sees("ready")
    await tab.page.evaluate("navigator.clipboard.writeText('one\\ntwo')")
    await terminal.field.focus()
    await tab.page.keyboard.press("Control+Shift+V")
    await terminal.sees("it is kept")

    assert (tmp_path / "pasted").read_bytes() == b"\x1b[200~one\rtwo\x1b[201~"
    await shared_person.post(f"terminals/{one}/close")


async def test_every_key_goes_to_the_program_but_the_one_that_leaves(
    shared_person: Person, tab: Tab, tmp_path: Path
) -> None:
    keys = tmp_path / "keys"
    one = await open_one(
        shared_person, "bash", "-c", f"stty raw -echo; echo ready; head -c 9 > {keys}; echo enough; read"
    )
    terminal = await watch(tab, one)
    await terminal.sees("ready")
    for key in ("Tab", "Escape", "j", "?", "ArrowUp", "Control+c", "Shift+A"):
        await terminal.types("", key)
    await terminal.sees("enough")
    assert keys.read_bytes() == b"\t\x1bj?\x1b[A\x03A"
    await expect(tab.page.get_by_role("dialog")).to_have_count(0)

    await tab.page.keyboard.press("Control+Shift+L")
    await expect(tab.page.locator(f"#terminal-{one}")).to_be_focused()
    await tab.page.keyboard.press("?")
    await expect(tab.page.get_by_role("dialog", name="Keys")).to_contain_text("Ctrl+Shift+L leaves it")
    await tab.page.keyboard.press("Escape")
    await shared_person.post(f"terminals/{one}/close")


async def test_a_running_call_and_its_terminal_lead_to_each_other(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab
) -> None:
    async with agent(shared_home, workspace) as client:
        asked = client.ask("execute_command", command="echo in a terminal; sleep 63.4747", wait_seconds=50)
        call = await shared_person.allow("63.4747")
        row = tab.running.locator(f'[data-call="{call}"]')
        await row.get_by_role("button", name="Terminal →").click()
        terminal = Watched(tab.page)
        await terminal.sees("in a terminal")
        await expect(tab.page.locator(f'[data-terminal="{id_of(tab)}"]')).to_contain_text("e2e")
        await terminal.pane.get_by_role("link", name="Call →").click()
        await tab.sees(tab.detail, "sleep 63.4747")
        await tab.complete("Return output so far, keep it running")
        await asked.told()
        await tab.press("Terminal →")
        await terminal.sees("in a terminal")
        await expect(terminal.pane).to_contain_text("running", timeout=MS)
        await terminal.button("Stop").click()
        await terminal.button("End it and all it started?").click()
        await expect(terminal.pane).to_contain_text("SIG", timeout=MS)


async def test_a_call_that_waits_for_input_needs_the_person_and_takes_their_answer(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab
) -> None:
    command = "read -p 'Which colour? ' colour; echo you said $colour"
    async with agent(shared_home, workspace) as client:
        asked = client.ask("execute_command", command=command, wait_seconds=50)
        call = await shared_person.allow("Which colour")
        row = tab.needs_you.locator(f'[data-call="{call}"]')
        await expect(row).to_contain_text("waits for input: Which colour?", timeout=MS)
        await expect(tab.page).to_have_title("(1) Handrail", timeout=MS)
        await row.get_by_role("button", name="Terminal →").click()
        terminal = Watched(tab.page)
        await expect(terminal.remarks).to_contain_text("Waits for input: Which colour?", timeout=MS)
        await terminal.sees("Which colour?")
        await expect(terminal.field).to_be_focused(timeout=MS)
        await terminal.runs("teal")
        await terminal.sees("you said teal")
        await expect(tab.page).to_have_title("Handrail", timeout=MS)
        told = await asked.told()

    assert told.status in ("done", "waiting_for_input")


async def test_a_secret_prompt_says_that_only_a_person_can_answer(shared_person: Person, tab: Tab) -> None:
    one = await open_one(
        shared_person, "bash", "-c", "read -s -p 'Password: ' word; echo; echo it has ${#word} letters; read"
    )
    terminal = await watch(tab, one)
    await expect(terminal.remarks).to_contain_text(
        "Waits for input: Password: — only you can answer; it is not recorded", timeout=MS
    )
    await terminal.sees("Password:")
    await terminal.runs("xyzzy")
    await terminal.sees("it has 5 letters")
    await expect(terminal.remarks).not_to_contain_text("only you can answer", timeout=MS)
    assert "xyzzy" not in json.dumps(await shared_person.get(f"terminals/{one}"))
    assert "xyzzy" not in await tab.page.content()
    assert await terminal.field.input_value() == ""
    await shared_person.post(f"terminals/{one}/close")


async def test_a_person_takes_an_agents_terminal_over_and_releases_it(
    shared_home: Home, shared_person: Person, workspace: Path, tab: Tab
) -> None:
    async with agent(shared_home, workspace) as client:
        opening = client.ask("create_tracked_terminal", name="shared", shellPath="bash")
        await shared_person.allow("shared")
        one = (await opening.told()).data["terminal_id"]
        terminal = await watch(tab, one)
        await terminal.button("Take over").click()
        await expect(terminal.remarks).to_contain_text("You are in control. Agents cannot type", timeout=MS)
        await expect(terminal.field).to_be_focused(timeout=MS)
        refused = client.ask("send_to_terminal", terminalId=one, text="echo by an agent")
        told = await refused.told()
        await terminal.button("Release").click()
        await expect(terminal.remarks).not_to_contain_text("You are in control", timeout=MS)
        typing = client.ask("send_to_terminal", terminalId=one, text="echo by an $((1))st agent")
        await tab.page.keyboard.press("Control+Shift+L")
        await shared_person.allow("by an")
        await typing.told()
        await terminal.sees("by an 1st agent")
        await expect(terminal.remarks).to_contain_text("e2e typed “echo by an $((1))st agent”", timeout=MS)

    assert told.is_error
