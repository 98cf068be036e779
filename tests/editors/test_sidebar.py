"""The extension in a real VS Code workbench while the official MCP client works: pairing, and the sidebar."""

import json
import re
from pathlib import Path

from playwright.async_api import Locator, expect
from tests.editors.code_server import MS, CodeServer, Workbench
from tests.support.daemon_home import Home, eventually, find_processes, until
from tests.support.mcp_client import agent
from tests.support.person_client import Json, Person

from handrail.framing import HELLO
from handrail.keeper import lineage

CONNECT = """
const socket = require("node:net").connect(process.argv[1]);
socket.on("connect", () => socket.write(process.argv[2] + "\\n"));
socket.on("data", (line) => (require("node:fs").writeFileSync(process.argv[3], line), process.exit()));
"""
"""Says hello as the extension does, and stores the answer."""


async def only_editor(person: Person) -> Json:
    async def look() -> Json | None:
        rows: list[Json] = await person.get("editors")
        return rows[0] if rows else None

    return await eventually(look)


async def test_a_window_shows_its_number_and_watches_until_a_person_pairs_it(
    unpaired: Workbench, server: CodeServer, shared_person: Person, folder: Path
) -> None:
    sidebar = await unpaired.open_sidebar()
    row = await only_editor(shared_person)
    if row["state"] == "paired":  # another test was first: take the pairing back
        (await shared_person.ask("POST", f"editors/{row['id']}/refuse")).raise_for_status()
    assert row["workspace"] == str(folder)
    assert server.process.pid in lineage.ancestors(row["pid"])
    banner = sidebar.get_by_role("status").filter(has_text="Pairing number")
    await expect(banner).to_contain_text(str(row["number"]), timeout=MS)
    await expect(sidebar.get_by_role("button", name="pair it")).to_have_count(0)

    body = {"number": row["number"]}
    (await shared_person.ask("POST", f"editors/{row['id']}/pair", body)).raise_for_status()

    await expect(banner).to_have_count(0, timeout=MS)


async def test_a_hanging_command_is_completed_from_the_sidebar(
    workbench: Workbench, shared_home: Home, shared_person: Person, folder: Path
) -> None:
    sidebar = await workbench.open_sidebar()
    async with agent(shared_home, folder, shared_person, transport="http") as client:
        command = "echo first words; sleep 135791"
        asked = client.ask("execute_command", command=command, wait_seconds=50)
        approval = await shared_person.question("first words")
        await expect(sidebar.get_by_role("region", name="Needs you")).to_contain_text(command, timeout=MS)
        await shared_person.answer(approval, "allow")
        running = sidebar.get_by_role("region", name="Running")
        await expect(running).to_contain_text(command, timeout=MS)
        await shared_person.has_printed(approval["call_id"])
        readings = {await read_timer(running), await next_reading(running)}
        assert len(readings) == 2, "the timer ticks"

        await running.get_by_role("button", name=re.compile("^Complete")).click()
        await sidebar.get_by_role("menuitem", name="Return output so far, keep it running").click()

        told = await asked.told()
        assert told.status == "force-completed"
        assert "first words" in told.data["output"]
        assert find_processes("135791")
        record = await shared_person.settled(approval["call_id"])
        assert record["by"] == "a person in VS Code"
        terminal = next(
            one["id"] for one in await shared_person.get("terminals") if one["call_id"] == record["id"]
        )
        await shared_person.ask("POST", f"terminals/{terminal}/close")


async def test_a_hanging_command_is_cancelled_from_the_sidebar(
    workbench: Workbench, shared_home: Home, shared_person: Person, folder: Path
) -> None:
    sidebar = await workbench.open_sidebar()
    async with agent(shared_home, folder, shared_person, transport="http") as client:
        asked = client.ask("execute_command", command="echo some output; sleep 246802", wait_seconds=50)
        call = await shared_person.allow("some output")
        await shared_person.has_printed(call)
        running = sidebar.get_by_role("region", name="Running")

        await running.get_by_role("button", name="Cancel").click()

        told = await asked.told()
        assert (told.status, told.is_error) == ("cancelled", True)
        assert "some output" in told.data["output"]
        await until(lambda: not find_processes("246802"))


async def read_timer(where: Locator) -> str:
    return await where.locator("[data-timer]").first.inner_text()


async def next_reading(where: Locator) -> str:
    """The next different reading of a timer."""
    before = await read_timer(where)
    await expect(where.locator("[data-timer]").first).not_to_have_text(before, timeout=MS)
    return await read_timer(where)


async def test_a_shell_in_the_terminal_of_a_paired_window_does_not_decide(
    workbench: Workbench, shared_home: Home, shared_person: Person, tmp_path: Path
) -> None:
    """It says the same hello as the extension, from the same editor, but it is further below."""
    answer, script = tmp_path / "answer.json", tmp_path / "connect.js"
    script.write_text(CONNECT)
    hello = {"handrail": HELLO, "want": "person", "place": "VS Code"}
    path = shared_home.places.daemon_socket
    (tmp_path / "hello.json").write_text(json.dumps(hello))
    await workbench.run("Terminal: Create New Terminal")
    rows = workbench.page.locator(".xterm-rows").first
    await expect(rows).to_contain_text(re.compile(r"[$#]"), timeout=MS)
    line = f'node -e "$(cat {script})" {path} "$(cat {tmp_path}/hello.json)" {answer}\n'
    await workbench.page.locator(".xterm-helper-textarea").first.focus()
    await workbench.page.keyboard.insert_text(line)
    await workbench.page.keyboard.press("Enter")

    await until(lambda: answer.exists() and answer.read_text().endswith("\n"))

    reply = json.loads(answer.read_text())
    assert reply["approves"] is False
    assert reply["why"]


async def test_the_window_connects_again_after_the_daemon_was_killed(
    workbench: Workbench, shared_home: Home, shared_person: Person, folder: Path
) -> None:
    sidebar = await workbench.open_sidebar()
    shared_home.kill()
    await expect(sidebar.get_by_role("button", name="Start Handrail")).to_be_visible(timeout=MS)
    shared_home.up()
    await expect(sidebar.get_by_role("navigation", name="Views")).to_be_visible(timeout=MS)
    await expect(sidebar.get_by_role("status").filter(has_text="Pairing number")).to_have_count(0)
    async with agent(shared_home, folder, shared_person, transport="http") as client:
        asked = client.ask("execute_command", command="echo after the restart", wait_seconds=50)
        await expect(sidebar.get_by_role("region", name="Needs you")).to_contain_text(
            "after the restart", timeout=MS
        )
        await shared_person.allow("after the restart")
        assert (await asked.told()).status == "done"


async def test_selection_file_and_problems_are_added_to_the_message_in_the_sidebar(
    workbench: Workbench, folder: Path
) -> None:
    (folder / "broken.json").write_text('{"a": 1,, "b": 2}\n')
    await workbench.open_file("broken.json")
    page = workbench.page
    await expect(page.locator(".monaco-editor .squiggly-error").first).to_be_visible(timeout=MS)
    await page.locator(".monaco-editor .view-line").first.click()
    await workbench.run("Handrail: Add Selection to Thread")
    message = workbench.sidebar.get_by_role("textbox", name="Message")
    await expect(message).to_have_value('@broken.json line 1:\n```json\n{"a": 1,, "b": 2}\n```\n', timeout=MS)
    await workbench.run("Handrail: Add File to Thread")
    await expect(message).to_have_value(re.compile(r"```\n@broken\.json\n$"), timeout=MS)
    await workbench.run("Handrail: Add Problems to Thread")
    await expect(message).to_have_value(
        re.compile(r"Problems in @broken\.json :\n- line 1: error: .*\n$"), timeout=MS
    )
