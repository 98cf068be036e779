"""The web page in Chromium: the delay of words that an agent streams, and the opening of a long thread."""

import os
import re
import shutil
import time
from collections.abc import Generator
from contextlib import contextmanager

from playwright.sync_api import Page, sync_playwright

from bench.daemon import ACP_AGENT, Daemon, with_daemon
from bench.line import Figure, Line, Measurement, Target
from bench.messages import build_thread
from bench.samples import ROUNDS, median, percentile

WORDS = 2000
PACE = 200
"""Words a second."""
MESSAGES = 5000
WAIT_SECONDS = 60.0
_CHROMIUM_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
_CHROMIUM_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-renderer-backgrounding",
)

_WATCH_JS = r"""() => {
  window.seen = new Map();
  const look = () => {
    const now = performance.timeOrigin + performance.now();
    const text = [...document.querySelectorAll("article.assistant")].at(-1)?.textContent ?? "";
    for (const [, n, at] of text.slice(-4000).matchAll(/(\d+)@(\d+\.\d\d)(?=;)/g))
      if (!window.seen.has(n)) window.seen.set(n, now - Number(at));
  };
  new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true });
}"""
"""Records, at each change of the page, the age of each word that is new on it."""
_OPEN_JS = """([path, last]) => new Promise((done) => {
  const began = performance.now();
  const look = () => {
    if ([...document.querySelectorAll("article")].at(-1)?.textContent?.includes(last)) {
      watch.disconnect();
      requestAnimationFrame(() => done(performance.now() - began));
    }
  };
  const watch = new MutationObserver(look);
  watch.observe(document.body, { subtree: true, childList: true, characterData: true });
  history.pushState({}, "", path);
  dispatchEvent(new PopStateEvent("popstate"));
})"""
"""Opens a thread as a click does, by a change of the address within the page; resolves to the milliseconds it took."""


def measure_stream(daemon: Daemon) -> Generator[Figure]:
    with open_page(daemon) as page:
        ages = _stream_words(daemon, page)
    note = f"p50 {percentile(ages, 0.5):.1f} ms, {len(ages)} of {WORDS} words seen one by one"
    yield Figure(percentile(ages, 0.99), note=note)


def measure_open(daemon: Daemon) -> Generator[Figure]:
    with open_page(daemon) as page:
        titles = [f"long {number}" for number in range(ROUNDS)]
        threads = [daemon.post("/api/threads/import", build_thread(title, MESSAGES)) for title in titles]
        samples = [
            _open_thread(page, thread["id"], title) for thread, title in zip(threads, titles, strict=True)
        ]
    yield Figure(median(samples))


@contextmanager
def open_page(daemon: Daemon) -> Generator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=[*_CHROMIUM_FLAGS])
        page = browser.new_page()
        page.set_default_timeout(WAIT_SECONDS * 1000)
        page.goto(daemon.post("/api/code", {})["url"])
        page.get_by_role("link", name=re.compile("Threads")).first.wait_for()
        yield page
        browser.close()


def find_chromium() -> str:
    named = os.environ.get("HANDRAIL_CHROMIUM")
    program = named or next((path for name in _CHROMIUM_NAMES if (path := shutil.which(name))), None)
    if program is None:
        raise FileNotFoundError("Chromium is not installed; `make tools` installs it.")
    return program


def _stream_words(daemon: Daemon, page: Page) -> list[float]:
    """The age in milliseconds of each word when the page first shows it."""
    body = {"workspace": str(daemon.workspace), "agent": ACP_AGENT, "title": "Pace"}
    thread = daemon.post("/api/threads", body)["id"]
    _show_thread(page, thread)
    daemon.post(f"/api/threads/{thread}/prompt", {"text": f"20 {PACE}"})  # starts and warms up the agent
    page.get_by_text(re.compile(r"\b19@")).wait_for()
    page.evaluate(_WATCH_JS)
    daemon.post(f"/api/threads/{thread}/prompt", {"text": f"{WORDS} {PACE}"})
    _wait_for_last_word(page)
    return page.evaluate("[...window.seen.values()]")


def _wait_for_last_word(page: Page) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not page.evaluate(f"window.seen.has('{WORDS - 1}')"):
        if time.monotonic() > deadline:
            raise TimeoutError("The page did not show the last word.")
        time.sleep(0.2)


def _open_thread(page: Page, thread: str, title: str) -> float:
    _show_thread(page, None)
    return page.evaluate(_OPEN_JS, [f"/t/{thread}", f"The end of {title}."])


def _show_thread(page: Page, thread: str | None) -> None:
    """Go to a thread, or to the list of threads, within the page."""
    path = "/threads" if thread is None else f"/t/{thread}"
    page.evaluate(
        "(path) => { history.pushState({}, '', path); dispatchEvent(new PopStateEvent('popstate')); }", path
    )
    time.sleep(0.3)


MEASUREMENTS = (
    Measurement(
        (
            Line(
                f"a word of an agent, from its pipe to the page, at {PACE}/s, p99",
                "ms",
                Target("at most", 50),
            ),
        ),
        with_daemon(measure_stream),
    ),
    Measurement(
        (Line(f"opening a thread of {MESSAGES} messages", "ms", Target("at most", 300)),),
        with_daemon(measure_open),
    ),
)
