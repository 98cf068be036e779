"""A real VS Code workbench: code-server, with our packed extension or without, and its window in Chromium.

`make editors` installs code-server.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from zipfile import ZipFile

import httpx
from playwright.async_api import Browser, FrameLocator, Locator, Page, expect
from playwright.async_api import Error as PlaywrightError
from tests.editors.install import NEWEST, Editor
from tests.real_agents.install import node
from tests.support.daemon_home import free_port

from handrail.clients import __file__ as clients_file

VSIX = Path(clients_file).parent / "handrail.vsix"
START_SECONDS = 120.0
"""For the workbench to answer, on a machine that does much else."""
MS = 120_000
CLOSE_MS = 5_000
"""For a window to close; one with unsaved files asks, and stays."""
LIST_MS = 20_000
"""For a command to show a list of what the daemon has."""
GUARD_MS = 1_000
"""The buttons of a diff do nothing in its first 700 ms."""
LISTED_MS = 5_000
"""For the palette to list a command that it knows."""
SETTINGS: Mapping[str, object] = {
    "terminal.integrated.gpuAcceleration": "off",  # else the rows of a terminal are not in the document
    "terminal.integrated.enablePersistentSessions": False,
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "workbench.startupEditor": "none",
    "workbench.enableExperiments": False,
    "files.autoSave": "off",
    "editor.minimap.enabled": False,
    "chat.disableAIFeatures": True,
    "workbench.tips.enabled": False,
    "security.workspace.trust.enabled": False,
    "remote.autoForwardPorts": False,  # else a notification tells of each port of a test
}


CALLER = """
const vscode = require("vscode"), { readFileSync, writeFileSync, renameSync } = require("node:fs");
const MODEL = { id: "silent", name: "Silent", family: "silent", version: "1", maxInputTokens: 1000, maxOutputTokens: 1000, isUserSelectable: true, capabilities: { toolCalling: true } };
const provider = { provideLanguageModelChatInformation: () => [MODEL], provideLanguageModelChatResponse: async () => {}, provideTokenCount: async () => 1 };
const isNew = typeof vscode.lm.registerLanguageModelChatProvider === "function";  // API of 1.104
if (isNew) exports.model = vscode.lm.registerLanguageModelChatProvider("caller", provider);
exports.activate = (context) => context.subscriptions.push(vscode.commands.registerCommand("caller.use", async () => {
  const path = vscode.workspace.workspaceFolders[0].uri.fsPath, { tool, input } = JSON.parse(readFileSync(path + "/use.json"));
  if (!tool) return vscode.commands.executeCommand(input);
  const done = (text) => (writeFileSync(path + "/used.tmp", text), renameSync(path + "/used.tmp", path + "/used.txt"));
  try {
    const { content } = await vscode.lm.invokeTool(tool, { input, toolInvocationToken: undefined });
    done(content.map(({ value }) => value).join(""));
  } catch (error) {
    done("failed: " + error.message);
  }
}));
"""
"""An extension that uses a language model tool as an editor's agent does: `use.json` says which, `used.txt` gets the result. Without a
tool it runs a command of the editor."""
CALLER_MANIFEST = {
    "name": "caller",
    "publisher": "test",
    "version": "1.0.0",
    "engines": {"vscode": "^1.100.0"},
    "main": "./main.js",
    "activationEvents": ["onStartupFinished"],
    "contributes": {
        "commands": [{"command": "caller.use", "title": "Use a Tool", "category": "Caller"}],
        "languageModelChatProviders": [{"vendor": "caller", "displayName": "Caller"}],
    },
}
VSIX_MANIFEST = """<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
<Metadata><Identity Language="en-US" Id="caller" Version="1.0.0" Publisher="test"/><DisplayName>caller</DisplayName></Metadata>
<Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation><Dependencies/>
<Assets><Asset Type="Microsoft.VisualStudio.Code.Manifest" Path="extension/package.json" Addressable="true"/></Assets>
</PackageManifest>"""


def _pack_caller(path: Path) -> Path:
    with ZipFile(path, "w") as vsix:
        vsix.writestr("extension.vsixmanifest", VSIX_MANIFEST)
        vsix.writestr("extension/package.json", json.dumps(CALLER_MANIFEST))
        vsix.writestr("extension/main.js", CALLER)
    return path


class CodeServer:
    """A running server: its process, which is the editor's, and its address."""

    def __init__(self, process: subprocess.Popen[bytes], url: str, data: Path) -> None:
        self.process = process
        self.url = url
        self.data = data

    def log(self) -> str:
        """The output of the server, for failure messages."""
        return (self.data / "server.log").read_text(errors="replace")[-4000:]


@contextmanager
def running_code_server(
    data: Path,
    environment: Mapping[str, str],
    *flags: str,
    editor: Editor = NEWEST,
    settings: Mapping[str, object] = SETTINGS,
    has_extension: bool = True,
    release: str = "",
) -> Generator[CodeServer]:
    """A server whose files are all below `data`. An extension that is in its folder `extensions` already is used, too.

    `release` is the version that our extension has instead of its own.
    """
    assert editor.entry.is_file(), "there is no code-server; run `make editors`"
    around = {**environment, "HOME": str(data / "home")}
    around.pop("VSCODE_IPC_HOOK_CLI", None)
    _write_settings(data, settings)
    base = [str(node()), *editor.node_flags, str(editor.entry), "--config", str(data / "config.yaml")]
    base += ["--user-data-dir", str(data / "user"), "--extensions-dir", str(data / "extensions")]
    if has_extension:
        packed = VSIX, _pack_caller(data / "caller.vsix")
        assert VSIX.is_file(), "the extension is not built; run `make vsix`"
        if editor is NEWEST or release:
            _unpack_extensions(data / "extensions", *packed)
            _rename_release(data / "extensions", release)
        else:
            _install_extensions(base, around, *packed)
    port = free_port()
    quiet = ["--auth", "none", "--disable-telemetry", "--disable-update-check"]
    argv = [*base, *quiet, "--bind-addr", f"127.0.0.1:{port}", *editor.flags, *flags]
    with (data / "server.log").open("wb") as log:
        process = subprocess.Popen(argv, env=around, stdout=log, stderr=log, start_new_session=True)
    try:
        server = CodeServer(process, f"http://127.0.0.1:{port}", data)
        _wait_until_it_answers(server)
        yield server
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)


def _write_settings(data: Path, settings: Mapping[str, object]) -> None:
    (data / "home").mkdir(parents=True)
    program = str(Path(sys.executable).parent / "handrail")
    for scope, values in (("User", settings), ("Machine", {"handrail.command": program})):
        file = data / "user" / scope / "settings.json"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(dict(values)))
    (data / "config.yaml").write_text("auth: none\n")


def _unpack_extensions(folder: Path, *packed: Path) -> None:
    """Put extensions where the editor's own installer puts them, without the seconds that it takes."""
    for path in packed:
        with ZipFile(path) as vsix:
            about = json.loads(vsix.read("extension/package.json"))
            inner = [name for name in vsix.namelist() if name.startswith("extension/")]
            vsix.extractall(folder / f"{path.stem}.unpacked", inner)
        target = folder / f"{about['publisher']}.{about['name']}-{about['version']}"
        (folder / f"{path.stem}.unpacked" / "extension").rename(target)
        (folder / f"{path.stem}.unpacked").rmdir()


def _rename_release(folder: Path, release: str) -> None:
    (manifest,) = folder.glob("handrail.handrail-*/package.json")
    about = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**about, "version": release or about["version"]}))


def _install_extensions(base: list[str], environment: Mapping[str, str], *packed: Path) -> None:
    argv = [*base, *(word for each in packed for word in ("--install-extension", str(each)))]
    install = subprocess.run(argv, env=environment, capture_output=True, check=False)
    assert install.returncode == 0, install.stdout + install.stderr


def _wait_until_it_answers(server: CodeServer) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.process.poll() is None:
        with suppress(httpx.TransportError):
            if httpx.get(f"{server.url}/healthz", timeout=5).status_code == 200:
                return
        time.sleep(0.1)
    raise TimeoutError(server.log())


class Workbench:
    """One window of the editor."""

    def __init__(self, page: Page) -> None:
        self.page = page

    @property
    def sidebar(self) -> FrameLocator:
        """Our page in the sidebar."""
        return self.page.frame_locator("iframe.webview.ready").frame_locator("#active-frame")

    @property
    def status_bar(self) -> Locator:
        return self.page.locator("#workbench\\.parts\\.statusbar")

    @property
    def counter(self) -> Locator:
        """Our item in the status bar."""
        return self.status_bar.locator('[id="handrail.handrail.handrail.status"]')

    @property
    def badge(self) -> Locator:
        """The number at our icon in the activity bar."""
        return (
            self.page.locator(".activitybar")
            .get_by_role("tab", name=re.compile("^Handrail"))
            .locator(".badge-content")
        )

    @property
    def diff_buttons(self) -> Locator:
        """The buttons in the title of the active editor."""
        return self.page.locator(".editor-group-container.active .editor-actions")

    async def open_explorer(self) -> None:
        """Show the files instead of our sidebar."""
        tab = self.page.get_by_role("tab", name=re.compile("^Explorer")).first
        if await tab.get_attribute("aria-selected") != "true":
            await tab.click()

    async def open_file(self, name: str) -> None:
        await self.page.keyboard.press("Control+P")
        box = self.page.locator(".quick-input-widget input")
        await box.fill(name)
        await expect(self.page.locator(".quick-input-list .monaco-list-row").first).to_contain_text(
            name, timeout=MS
        )
        await box.press("Enter")

    async def pick(self, words: str) -> None:
        """Choose the row of an open list that has these words."""
        row = self.page.locator(".quick-input-list .monaco-list-row").filter(has_text=words)
        await row.first.click(timeout=MS)

    async def run_and_pick(self, command: str, words: str) -> None:
        """Run a command that shows a list, and choose a row; again if the list was closed by a view that took the focus late."""
        for _ in range(5):
            await self.run(command)
            row = self.page.locator(".quick-input-list .monaco-list-row").filter(has_text=words)
            with suppress(PlaywrightError):
                return await row.first.click(timeout=LIST_MS)
        raise AssertionError(f"{command} never listed {words}")

    async def confirm(self, button: str) -> None:
        """Press a button of a modal message."""
        await self.page.get_by_role("dialog").get_by_role("button", name=button, exact=True).click(timeout=MS)

    async def run(self, command: str) -> None:
        """Run a command of the palette by its title. A list that was opened before an extension is known stays without
        its commands, and one that was opened while a box before it closes may close with it, so it is opened again."""
        box = self.page.locator(".quick-input-widget input")
        row = self.page.locator(".quick-input-list .monaco-list-row").first
        deadline = time.monotonic() + START_SECONDS
        while True:
            await self.page.keyboard.press("F1")
            with suppress(AssertionError, PlaywrightError):
                await box.fill(f">{command}", timeout=LISTED_MS)
                await expect(row).to_contain_text(command, timeout=LISTED_MS)
                break
            assert time.monotonic() < deadline, f"the palette has no command {command}"
            await self.page.keyboard.press("Escape")
        await box.press("Enter")

    async def open_sidebar(self) -> FrameLocator:
        """Show the inbox in our sidebar, once its page is drawn."""
        await self.run("Handrail: Open Inbox")
        await expect(self.sidebar.locator("#app > *").first).to_be_visible(timeout=MS)
        return self.sidebar

    async def open_diff(self, name: str) -> None:
        """Open the write that waits, once it is known here."""
        await expect(self.counter).to_contain_text("1", timeout=MS)
        await self.run("Handrail: Next Question")
        await expect(self.page.get_by_role("tab", name=re.compile(rf"^{name} ←"))).to_be_visible(timeout=MS)
        allow = self.diff_buttons.get_by_role("button", name="Allow", exact=True)
        await expect(allow).to_be_visible(timeout=MS)

    async def answer_diff(self, button: str) -> None:
        """Press a button of the diff, again while its guard holds: then the tab closes, or a box asks for a reason."""
        tab = self.page.get_by_role("tab", name=re.compile("←"))
        box = self.page.locator(".quick-input-widget:visible")
        for _ in range(20):
            if not await tab.count() or (button == "Reject" and await box.count()):
                return
            with suppress(PlaywrightError):
                await self.diff_buttons.get_by_role("button", name=button, exact=True).click(timeout=2000)
            with suppress(AssertionError):
                await (
                    expect(box).to_be_visible(timeout=GUARD_MS)
                    if button == "Reject"
                    else expect(tab).to_have_count(0, timeout=GUARD_MS)
                )
        raise AssertionError(f"{button} did nothing")

    async def keep_screenshot(self, name: str) -> None:
        """Keep a screenshot for a look, if HANDRAIL_SCREENSHOTS names a folder."""
        if folder := os.environ.get("HANDRAIL_SCREENSHOTS"):
            await self.page.screenshot(path=Path(folder) / f"{name}.png")


@asynccontextmanager
async def open_workbench(
    browser: Browser, server: CodeServer, folder: Path | None
) -> AsyncGenerator[Workbench]:
    """A window with this folder or `.code-workspace` open; without one, an empty window."""
    context = await browser.new_context(viewport={"width": 1400, "height": 900})
    page = await context.new_page()
    page.set_default_timeout(MS)
    kind = "workspace" if folder and folder.suffix == ".code-workspace" else "folder"
    await page.goto(f"{server.url}/?{kind}={folder}" if folder else f"{server.url}/?ew=true")
    await expect(page.locator(".monaco-workbench")).to_be_visible(timeout=MS)
    yield Workbench(page)
    with suppress(
        PlaywrightError
    ):  # as a person closes it: a window that only vanishes keeps its extension host for hours
        await page.goto("about:blank", timeout=CLOSE_MS)
    await context.close()
