"""The extension in a real VS Code workbench while the official MCP client works: pairing, and the sidebar."""

import json
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from anyio import create_task_group, create_unix_listener
from anyio.abc import SocketStream
from playwright.async_api import Locator, expect
from tests.editors.code_server import MS, CodeServer, Workbench
from tests.support.daemon_home import BOUND, Home, eventually, find_processes, until
from tests.support.mcp_client import agent
from tests.support.person_client import Json, Person
from tests.support.scripted_agent import script

from handrail.framing import HELLO
from handrail.keeper import lineage

MANIFEST = {
    "name": "visitor",
    "publisher": "other",
    "version": "0.0.1",
    "engines": {"vscode": "^1.100.0"},
    "main": "./extension.js",
    "contributes": {
        "commands": [{"command": "visitor.start", "title": "Start Processes", "category": "Visitor"}]
    },
}
"""Another extension in the same extension host."""
EXTENSION = """
const { spawn } = require("node:child_process");
const start = (role, options) => spawn(process.execPath, [__dirname + "/connect.js", role], options);
exports.activate = () => require("vscode").commands.registerCommand("visitor.start", () => {
  start("child", { stdio: "ignore" });
  start("detached", { stdio: "ignore", detached: true }).unref();
  const server = start("mcp-server", { stdio: "pipe" });  // as the editor starts a server of an extension
  server.stdin.write('{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}\\n');
});
"""
CONNECT = """
const fs = require("node:fs"), role = process.argv[2];
const socket = require("node:net").connect(PATH);
socket.on("connect", () => socket.write(HELLO + "\\n"));
socket.on("data", (line) => {
  fs.writeFileSync(`${__dirname}/${role}.tmp`, line);
  fs.renameSync(`${__dirname}/${role}.tmp`, `${__dirname}/${role}.json`);
});
"""
"""Says hello as the extension does, stores the answer, and keeps the connection."""

PHONE_PIXELS = 44
"""The height of a button on a phone; the sidebar is as narrow as one, and has a mouse."""
IN_HIGH_CONTRAST = """(link, is) => {
  link.ownerDocument.body.classList.toggle("vscode-high-contrast", is);
  link.style.setProperty("--vscode-contrastActiveBorder", "orange");
}"""
"""What the editor does with the page in a theme of high contrast, as far as it concerns this link."""


class Visitor:
    """Another extension of the editor, whose processes want to decide."""

    def __init__(self, folder: Path, socket: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True)
        hello = json.dumps({"handrail": HELLO, "want": "person", "place": "VS Code", "ppid": 1})
        constants = f"const PATH = {json.dumps(str(socket))}, HELLO = {json.dumps(hello)};"
        (folder / "package.json").write_text(json.dumps(MANIFEST))
        (folder / "extension.js").write_text(EXTENSION)
        self.script.write_text(constants + CONNECT)

    @property
    def script(self) -> Path:
        return self._folder / "connect.js"

    async def reply(self, role: str) -> Json:
        """What the daemon answered to the process with this role."""
        path = self._folder / f"{role}.json"
        await until(path.exists)
        return json.loads(path.read_text())


@pytest.fixture(scope="module", autouse=True)
def visitor(editor_data: Path, shared_home: Home) -> Visitor:
    return Visitor(editor_data / "extensions" / "other.visitor-0.0.1", shared_home.places.daemon_socket)


def bearer(reply: Json) -> dict[str, str]:
    return {"Authorization": f"Bearer {reply['bearer']}"}


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
    await expect(banner.locator("code")).to_have_css("background-color", "rgba(0, 0, 0, 0)")
    await expect(sidebar.get_by_role("button", name="pair it")).to_have_count(0)

    body = {"number": row["number"]}
    (await shared_person.ask("POST", f"editors/{row['id']}/pair", body)).raise_for_status()

    await expect(banner).to_have_count(0, timeout=MS)
    await sidebar.get_by_role("button", name="Settings", exact=True).click()
    settings = sidebar.get_by_role("region", name="Settings", exact=True)
    await expect(settings).to_contain_text("journal.keep_days", timeout=MS)


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
        view = sidebar.get_by_role("link", name=re.compile("^Terminals"))
        await view.click()
        await view.evaluate(IN_HIGH_CONTRAST, True)
        await expect(view).to_have_css("outline-style", "solid")  # it tells which view is shown
        await view.evaluate(IN_HIGH_CONTRAST, False)
        await sidebar.get_by_role("link", name=re.compile("^echo some output")).click()
        await expect(sidebar.get_by_role("button", name="Take over")).to_be_visible(timeout=MS)
        await expect(sidebar.get_by_role("toolbar", name="Keys")).to_have_count(0)  # they are a phone's
        opened = workbench.page.locator(".editor-group-container").get_by_role("tab")
        assert (await opened.count(), len(workbench.page.context.pages)) == (0, 1), "a link stays in the page"
        await workbench.open_sidebar()
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


async def test_a_thread_with_an_agent_is_held_in_the_sidebar(
    workbench: Workbench, shared_person: Person, folder: Path
) -> None:
    opened = {"agent": "scripted", "workspace": str(folder), "title": "Talk in the editor"}
    thread = await shared_person.post("threads", opened)
    await workbench.open_sidebar()
    title = workbench.page.locator(".part.sidebar .pane-header .title").first
    await expect(title).to_have_text(re.compile("inbox", re.IGNORECASE), timeout=MS)
    await workbench.run_and_pick("Handrail: Open Thread", "Talk in the editor")
    await expect(title).to_have_text(re.compile("threads", re.IGNORECASE), timeout=MS)
    room = workbench.sidebar.get_by_role("complementary", name="Selected thread")
    await expect(room.get_by_role("region", name=f"Thread {thread['id']}")).to_be_visible(timeout=MS)
    field = room.get_by_label("Message", exact=True)
    count = {"terminal": {"command": "seq", "args": ["3"]}, "as": "t"}
    await field.fill(script(count, {"wait_for_exit": "$t.terminalId"}, {"say": "Counted to three"}))
    await field.press("Enter")

    allow = room.get_by_role("group", name="Your answer").get_by_role("button", name="Allow once", exact=True)
    await expect(allow).not_to_have_attribute("aria-disabled", "true", timeout=MS)
    box = await allow.bounding_box()
    assert box is not None
    assert box["height"] < PHONE_PIXELS
    await allow.click()

    said = room.get_by_role("log", name="Conversation").get_by_role("article", name="scripted").last
    await expect(said).to_contain_text("Counted to three", timeout=MS)
    [call] = [one for one in await shared_person.get("calls") if "seq 3" in one["title"]]
    assert (call["status"], call["answered_by"]) == ("done", "a person in VS Code")


async def test_only_the_extension_host_of_a_paired_window_decides(
    workbench: Workbench, shared_person: Person, visitor: Visitor
) -> None:
    """Each says the same hello as the extension, from the same editor, but its parent is another process."""
    await workbench.run("Visitor: Start Processes")
    await workbench.run("Terminal: Create New Terminal")
    rows = workbench.page.locator(".xterm-rows").first
    await expect(rows).to_contain_text(re.compile(r"[$#]"), timeout=MS)
    await workbench.page.locator(".xterm-helper-textarea").first.focus()
    await workbench.page.keyboard.insert_text(f"node {visitor.script} shell\n")
    await workbench.page.keyboard.press("Enter")

    for role in ("child", "mcp-server", "detached", "shell"):
        reply = await visitor.reply(role)
        assert reply["approves"] is False, role
        assert reply["why"], role
        async with httpx.AsyncClient(headers=bearer(reply), timeout=BOUND) as http:
            assert (await http.post(f"{reply['url']}/api/code")).status_code == 403, role
    assert (await only_editor(shared_person))["state"] == "paired"


@asynccontextmanager
async def other_daemon(socket: Path, **reply: object) -> AsyncGenerator[None]:
    """What listens on a daemon's socket answers a hello as another release does."""

    async def answer(stream: SocketStream) -> None:
        async with stream:
            await stream.receive()
            await stream.send(json.dumps({"handrail": HELLO, "ok": True, **reply}).encode() + b"\n")

    async with await create_unix_listener(socket) as listener, create_task_group() as tasks:
        tasks.start_soon(listener.serve, answer)
        yield
        tasks.cancel_scope.cancel()


async def test_the_window_starts_a_daemon_that_was_killed_and_connects_again(
    workbench: Workbench, shared_home: Home, shared_person: Person, folder: Path
) -> None:
    sidebar = await workbench.open_sidebar()
    shared_home.kill()
    path = shared_home.places.daemon_socket
    async with other_daemon(path, handrail=HELLO + 1):
        newer = re.compile("Handrail is newer than this extension.*handrail connect vscode")
        await expect(sidebar.get_by_text(newer)).to_be_visible(timeout=MS)
    async with other_daemon(path, url="http://127.0.0.1:1", bearer="of a daemon before editors"):
        older = re.compile("This extension is newer than the running Handrail.*handrail restart")
        await expect(sidebar.get_by_text(older)).to_be_visible(timeout=MS)
    start = sidebar.get_by_role("button", name="Start Handrail")
    await expect(start).to_be_visible(timeout=MS)
    await workbench.run("Handrail: Next Question")
    toast = workbench.page.locator(".notification-toast").filter(has_text="Handrail is not running.")
    await expect(toast).to_be_visible(timeout=MS)
    await start.click()
    await expect(sidebar.get_by_text("Looking for Handrail")).to_be_visible(timeout=MS)
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
    await expect(message).to_have_css("font-size", "13px")
    await workbench.run("Handrail: Add File to Thread")
    await expect(message).to_have_value(re.compile(r"```\n@broken\.json\n$"), timeout=MS)
    await workbench.run("Handrail: Add Problems to Thread")
    await expect(message).to_have_value(
        re.compile(r"Problems in @broken\.json :\n- line 1: error: .*\n$"), timeout=MS
    )
