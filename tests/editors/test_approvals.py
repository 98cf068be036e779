"""Approvals in the editor: the status bar counts them, a notification answers what is not of high risk, a write that waits
opens in the editor's own diff editor. And the tools about code, whose rename is such a write."""

import json
import re
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest
from playwright.async_api import Browser, Locator, expect
from tests.editors.code_server import MS, CodeServer, Workbench, open_workbench
from tests.support.daemon_home import Home, eventually, until
from tests.support.mcp_client import PendingCall, ToolReply, agent
from tests.support.person_client import Person

SHAPES = """\
export interface Shape { area: number }

export function measure(shape: Shape): string {
  return shape.area;
}
"""
MAIN = """\
import { measure } from "./shapes";

const text = "measure"; // a text search would find this too
console.log(measure({ area: 2 }), text);
"""

SIZE = [120, 40]
"""Columns and rows of the terminals that agents open."""


FOLDERS_MS = 5_000
"""For a window to show the folders that it has."""
BURST_SECONDS = 0.8
"""The editor shows three notifications in this time, and no fourth."""


def notification(workbench: Workbench, words: str) -> Locator:
    return workbench.page.locator(".notification-toast").filter(has_text=words)


async def test_a_notification_answers_a_question_of_medium_risk(
    workbench: Workbench, shared_home: Home, shared_person: Person, folder: Path
) -> None:
    await workbench.open_explorer()
    async with agent(shared_home, folder, shared_person, transport="http") as client:
        begun = time.monotonic()
        for number in range(3):  # as many as are shown at a time: answered elsewhere, they make room
            client.ask("execute_command", command=f"touch other-{number}", wait_seconds=50)
            await expect(notification(workbench, f"touch other-{number}")).to_be_visible(timeout=MS)
            await shared_person.deny(f"touch other-{number}")
            await expect(workbench.counter).to_have_text(re.compile(r"^\s*0\s*$"), timeout=MS)
        late = notification(workbench, "touch other-2").get_by_role("button", name="Allow once")
        await until(lambda: time.monotonic() - begun > BURST_SECONDS)
        await late.click()
        await expect(notification(workbench, "Already denied by")).to_be_visible(timeout=MS)

        asked = client.ask("execute_command", command="touch made-by-an-agent", wait_seconds=50)
        toast = notification(workbench, "touch made-by-an-agent")
        await expect(toast).to_contain_text("MEDIUM risk", timeout=MS)
        await expect(workbench.counter).to_contain_text("1", timeout=MS)
        await expect(workbench.badge).to_have_text("1", timeout=MS)

        await toast.get_by_role("button", name="Allow once").click()

        assert (await asked.told()).status == "done"
        await expect(workbench.counter).to_have_text(re.compile(r"^\s*0\s*$"), timeout=MS)
        await expect(workbench.badge).to_be_hidden(timeout=MS)
    await until((folder / "made-by-an-agent").exists)


async def test_a_high_risk_command_cannot_be_approved_from_a_notification(
    workbench: Workbench, shared_home: Home, shared_person: Person, folder: Path
) -> None:
    await workbench.open_explorer()
    async with agent(shared_home, folder, shared_person, transport="http") as client:
        asked = client.ask("execute_command", command="rm -rf ~/precious", wait_seconds=50)
        toast = notification(workbench, "rm -rf ~/precious")
        await expect(toast).to_contain_text("HIGH risk", timeout=MS)
        await expect(toast.get_by_role("button", name="Show")).to_be_visible()
        await expect(toast.get_by_role("button", name=re.compile("Allow"))).to_have_count(0)
        await expect(workbench.counter).to_have_class(re.compile("error-kind"))

        await toast.get_by_role("button", name="Show").click()

        sidebar = workbench.sidebar
        await expect(sidebar.get_by_role("complementary", name="Selected call")).to_contain_text(
            "rm -rf ~/precious", timeout=MS
        )
        await sidebar.get_by_role("button", name=re.compile("^Deny and tell")).click()
        await sidebar.get_by_role("textbox", name=re.compile("reason", re.IGNORECASE)).fill("keep it")
        await sidebar.get_by_role("button", name=re.compile("^Deny and tell")).click()
        told = await asked.told()
        assert (told.status, told.data["reason"]) == ("denied", "keep it")


async def test_the_palette_completes_and_cancels_calls(
    workbench: Workbench, shared_home: Home, shared_person: Person, folder: Path
) -> None:
    async with agent(shared_home, folder, shared_person, transport="http") as client:

        async def start(word: str) -> PendingCall:
            asked = client.ask("execute_command", command=f"echo {word}; sleep 97531", wait_seconds=50)
            await shared_person.has_printed(await shared_person.allow(f"echo {word}"))
            return asked

        first = await start("alpha")
        await expect(workbench.counter).to_have_text(re.compile(r"^\s*0\s+1\s*$"), timeout=MS)
        await workbench.run("Handrail: Show a Terminal of an Agent")
        await workbench.pick("echo alpha")
        rows = workbench.page.locator(".terminal-wrapper.active .xterm-rows")
        await expect(rows).to_contain_text("alpha", timeout=MS)
        await workbench.run("View: Hide Panel")
        await expect(rows).to_be_hidden(timeout=MS)
        await workbench.run("Handrail: Show a Terminal of an Agent")
        await workbench.pick("echo alpha")
        await expect(rows).to_be_visible(timeout=MS)
        tabs = workbench.page.locator(".tabs-list .monaco-list-row")
        await expect(tabs).to_have_count(0)  # a single one has no tab
        (terminal,) = [one for one in await shared_person.get("terminals") if one["running"]]
        assert terminal["size"] == SIZE, "a look changes nothing"
        await workbench.page.locator(".terminal-wrapper.active .xterm-helper-textarea").focus()
        await workbench.page.keyboard.press("Enter")

        async def resized() -> bool:
            return (await shared_person.get(f"terminals/{terminal['id']}"))["size"] != SIZE

        await eventually(resized)
        await workbench.run("Handrail: Complete the Running Call")
        told = await first.told()
        assert (told.status, told.data["output"].split()) == ("force-completed", ["alpha"])
        await shared_person.post(f"terminals/{told.data['terminal_id']}/close")

        second, third, fourth = await start("beta"), await start("gamma"), await start("delta")
        await expect(workbench.counter).to_have_text(re.compile(r"^\s*0\s+3\s*$"), timeout=MS)
        await workbench.run("Handrail: Cancel the Running Call")
        await workbench.pick("echo gamma")
        told = await third.told()
        assert (told.status, "gamma" in told.data["output"]) == ("cancelled", True)

        await expect(workbench.counter).to_have_text(re.compile(r"^\s*0\s+2\s*$"), timeout=MS)
        await workbench.run("Handrail: Stop All Calls")
        await workbench.confirm("Cancel them")
        assert [(await one.told()).status for one in (second, fourth)] == ["cancelled", "cancelled"]

    await workbench.run("Handrail: Connect an Agent")
    listed = workbench.page.locator(".xterm-rows").filter(has_text="jetbrains")
    await expect(listed.first).to_be_visible(timeout=MS)  # the clients and editors that it connects


async def test_a_second_window_without_a_folder_needs_no_pairing_of_its_own(
    workbench: Workbench, browser: Browser, server: CodeServer, shared_person: Person
) -> None:
    async with open_workbench(browser, server, None) as second:
        sidebar = await second.open_sidebar()
        await expect(sidebar.get_by_role("navigation", name="Views")).to_be_visible(timeout=MS)
        await expect(second.counter).to_have_text(re.compile(r"^\s*0\s*$"), timeout=MS)
        await expect(sidebar.get_by_role("status").filter(has_text="Pairing number")).to_have_count(0)
        [editor] = await shared_person.get("editors")
        assert (editor["state"], editor["windows"]) == ("paired", 2)

        await second.run("Handrail: Open in an Editor Tab")
        tab = second.page.locator(".editor-group-container .tabs-container").get_by_role(
            "tab", name="Handrail"
        )
        await expect(tab).to_be_visible(timeout=MS)
        pages = second.page.locator("iframe.webview.ready")
        await expect(pages).to_have_count(2, timeout=MS)
        for page in await pages.all():
            views = page.content_frame.frame_locator("#active-frame").get_by_role("navigation", name="Views")
            await expect(views).to_be_visible(timeout=MS)


async def show_folder(window: Workbench, name: str) -> None:
    """Load the window again until it has this folder: VS Code at times reads none from its workspace file, and stays so."""
    for _ in range(10):
        await window.open_explorer()
        with suppress(AssertionError):
            row = window.page.get_by_role("treeitem", name=name)
            return await expect(row).to_be_visible(timeout=FOLDERS_MS)
        await window.page.reload()
    raise AssertionError(f"the window never had the folder {name}")


async def test_a_window_of_two_folders_that_are_not_trusted_works_and_its_settings_start_nothing(
    workbench: Workbench,
    browser: Browser,
    server: CodeServer,
    shared_home: Home,
    shared_person: Person,
    folder: Path,
    tmp_path: Path,
) -> None:
    """It asks a paired daemon like every window, and takes the program and the home from the user's settings only."""
    (tmp_path / "second").mkdir()
    both = tmp_path / "both.code-workspace"
    chosen = {"command": str(tmp_path / "planted"), "home": str(tmp_path / "nowhere")}
    planted = {f"handrail.{name}": value for name, value in chosen.items()}
    folders = [{"path": str(folder)}, {"path": str(tmp_path / "second")}]
    both.write_text(json.dumps({"folders": folders, "settings": planted}))
    settings = server.data / "user" / "User" / "settings.json"
    before = settings.read_text()
    trust = {"security.workspace.trust.enabled": True, "security.workspace.trust.startupPrompt": "never"}
    settings.write_text(json.dumps(json.loads(before) | trust))
    try:
        async with open_workbench(browser, server, both) as window:
            await expect(window.status_bar.get_by_text("Restricted Mode")).to_be_visible(timeout=MS)
            await show_folder(window, "second")
            sidebar = await window.open_sidebar()
            async with agent(shared_home, tmp_path / "second", shared_person, transport="http") as client:
                asked = client.ask("execute_command", command="touch in-the-second", wait_seconds=50)
                await expect(window.counter).to_contain_text("1", timeout=MS)
                await window.run("Handrail: Next Question")
                allow = sidebar.get_by_role("button", name="Allow once", exact=True).last
                await expect(allow).not_to_have_attribute("aria-disabled", "true", timeout=MS)
                await allow.click()
                assert (await asked.told()).status == "done"

                async def has_editor_tools() -> bool:
                    """For the second folder of a window, too."""
                    return "get_symbols" in {tool.name for tool in (await client.client.list_tools()).tools}

                await eventually(has_editor_tools)
    finally:
        settings.write_text(before)
    assert (tmp_path / "second" / "in-the-second").exists()


async def test_a_tool_of_the_editors_own_agent_asks_like_every_other_and_does_not_approve(
    workbench: Workbench, shared_person: Person, folder: Path
) -> None:
    (folder / "use.json").write_text(
        json.dumps({"tool": "handrail_execute_command", "input": {"command": "echo asked by a chat"}})
    )
    await workbench.run("Caller: Use a Tool")
    question = await shared_person.question("asked by a chat")
    assert question["caller"]["door"] == "http"
    assert not (folder / "used.txt").exists()
    await shared_person.answer(question, "allow")
    await until((folder / "used.txt").exists)
    assert "asked by a chat" in (folder / "used.txt").read_text()


@pytest.fixture(autouse=True)
def notes(folder: Path) -> Path:
    """The file that the agent wants to change."""
    path = folder / "notes.txt"
    path.write_text("one\ntwo\nthree\n")
    return path


def read(path: Path) -> str:
    return path.read_text()


def changed_lines(diff: str) -> list[str]:
    return [line for line in diff.splitlines() if line[0] in "+-" and line[:3] not in ("+++", "---")]


async def test_a_proposal_edited_in_the_diff_editor_is_written_as_edited_and_undone(
    workbench: Workbench, shared_home: Home, shared_person: Person, folder: Path, notes: Path
) -> None:
    page = workbench.page
    async with agent(shared_home, folder, shared_person, transport="http") as client:
        asked = client.ask("write_file", path="notes.txt", content="one\n2\nthree\n")
        await workbench.open_diff("notes.txt")
        right = page.locator(".editor.modified .view-lines").first
        await expect(right).to_contain_text("2", timeout=MS)
        await right.click()
        await page.keyboard.press("Control+End")
        await page.keyboard.type("four by me")
        await expect(right).to_contain_text("four by me")
        await page.keyboard.press("Control+S")
        tab = page.get_by_role("tab", name=re.compile("←"))
        await expect(tab).not_to_have_class(re.compile("dirty"), timeout=MS)
        await tab.locator(".tab-actions .action-label").click()
        await expect(tab).to_have_count(0, timeout=MS)
        assert read(notes) == "one\ntwo\nthree\n", "saving changes the proposal, not the file"
        await workbench.open_diff("notes.txt")
        await expect(right).to_contain_text("four by me", timeout=MS)

        await workbench.answer_diff("Allow as Edited")

        told = await asked.told()
    assert read(notes) == "one\n2\nthree\nfour by me"
    assert told.status == "done"
    assert changed_lines(told.data["applied"]) == ["-two", "+2", "+four by me"]
    assert changed_lines(told.data["review"]["patch"]) == ["+four by me"]
    assert told.data["review"]["patch"].rstrip("\n") in told.text, "a model reads the text only"

    await workbench.open_file("notes.txt")
    lens = page.locator(".codelens-decoration a").filter(has_text=re.compile("written by call .* undo"))
    marks = page.locator(".glyph-margin-widgets [class*=TextEditorDecorationType]")
    await expect(marks).to_have_count(2, timeout=MS)  # the two lines that the call has written
    await lens.first.click()
    await workbench.confirm("Undo")
    await until(lambda: read(notes) == "one\ntwo\nthree\n")
    await expect(lens).to_have_count(0, timeout=MS)


async def test_a_proposal_is_allowed_as_it_is_and_undone_from_the_palette(
    workbench: Workbench, shared_home: Home, shared_person: Person, folder: Path, notes: Path
) -> None:
    cursor = workbench.status_bar.get_by_role("button", name=re.compile("^Ln "))
    async with agent(shared_home, folder, shared_person, transport="http") as client:
        before = "".join(f"line {number}\n" for number in range(1, 101))
        (folder / "notes.txt").write_text(before)
        after = before.replace("line 20\n", "zwanzig\n").replace("line 90\n", "neunzig\n")
        asked = client.ask("write_file", path="notes.txt", content=after)
        await workbench.open_diff("notes.txt")
        await expect(cursor).to_contain_text("Ln 20,", timeout=MS)  # the editor begins at the first change
        await workbench.run("Handrail: Next Hunk")
        await expect(cursor).to_contain_text("Ln 90,", timeout=MS)
        await workbench.answer_diff("Allow")
        assert (await asked.told()).status == "done"
    assert read(notes) == after
    await workbench.open_file("notes.txt")
    await expect(workbench.page.locator(".codelens-decoration a").first).to_be_visible(timeout=MS)

    await workbench.run("Handrail: Undo the Last Change of an Agent")
    await workbench.confirm("Undo")
    await until(lambda: read(notes) == before)


async def repeat_until_asked(dialog: Locator, act: Callable[[], Awaitable[None]]) -> None:
    """Act until the message is shown: a diff that has just been opened is not answered yet."""

    async def is_asked() -> bool:
        await act()
        with suppress(AssertionError):
            await expect(dialog).to_be_visible(timeout=3000)
        return await dialog.is_visible()

    await eventually(is_asked)


async def test_a_write_of_high_risk_is_allowed_after_a_look_at_its_reasons_and_digest(
    workbench: Workbench, shared_home: Home, shared_person: Person, folder: Path
) -> None:
    async with agent(shared_home, folder, shared_person, transport="http") as client:
        asked = client.ask("write_file", path=".env", content="TOKEN=1\n")
        question = await shared_person.question(".env")
        await workbench.open_diff(".env")
        allow = workbench.diff_buttons.get_by_role("button", name="Allow", exact=True)
        dialog = workbench.page.get_by_role("dialog").filter(has_text="Allow this high-risk change?")
        await repeat_until_asked(dialog, allow.click)
        for words in ("HIGH risk", *question["reasons"], question["digest"][:16]):
            await expect(dialog).to_contain_text(words)
        await workbench.keep_screenshot("high-risk-write")
        await workbench.page.keyboard.press("Escape")
        await expect(dialog).to_have_count(0, timeout=MS)
        assert (await shared_person.question(".env"))["id"] == question["id"]
        assert not (folder / ".env").exists()

        await allow.click()
        await workbench.confirm("Allow once")
        assert (await asked.told()).status == "done"
    assert read(folder / ".env") == "TOKEN=1\n"


async def test_a_rejected_proposal_tells_the_agent_why(
    workbench: Workbench, shared_home: Home, shared_person: Person, folder: Path, notes: Path
) -> None:
    async with agent(shared_home, folder, shared_person, transport="http") as client:
        asked = client.ask("edit_file", path="notes.txt", old_string="two", new_string="zwei")
        await workbench.open_diff("notes.txt")
        # Another extension runs the command of the button: that is no person's answer.
        (folder / "use.json").write_text(json.dumps({"input": "handrail.allowProposal"}))
        dialog = workbench.page.get_by_role("dialog").filter(has_text="Allow this change?")
        await repeat_until_asked(dialog, lambda: workbench.run("Caller: Use a Tool"))
        await expect(dialog).to_contain_text("MEDIUM risk")
        await workbench.page.keyboard.press("Escape")
        await expect(dialog).to_have_count(0, timeout=MS)
        assert await shared_person.question("notes.txt")

        await workbench.answer_diff("Reject")
        await workbench.page.keyboard.type("not in German")
        await workbench.page.keyboard.press("Enter")
        told = await asked.told()
    assert (told.status, told.data["reason"]) == ("denied", "not in German")
    assert read(notes) == "one\ntwo\nthree\n"


async def test_a_diff_that_was_opened_from_the_tree_closes_when_it_is_answered_on_the_page(
    workbench: Workbench, shared_home: Home, shared_person: Person, folder: Path
) -> None:
    async with agent(shared_home, folder, shared_person, transport="http") as client:
        asked = client.ask("edit_file", path="notes.txt", old_string="two", new_string="zwei")
        await workbench.run("Handrail: Open Inbox")
        header = workbench.page.get_by_role("button", name="Pending Changes Section")
        if await header.get_attribute("aria-expanded", timeout=MS) != "true":
            await header.click()
        row = workbench.page.get_by_role("treeitem", name=re.compile("notes.txt"))
        await expect(row).to_contain_text("+1", timeout=MS)
        await row.click()
        await expect(workbench.page.get_by_role("tab", name=re.compile("^notes.txt ←"))).to_be_visible(
            timeout=MS
        )
        await shared_person.deny("notes.txt")
        await expect(row).to_have_count(0, timeout=MS)
        await expect(workbench.page.get_by_role("tab", name=re.compile("←"))).to_have_count(0, timeout=MS)
        assert (await asked.told()).status == "denied"


async def test_an_agent_asks_the_editor_about_typescript_and_renames_a_function(
    workbench: Workbench, shared_home: Home, shared_person: Person, folder: Path
) -> None:
    (folder / "tsconfig.json").write_text(
        '{"compilerOptions": {"strict": true, "noEmit": true, "types": []}}'
    )
    (folder / "shapes.ts").write_text(SHAPES)
    (folder / "main.ts").write_text(MAIN)
    async with agent(shared_home, folder, shared_person, transport="http") as client:

        async def is_open() -> bool:
            return "rename_symbol" in {tool.name for tool in (await client.client.list_tools()).tools}

        await eventually(is_open)

        async def find_errors() -> ToolReply | None:
            found = await client.use("get_diagnostics", path="shapes.ts")
            assert found.status == "done", found.text
            return found if found.data["errors"] else None

        found = await eventually(find_errors)
        assert found.text.startswith(
            "shapes.ts:4:3: error: Type 'number' is not assignable to type 'string'. [ts 2322]"
        )
        fixed = SHAPES.replace("shape.area;", "String(shape.area);")
        (folder / "shapes.ts").write_text(fixed)

        async def has_none() -> bool:
            return (await client.use("get_diagnostics", path="shapes.ts")).data["errors"] == 0

        await eventually(has_none)

        outline = await client.use("get_symbols", path="shapes.ts")
        assert outline.text.splitlines() == [
            "interface Shape  [1]",
            "  property area  [1]",
            "function measure  [3-5]",
        ]
        uses = await client.use("find_references", path="main.ts", symbol="measure")
        assert [(one["path"], one["line"]) for one in uses.data["references"]] == [
            ("main.ts", 1), ("main.ts", 4), ("shapes.ts", 3),
        ]  # fmt: skip

        asked = client.ask("rename_symbol", path="shapes.ts", symbol="measure", new_name="describe")
        question = await shared_person.question("Rename measure to describe")
        assert question["reviewable"] is False
        assert "+import { describe }" in question["preview"]["diff"]
        call = await shared_person.allow("Rename measure")
        told = await asked.told()
        assert (told.status, told.data["files"]) == ("done", ["main.ts", "shapes.ts"]), told.text
        assert 'const text = "measure"' in (folder / "main.ts").read_text()
        assert "console.log(describe(" in (folder / "main.ts").read_text()
        undo = await shared_person.get(f"undo/{call}")
        await shared_person.post(f"undo/{call}", {"digest": undo["digest"]})
        assert (folder / "main.ts").read_text() == MAIN
        assert (folder / "shapes.ts").read_text() == fixed
