"""A write that waits, in the editor's own diff editor: allowed, edited and allowed, rejected; and undone by its lens."""

import re
from pathlib import Path

import pytest
from playwright.async_api import expect
from tests.editors.code_server import MS, Workbench
from tests.support.daemon_home import Home, eventually, until
from tests.support.mcp_client import ToolReply, agent
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


@pytest.fixture(autouse=True)
def notes(folder: Path) -> Path:
    """The file that the agent wants to change."""
    path = folder / "notes.txt"
    path.write_text("one\ntwo\nthree\n")
    return path


def read(path: Path) -> str:
    return path.read_text()


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
        assert read(notes) == "one\ntwo\nthree\n"

        await workbench.answer_diff("Allow as Edited")

        told = await asked.told()
    assert read(notes) == "one\n2\nthree\nfour by me"
    assert told.status == "done"
    assert "four by me" in told.text

    await workbench.open_file("notes.txt")
    lens = page.locator(".codelens-decoration a").filter(has_text=re.compile("written by call .* undo"))
    await lens.first.click()
    await workbench.confirm("Undo")
    await until(lambda: read(notes) == "one\ntwo\nthree\n")
    await expect(lens).to_have_count(0, timeout=MS)


async def test_a_proposal_is_allowed_as_it_is_and_undone_from_the_palette(
    workbench: Workbench, shared_home: Home, shared_person: Person, folder: Path, notes: Path
) -> None:
    async with agent(shared_home, folder, shared_person, transport="http") as client:
        asked = client.ask("edit_file", path="notes.txt", old_string="two", new_string="zwei")
        await workbench.open_diff("notes.txt")
        await workbench.answer_diff("Allow")
        assert (await asked.told()).status == "done"
    assert read(notes) == "one\nzwei\nthree\n"
    await workbench.open_file("notes.txt")
    await expect(workbench.page.locator(".codelens-decoration a").first).to_be_visible(timeout=MS)

    await workbench.run("Handrail: Undo the Last Change of an Agent")
    await workbench.confirm("Undo")
    await until(lambda: read(notes) == "one\ntwo\nthree\n")


async def test_a_rejected_proposal_tells_the_agent_why(
    workbench: Workbench, shared_home: Home, shared_person: Person, folder: Path, notes: Path
) -> None:
    async with agent(shared_home, folder, shared_person, transport="http") as client:
        asked = client.ask("edit_file", path="notes.txt", old_string="two", new_string="zwei")
        await workbench.open_diff("notes.txt")
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
