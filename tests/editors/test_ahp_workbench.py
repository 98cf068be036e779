"""VS Code's own chat on Handrail's agent host: a real workbench, started with one flag and without an extension."""

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest
from playwright.async_api import Browser, Locator, expect
from playwright.async_api import Error as PlaywrightError
from tests.editors.code_server import SETTINGS, Workbench, open_workbench, running_code_server
from tests.support.ahp_client import AHP, pair
from tests.support.daemon_home import eventually, running_daemon
from tests.support.person_client import Person, person_of
from tests.support.scripted_agent import command, script
from tests.support.thread_client import agents_config, open_thread

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(600), pytest.mark.newest_editor]

COUNT = {"terminal": {"command": "seq", "args": ["3"]}, "as": "t"}
AGAIN = {"terminal": {"command": "seq", "args": ["3"]}, "as": "t"}
LONG = {"terminal": {"command": "sh", "args": ["-c", "echo begun; sleep 600"]}, "as": "t"}
PROGRESS = {"say": " and on", "times": 100, "every": 0.5}, {"hang": True}
WAIT = {"wait_for_exit": "$t.terminalId", "as": "x"}
WITH_CHAT: Mapping[str, object] = {
    name: value
    for name, value in SETTINGS.items()
    if name not in ("chat.disableAIFeatures", "workbench.secondarySideBar.defaultVisibility")
}
RECONNECT_SECONDS = 180.0
"""Ten attempts of VS Code; after them it gives up."""
_HAS_TEXT = (
    "part => document.querySelector('.interactive-input-part').innerText.replace(/\\s/g, '').includes(part)"
)


class Chat:
    """The chat of VS Code itself, in a window."""

    def __init__(self, window: Workbench) -> None:
        self.window = window
        self.page = window.page

    def shown(self, text: str | re.Pattern[str]) -> Locator:
        """Visible text: confirmations exist twice, once in a hidden list."""
        return self.page.get_by_text(text).filter(visible=True).first

    def button(self, label: str) -> Locator:
        """A visible button whose accessible name begins so."""
        return self.page.locator(f'[aria-label^="{label}"]').filter(visible=True).first

    async def open(self) -> None:
        """Show the chat with the list of sessions, which stands beside it only in a wide bar."""
        await self.window.run("Chat: Open Chat")
        await self._input.wait_for()
        await self.window.run("View: Maximize Secondary Side Bar")
        await self.shown("New Session").wait_for()

    @property
    def _input(self) -> Locator:
        return self.page.locator(".interactive-input-part .monaco-editor").filter(visible=True).first

    async def say(self, text: str) -> None:
        """Type a prompt, and send it."""
        await self._input.click()
        await self.page.keyboard.insert_text(text)
        await self.page.wait_for_function(_HAS_TEXT, arg="".join(text.split())[:12])
        await self.page.keyboard.press("Enter")

    async def answered(self, text: str) -> None:
        """Wait until an answer begins with these words. The list draws what is in sight, and does not always follow its end."""
        session = self.page.locator(".interactive-session").filter(visible=True).first
        for _ in range(60):
            with suppress(PlaywrightError):
                return await self.shown(re.compile(f"^{re.escape(text)}")).wait_for(timeout=2000)
            await session.locator(".interactive-list").hover()
            await self.page.mouse.wheel(0, 100_000)
        raise AssertionError(f"no answer begins with {text!r}; the chat shows: {await session.inner_text()}")

    async def stop(self) -> None:
        """Press the stop button until it is gone: VS Code ignores it after a steered turn has begun, until there is output."""
        button = self.page.locator('[aria-label^="Cancel ("]').filter(visible=True)
        for _ in range(20):
            with suppress(AssertionError, PlaywrightError):
                await button.first.click(timeout=2000)
                return await expect(button).to_have_count(0, timeout=2000)
        raise AssertionError("the stop button stays")

    async def choose(self, option: str) -> None:
        """Choose an option of a confirmation from its drop-down. A menu of VS Code ignores clicks in its first 100 ms."""
        drop_down = self.page.locator(".interactive-session .monaco-dropdown-button")
        await drop_down.filter(visible=True).first.click()
        item = self.page.locator(".context-view .action-label").filter(visible=True, has_text=option)
        for _ in range(20):
            await item.click()
            with suppress(AssertionError):
                return await expect(item).to_have_count(0, timeout=500)
        raise AssertionError(f"the menu stays open after {option}")


async def reconnected(person: Person) -> None:
    """Wait until the window has connected again. It subscribes a moment later, and shows a turn that still goes on then.

    It tries after 1, 2, 4, 8, 16 and then every 30 seconds.
    """

    async def look() -> bool | None:
        return any(editor["windows"] for editor in await person.get("editors")) or None

    await eventually(look, RECONNECT_SECONDS)


async def test_the_chat_of_vscode_works_with_threads_approvals_and_terminals(
    tmp_path: Path, browser: Browser
) -> None:
    folder, editor_home = tmp_path / "project", tmp_path / "editor"
    folder.mkdir()
    readme = folder / "README.md"
    readme.write_text("# hi\n")
    with running_daemon(agents_config(scripted=command(steers=True)) + AHP) as home:
        person = person_of(home)
        thread = await open_thread(person, folder, title="Begun on the page")
        await thread.prompt({"say": "Hello from the page"})
        flag = f"agent-host-bridge-path={home.places.ahp_socket}"
        option = ("--vscode-option", flag)
        with running_code_server(
            editor_home, home.environment, *option, settings=WITH_CHAT, has_extension=False
        ) as server:
            async with open_workbench(browser, server, folder) as window:
                chat = Chat(window)
                # It lists the thread, and shows what was said on the page.
                await chat.open()
                await chat.shown("Begun on the page").click()
                await chat.answered("Hello from the page")

                # Before it is paired, it cannot decide, and says why.
                await chat.say(script(COUNT, WAIT, AGAIN, WAIT, {"say": "Counted twice"}))
                await chat.shown("Allow once").click()
                await chat.shown("This editor only watches until you pair it").wait_for()
                await window.keep_screenshot("ahp-unpaired")
                await pair(person)

                # "Allow for this thread" answers this question and the next one.
                await chat.shown("Allow once").wait_for()
                await window.keep_screenshot("ahp-confirmation")
                await chat.choose("Allow for this thread")
                await chat.answered("Counted twice")

                # An answer on the page settles the card.
                await chat.say(
                    script({"terminal": {"command": "echo", "args": ["elsewhere"]}}, {"say": "Went on"})
                )
                await chat.shown("Allow once").wait_for()
                await person.allow("echo elsewhere")
                await chat.answered("Went on")
                await expect(chat.shown("Allow once")).to_have_count(0)

                # The diff of a write opens before the answer.
                content = "# hi\nsecond line\n"
                await chat.say(
                    script({"write": {"path": str(readme), "content": content}}, {"say": "Written"})
                )
                await chat.button("View All Changes").click()
                await chat.shown("second line").wait_for()
                await window.keep_screenshot("ahp-diff")
                assert readme.read_text() == "# hi\n"
                allow = chat.page.locator(".interactive-session .monaco-button").filter(visible=True)
                await allow.filter(has_text="Allow").first.click()
                await chat.answered("Written")
                assert readme.read_text() == content

                # A terminal goes on in the background.
                await chat.say(script(LONG, WAIT, {"say": "Left it running"}))
                await chat.shown("Allow once").click()
                await chat.button("Continue in Background").click()
                await chat.answered("Left it running")
                [call] = [one for one in await person.get("calls") if "sleep 600" in one["title"]]
                assert (call["status"], call["by"]) == ("completed", "a person in VS Code")

                # A prompt that is sent meanwhile steers the agent; a stop ends the operation.
                steps = {"say": "At work"}, {"take_steering": "x"}, {"say": "Steered by "}, {"tell": "x"}
                await chat.say(script(*steps, *PROGRESS))
                await chat.answered("At work")
                await chat.say("use tabs")
                await chat.answered('Steered by "use tabs"')
                await chat.stop()
                assert [each["stop"] for each in (await thread.idle())["said"][-4:]] == [
                    "end_turn", "steered", "end_turn", "cancelled",
                ]  # fmt: skip

                # After a kill of the daemon it reconnects by itself.
                home.kill()
                home.up()
                await reconnected(person)
                await thread.prompt({"say": "After the kill"}, *PROGRESS)
                await chat.answered("After the kill")
                await window.keep_screenshot("ahp-reconnected")
