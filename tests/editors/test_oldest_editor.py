"""The extension in the oldest editor that its manifest allows: VS Code 1.100."""

import json
from pathlib import Path

import pytest
from playwright.async_api import expect
from tests.editors.code_server import MS, Workbench
from tests.editors.install import OLDEST, Editor
from tests.support.daemon_home import Home, eventually
from tests.support.mcp_client import agent
from tests.support.person_client import Person

MANIFEST = Path(__file__).parents[2] / "editors" / "vscode" / "package.json"


@pytest.fixture(scope="module")
def editor() -> Editor:
    return OLDEST


async def test_agents_are_answered_and_told_problems_in_the_oldest_editor(
    workbench: Workbench, shared_home: Home, shared_person: Person, folder: Path
) -> None:
    oldest = OLDEST.packages.version("code-server").removeprefix("4.")
    assert json.loads(MANIFEST.read_text())["engines"]["vscode"] == f"^1.{oldest.partition('.')[0]}.0"
    notes = folder / "notes.txt"
    sidebar = await workbench.open_sidebar()
    async with agent(shared_home, folder, shared_person, transport="http") as client:
        asked = client.ask("execute_command", command="touch made-by-an-agent", wait_seconds=50)
        needs = sidebar.get_by_role("region", name="Needs you")
        await expect(needs).to_contain_text("touch made-by-an-agent", timeout=MS)
        await expect(workbench.counter).to_contain_text("1", timeout=MS)
        await workbench.run("Handrail: Next Question")
        allow = sidebar.get_by_role("button", name="Allow once", exact=True).last
        await expect(allow).not_to_have_attribute("aria-disabled", "true", timeout=MS)
        await allow.click()
        assert (await asked.told()).status == "done"

        asked = client.ask("edit_file", path="notes.txt", old_string="two", new_string="zwei")
        await workbench.open_diff("notes.txt")
        await workbench.answer_diff("Allow")
        assert (await asked.told()).status == "done"

        (folder / "broken.json").write_text('{"a": 1,, "b": 2}\n')

        async def has_errors() -> bool:
            """As soon as the editor's language server for JSON runs."""
            return bool((await client.use("get_diagnostics", path="broken.json")).data["errors"])

        await eventually(has_errors)
    assert notes.read_text() == "one\nzwei\nthree\n"
