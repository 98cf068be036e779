"""The VS Code extension: the size of its package, its activation, and a call in the sidebar, in a real workbench."""

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from pathlib import Path

import anyio
from playwright.async_api import Frame, Page, async_playwright, expect

from bench.daemon import Daemon, with_daemon
from bench.line import Figure, Line, Measurement, Target
from bench.page import find_chromium
from bench.samples import median
from handrail.clients.vscode_extension import VSIX

ROOT = Path(__file__).parents[1]
WINDOWS = 3
"""Windows that are opened to measure an activation."""
CALLS = 20
_ACTIVATION = re.compile(r"Activation: (\d+)ms")

_WATCH_JS = """() => {
  window.seen = new Map();
  new MutationObserver(() => {
    const now = performance.timeOrigin + performance.now();
    for (const [word] of document.body.innerText.matchAll(/bench-\\d+/g))
      if (!window.seen.has(word)) window.seen.set(word, now);
  }).observe(document.body, { subtree: true, childList: true, characterData: true });
}"""
"""Records when the page first shows each call."""


def measure_size() -> Generator[Figure]:
    if not VSIX.is_file():
        raise FileNotFoundError("The extension is not built; `make vsix` builds it.")
    yield Figure(VSIX.stat().st_size / 1e6)


def measure_window(daemon: Daemon) -> Generator[Figure]:
    subprocess.run([sys.executable, "-m", "tests.editors.install"], cwd=ROOT, check=True, stdout=sys.stderr)
    activations, delays = anyio.run(_drive_windows, daemon)
    yield Figure(median(activations), note=f"as the editor reports it, in {len(activations)} windows")
    yield Figure(median(delays), note=f"worst {max(delays):.0f} ms of {len(delays)} calls")


async def _drive_windows(daemon: Daemon) -> tuple[list[float], list[float]]:
    from tests.editors.code_server import open_workbench, running_code_server  # noqa: PLC0415 - heavy

    with (
        tempfile.TemporaryDirectory(prefix="hbe") as data,
        running_code_server(Path(data), daemon.env) as server,
    ):
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(
                executable_path=find_chromium(), args=["--no-sandbox", "--disable-gpu"]
            )
            activations: list[float] = []
            for _ in range(WINDOWS):
                async with open_workbench(browser, server, daemon.workspace) as window:
                    await expect(window.counter).to_be_visible(timeout=120_000)
                    await window.run("Developer: Show Running Extensions")
                    activations.append(await _read_activation(window.page))
            async with open_workbench(browser, server, daemon.workspace) as window:
                await window.open_sidebar()
                delays = await _time_calls(daemon, window.page)
            await browser.close()
    return activations, delays


async def _read_activation(page: Page) -> float:
    row = page.locator(".runtime-extensions-editor .monaco-list-row").filter(has_text="Handrail").first
    await expect(row).to_contain_text(_ACTIVATION, timeout=60_000)
    found = _ACTIVATION.search(await row.inner_text())
    assert found is not None
    return float(found[1])


async def _time_calls(daemon: Daemon, page: Page) -> list[float]:
    """Milliseconds from the request of a client until the sidebar shows its call."""
    frame = await _find_frame(page)
    await frame.evaluate(_WATCH_JS)
    delays: list[float] = []
    with daemon.connect() as client:
        for number in range(CALLS):
            word = f"bench-{number}"
            begun = time.time() * 1000
            request = client.begin("execute_command", {"command": f"echo {word}; rm -rf nothing-{number}"})
            await frame.wait_for_function("word => window.seen.has(word)", arg=word)
            delays.append(await frame.evaluate("word => window.seen.get(word)", word) - begun)
            daemon.allow(daemon.wait_for_approval())
            client.answer(request)
    return delays


async def _find_frame(page: Page) -> Frame:
    for frame in page.frames:
        if await frame.locator("#app").count():
            return frame
    raise LookupError("The sidebar has no page.")


MEASUREMENTS = (
    Measurement((Line("the package of the VS Code extension", "MB", Target("at most", 1.5)),), measure_size),
    Measurement(
        (
            Line("activation of the extension", "ms", Target("at most", 300)),
            Line("a call, from the client to the sidebar", "ms", Target("at most", 200)),
        ),
        with_daemon(measure_window),
    ),
)
