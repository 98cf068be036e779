"""Approvals in the editor: the status bar counts them, a notification answers what is not of high risk."""

import json
import re
from pathlib import Path

from playwright.async_api import Browser, Locator, expect
from tests.editors.code_server import MS, CodeServer, Workbench, open_workbench
from tests.support.daemon_home import Home, until
from tests.support.mcp_client import PendingCall, agent
from tests.support.person_client import Person


def notification(workbench: Workbench, words: str) -> Locator:
    return workbench.page.locator(".notification-toast").filter(has_text=words)


async def test_a_notification_answers_a_question_of_medium_risk(
    workbench: Workbench, shared_home: Home, shared_person: Person, folder: Path
) -> None:
    await workbench.open_explorer()
    async with agent(shared_home, folder, shared_person, transport="http") as client:
        asked = client.ask("execute_command", command="touch made-by-an-agent", wait_seconds=50)
        toast = notification(workbench, "touch made-by-an-agent")
        await expect(toast).to_contain_text("MEDIUM risk", timeout=MS)
        await expect(workbench.counter).to_contain_text("1", timeout=MS)

        await toast.get_by_role("button", name="Allow once").click()

        assert (await asked.told()).status == "done"
        await expect(workbench.counter).to_have_text(re.compile(r"^\s*0\s*$"), timeout=MS)
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
