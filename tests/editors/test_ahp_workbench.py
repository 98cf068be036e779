"""VS Code's own chat on Handrail's agent host: a real workbench, started with one flag and without an extension."""

from pathlib import Path

import pytest
from playwright.async_api import expect
from tests.editors.chat_workbench import SECONDS, code_server, workbench
from tests.support.ahp_client import AHP, pair
from tests.support.daemon_home import running_daemon
from tests.support.person_client import person_of
from tests.support.scripted_agent import script
from tests.support.thread_client import SCRIPTED

pytestmark = [pytest.mark.anyio, pytest.mark.browser, pytest.mark.timeout(600)]

COUNT = {"terminal": {"command": "seq", "args": ["3"]}, "as": "t"}
AGAIN = {"terminal": {"command": "seq", "args": ["3"]}, "as": "t"}
LONG = {"terminal": {"command": "sh", "args": ["-c", "echo begun; sleep 600"]}, "as": "t"}
WAIT = {"wait_for_exit": "$t.terminalId", "as": "x"}


async def test_the_chat_of_vscode_works_with_threads_approvals_and_terminals(tmp_path: Path) -> None:
    folder, editor_home = tmp_path / "project", tmp_path / "editor"
    folder.mkdir()
    editor_home.mkdir()
    readme = folder / "README.md"
    readme.write_text("# hi\n")
    with running_daemon(SCRIPTED + AHP) as home:
        person = person_of(home)
        opened = {"agent": "scripted", "workspace": str(folder), "title": "Begun on the page"}
        thread = await person.post("threads", opened)
        prompt = f"threads/{thread['id']}/prompt"
        await person.post(prompt, {"text": script({"say": "Hello from the page"})})
        flag = f"agent-host-bridge-path={home.places.ahp_socket}"
        with code_server(editor_home, "--vscode-option", flag) as address:
            async with workbench(address, folder) as window:
                # It lists the thread, and shows what was said on the page.
                await window.open_chat()
                await window.shown("Begun on the page").click()
                await window.answered("Hello from the page")

                # Before it is paired, it cannot decide, and says why.
                await window.say(script(COUNT, WAIT, AGAIN, WAIT, {"say": "Counted twice"}))
                await window.shown("Allow once").click()
                await window.shown("This editor only watches until you pair it").wait_for()
                await window.keep_screenshot("ahp-unpaired")
                await pair(person)

                # "Allow for this thread" answers this question and the next one.
                await window.shown("Allow once").wait_for()
                await window.keep_screenshot("ahp-confirmation")
                await window.choose("Allow for this thread")
                await window.answered("Counted twice")

                # An answer on the page settles the card.
                await window.say(
                    script({"terminal": {"command": "echo", "args": ["elsewhere"]}}, {"say": "Went on"})
                )
                await window.shown("Allow once").wait_for()
                await person.allow("echo elsewhere")
                await window.answered("Went on")
                await expect(window.shown("Allow once")).to_have_count(0)

                # The diff of a write opens before the answer.
                content = "# hi\nsecond line\n"
                await window.say(
                    script({"write": {"path": str(readme), "content": content}}, {"say": "Written"})
                )
                await window.button("View All Changes").click()
                await window.shown("second line").wait_for()
                await window.keep_screenshot("ahp-diff")
                assert readme.read_text() == "# hi\n"
                allow = window.page.locator(".interactive-session .monaco-button").filter(visible=True)
                await allow.filter(has_text="Allow").first.click()
                await window.answered("Written")
                assert readme.read_text() == content

                # A terminal goes on in the background.
                await window.say(script(LONG, WAIT, {"say": "Left it running"}))
                await window.shown("Allow once").click()
                await window.button("Continue in Background").click()
                await window.answered("Left it running")
                [call] = [one for one in await person.get("calls") if "sleep 600" in one["title"]]
                assert (call["status"], call["by"]) == ("completed", "a person in VS Code")

                # A prompt sent meanwhile waits as steering; a stop ends the running one.
                await window.say(script({"say": "Busy"}, {"sleep": 3}, {"say": " and done"}))
                await window.answered("Busy")
                await window.say(script({"say": "Steered"}, {"hang": True}))
                await window.shown("Steering").wait_for()
                await window.answered("Steered")
                await window.button("Cancel (").click()
                await expect(window.button("Cancel (")).to_have_count(0, timeout=SECONDS * 1000)

                # After a kill of the daemon it reconnects by itself.
                home.kill()
                home.up()
                await person.post(prompt, {"text": script({"say": "After the kill"})})
                await window.answered("After the kill")
                await window.keep_screenshot("ahp-reconnected")
