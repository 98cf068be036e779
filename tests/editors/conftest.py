"""Fixtures of the extension's tests: a daemon, code-server with the packed extension, and its window in Chromium.

The tests of a module share one window: a workbench takes many seconds to open. They run in the newest code-server, and with
`--editor-version 4.100.3` in the oldest, but for those that are marked `newest_editor`.
"""

from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest
from playwright.async_api import Browser
from tests.editors.code_server import CodeServer, Workbench, open_workbench, running_code_server
from tests.editors.install import EDITORS, NEWEST, Editor
from tests.support.browser_tab import chromium
from tests.support.daemon_home import Home, eventually, running_daemon
from tests.support.person_client import Json, Person, person_of
from tests.support.thread_client import SCRIPTED

OPTION = "--editor-version"
VERSIONS = {editor.version: editor for editor in EDITORS.values()}


def pytest_addoption(parser: pytest.Parser) -> None:
    about = "the version of code-server that shows the extension"
    parser.addoption(OPTION, choices=list(VERSIONS), default=NEWEST.version, help=about)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.e2e)
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.timeout(400))
    if selected_editor(config) is not NEWEST:
        left_out = [item for item in items if item.get_closest_marker("newest_editor")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def selected_editor(config: pytest.Config) -> Editor:
    """The option is unknown where these tests run among others."""
    return VERSIONS[str(config.getoption(OPTION, NEWEST.version))]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """One loop for a module, whose tests share a window."""
    return "asyncio"


@pytest.fixture(scope="module")
def shared_home() -> Generator[Home]:
    with running_daemon(SCRIPTED) as home:
        yield home


@pytest.fixture(scope="module")
def shared_person(shared_home: Home) -> Person:
    return person_of(shared_home)


@pytest.fixture(scope="module")
async def browser() -> AsyncGenerator[Browser]:
    async with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workspace that the window has open."""
    folder = tmp_path_factory.mktemp("workspace")
    (folder / "notes.txt").write_text("one\ntwo\nthree\n")
    return folder


@pytest.fixture(scope="module")
def editor_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all files of the editor."""
    return tmp_path_factory.mktemp("editor")


@pytest.fixture(scope="module")
def editor(request: pytest.FixtureRequest) -> Editor:
    """The newest, or what the option names; a module can have another one."""
    return selected_editor(request.config)


@pytest.fixture(scope="module")
def server(
    shared_home: Home, shared_person: Person, editor_data: Path, editor: Editor
) -> Generator[CodeServer]:
    with running_code_server(editor_data, shared_home.environment, editor=editor) as server:
        yield server


@pytest.fixture(scope="module")
async def unpaired(browser: Browser, server: CodeServer, folder: Path) -> AsyncGenerator[Workbench]:
    """The window, which may not be paired yet."""
    async with open_workbench(browser, server, folder) as workbench:
        yield workbench


@pytest.fixture
async def workbench(unpaired: Workbench, shared_person: Person) -> Workbench:
    """The window, paired."""

    async def look() -> Json | None:
        rows: list[Json] = await shared_person.get("editors")
        return rows[0] if rows else None

    row = await eventually(look)
    if row["state"] != "paired":
        body = {"number": row["number"]}
        (await shared_person.ask("POST", f"editors/{row['id']}/pair", body)).raise_for_status()
    return unpaired
