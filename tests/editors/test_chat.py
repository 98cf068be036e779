"""`@handrail` in the editor's own chat: a hosted agent answers there, in a thread.

Participants are called only if the editor has a language model; an extension of the tests provides one, which nobody asks.
"""

from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, expect
from tests.editors.code_server import MS, SETTINGS, CodeServer, Workbench, running_code_server
from tests.support.daemon_home import Home, running_daemon
from tests.support.person_client import Json, Person
from tests.support.scripted_agent import script
from tests.support.thread_client import SCRIPTED


@pytest.fixture(scope="module")
def shared_home() -> Generator[Home]:
    with running_daemon(SCRIPTED) as home:
        yield home


@pytest.fixture(scope="module")
def server(shared_home: Home, tmp_path_factory: pytest.TempPathFactory) -> Generator[CodeServer]:
    data, settings = tmp_path_factory.mktemp("editor"), {**SETTINGS, "chat.disableAIFeatures": False}
    with running_code_server(data, shared_home.environment, settings=settings) as server:
        yield server


async def ask(chat: Locator, page: Page, prompt: str) -> None:
    await chat.locator(".interactive-input-part .monaco-editor").first.click()
    await page.keyboard.press("Control+A")
    await page.keyboard.type("@handrail ")
    await page.keyboard.insert_text(prompt)
    await page.keyboard.press("Enter")


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
    await expect(workbench.sidebar.get_by_text("the second answer").first).to_be_visible(timeout=MS)
