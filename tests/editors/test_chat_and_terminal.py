"""`@handrail` in the editor's own chat, and Handrail's terminal profile in its panel, in one window.

Participants are called only if the editor has a language model; an extension of the tests provides one, which nobody asks.
"""

import re
from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, expect
from tests.editors.code_server import MS, SETTINGS, CodeServer, Workbench, running_code_server
from tests.editors.install import Editor
from tests.support.daemon_home import Home, eventually
from tests.support.person_client import Json, Person
from tests.support.scripted_agent import script

from handrail import __version__

OLDER = "0.0.9"
"""The version of the extension here: older than the daemon, and both work."""


@pytest.fixture(scope="module")
def server(shared_home: Home, editor_data: Path, editor: Editor) -> Generator[CodeServer]:
    settings = {**SETTINGS, "chat.disableAIFeatures": False}
    with running_code_server(
        editor_data, shared_home.environment, editor=editor, settings=settings, release=OLDER
    ) as server:
        yield server


async def ask(chat: Locator, page: Page, prompt: str) -> None:
    await chat.locator(".interactive-input-part .monaco-editor").first.click()
    await page.keyboard.press("Control+A")
    await page.keyboard.type("@handrail ")
    await page.keyboard.insert_text(prompt)
    await page.keyboard.press("Enter")


@pytest.mark.newest_editor  # code-server 4.100.3 has no chat
async def test_a_hosted_agent_answers_in_the_chat_and_the_chat_is_one_thread(
    workbench: Workbench, shared_person: Person, folder: Path
) -> None:
    page = workbench.page
    await workbench.run("Chat: Open Chat")
    chat = page.locator(".interactive-session").filter(visible=True).first
    await ask(chat, page, "a prompt that makes the editor look for models")
    await expect(chat.get_by_text("Silent", exact=True)).to_be_visible(timeout=MS)
    for words in ("the first answer", "the second answer"):
        await ask(chat, page, script({"say": words}))
        answer = chat.locator(".interactive-response .rendered-markdown").filter(has_text=words)
        await expect(answer.last).to_be_visible(timeout=MS)

    threads: list[Json] = await shared_person.get("threads")
    (thread,) = [one for one in threads if one["messages"]]
    assert (thread["agent"], thread["workspace"]) == ("scripted", str(folder))
    await chat.get_by_role("button", name="Open the Thread").last.click()
    sidebar = workbench.sidebar
    await expect(sidebar.get_by_text("the second answer").first).to_be_visible(timeout=MS)

    other = sidebar.get_by_role("status").filter(
        has_text=f"Handrail {__version__} is newer than this extension, {OLDER}"
    )
    await expect(other).to_contain_text("handrail connect vscode")
    await other.get_by_role("button", name="Dismiss").click()
    await expect(other).to_have_count(0)


def rows(workbench: Workbench) -> Locator:
    return workbench.page.locator(".terminal-wrapper.active .xterm-rows")


async def type_line(workbench: Workbench, line: str) -> None:
    await workbench.page.locator(".terminal-wrapper.active .xterm-helper-textarea").focus()
    await workbench.page.keyboard.insert_text(line)
    await workbench.page.keyboard.press("Enter")


async def test_the_profile_becomes_the_default_and_its_terminal_survives_the_daemon(
    workbench: Workbench, shared_home: Home, shared_person: Person, folder: Path
) -> None:
    await expect(workbench.counter).to_have_text(re.compile(r"^\s*0\s*$"), timeout=MS)  # it is paired
    await workbench.run("Terminal: Create New Terminal")
    await expect(rows(workbench)).to_contain_text(re.compile(r"[$#]"), timeout=MS)
    question = workbench.page.locator(".notification-toast").filter(has_text="Make the Handrail terminal")
    await question.get_by_role("button", name="Make It the Default").click(timeout=MS)
    done = workbench.page.locator(".notification-toast").filter(
        has_text="New terminals are opened by Handrail"
    )
    await expect(done).to_be_visible(timeout=MS)
    await workbench.run("Terminal: Create New Terminal")

    async def look() -> Json | None:
        listed: list[Json] = await shared_person.get("terminals")
        return next((one for one in listed if one["name"] == "VS Code" and one["running"]), None)

    tabs = workbench.page.locator(".tabs-list .monaco-list-row")
    await tabs.filter(has_text="Handrail").first.click(timeout=MS)
    terminal = await eventually(look)
    assert terminal["cwd"] == str(folder)
    await expect(rows(workbench)).to_contain_text(re.compile(r"[$#]"), timeout=MS)
    await type_line(workbench, "echo typed-$((40+2)); stty size")
    await expect(rows(workbench)).to_contain_text("typed-42", timeout=MS)
    marks = workbench.page.locator(".terminal-wrapper.active .terminal-command-decoration")
    await expect(marks.first).to_be_visible(timeout=MS)  # from the shell's marks
    await type_line(workbench, "(exit 3)")
    failed = workbench.page.locator(".terminal-wrapper.active .terminal-command-decoration.error")
    await expect(failed).to_have_count(1, timeout=MS)
    shown = (await shared_person.get(f"terminals/{terminal['id']}"))["size"]
    await expect(rows(workbench)).to_contain_text(f"{shown[1]} {shown[0]}", timeout=MS)

    await workbench.page.set_viewport_size({"width": 1100, "height": 800})

    async def resized() -> list[int] | None:
        size = (await shared_person.get(f"terminals/{terminal['id']}"))["size"]
        return size if size[0] < shown[0] else None

    columns, lines = await eventually(resized)
    await type_line(workbench, "clear; stty size")
    await expect(rows(workbench)).to_contain_text(f"{lines} {columns}", timeout=MS)

    shared_home.kill()
    shared_home.up()

    async def lives() -> bool | None:
        return (await shared_person.get(f"terminals/{terminal['id']}"))["running"] or None

    await eventually(lives)
    for attempt in range(20):
        await type_line(workbench, f"echo again-{attempt}-$((1+1))")
        try:
            await expect(rows(workbench)).to_contain_text(re.compile(r"again-\d+-2"), timeout=3000)
            break
        except AssertionError:
            continue
    await expect(rows(workbench)).to_contain_text(re.compile(r"again-\d+-2"), timeout=MS)
    await type_line(workbench, "exit 3")

    async def ended() -> bool | None:
        return (await shared_person.get(f"terminals/{terminal['id']}"))["exit_code"] == 3 or None

    await eventually(ended)

    shared_home.kill()
    await expect(workbench.counter).to_contain_text("Handrail", timeout=MS)
    await workbench.run("Terminal: Create New Terminal")
    toast = workbench.page.locator(".notification-toast").filter(has_text="This is the plain shell.")
    # The second is what the extension knows before it has tried to connect again.
    lost = re.compile("Handrail is not running|The connection to Handrail was lost")
    await expect(toast).to_contain_text(lost, timeout=MS)
    await expect(tabs.filter(has_text="Not kept by Handrail").first).to_have_class(
        re.compile("selected"), timeout=MS
    )
    await expect(rows(workbench)).to_contain_text(re.compile(r"[$#]"), timeout=MS)
    await type_line(workbench, "echo plain-$((1+2))")
    await expect(rows(workbench)).to_contain_text("plain-3", timeout=MS)
