"""Conversations in Chromium: how soon a word is seen that an agent has said, and how soon a long thread is open."""

import re
import shutil
import time
from collections.abc import Generator
from contextlib import contextmanager

from playwright.sync_api import Page, sync_playwright

from bench.figures import ROUNDS, Line, Target, median, percentile
from bench.sayings import conversation
from bench.stage import Stage

WORDS = 2000
PACE = 200
"""Words a second."""
MESSAGES = 5000
BOUND_MS = 60_000
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-renderer-backgrounding",
)

WATCH = r"""() => {
  window.seen = new Map();
  const look = () => {
    const now = performance.timeOrigin + performance.now();
    const said = [...document.querySelectorAll("article.assistant")].at(-1)?.textContent ?? "";
    for (const [, n, at] of said.slice(-4000).matchAll(/(\d+)@(\d+\.\d\d)(?=;)/g))
      if (!window.seen.has(n)) window.seen.set(n, now - Number(at));
  };
  new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true });
}"""
"""Notes, at each change of the page, how old each word is that was not there before."""


def run(stage: Stage) -> list[Line]:
    with _page(stage) as page:
        late = _streamed(stage, page)
        opened = _opened(stage, page)
    return [
        Line(
            what=f"a word of an agent, from its pipe to the page, at {PACE}/s, p99",
            ours=percentile(late, 0.99),
            peer=None,
            unit="ms",
            target=Target("at most", 50),
            note=f"p50 {percentile(late, 0.5):.1f} ms, {len(late)} of {WORDS} words seen by themselves",
        ),
        Line(
            what=f"opening a thread of {MESSAGES} messages",
            ours=opened,
            peer=None,
            unit="ms",
            target=Target("at most", 300),
        ),
    ]


@contextmanager
def _page(stage: Stage) -> Generator[Page]:
    found = next((path for name in CHROMIUM if (path := shutil.which(name))), None)
    if found is None:
        raise FileNotFoundError("There is no Chromium here; `make tools` installs one.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=[*QUIET])
        page = browser.new_page()
        page.set_default_timeout(BOUND_MS)
        page.goto(stage.post("/api/code", {})["url"])
        page.get_by_role("link", name=re.compile("Threads")).first.wait_for()
        yield page
        browser.close()


def _streamed(stage: Stage, page: Page) -> list[float]:
    """The age of each word as the page shows it."""
    thread = stage.post(
        "/api/threads", {"workspace": str(stage.workspace), "agent": "speaker", "title": "Pace"}
    )
    _show(page, thread["id"])
    stage.post(f"/api/threads/{thread['id']}/prompt", {"text": "20 200"})  # the agent starts, and warms up
    page.get_by_text(re.compile(r"\b19@")).wait_for()
    page.evaluate(WATCH)
    stage.post(f"/api/threads/{thread['id']}/prompt", {"text": f"{WORDS} {PACE}"})
    _wait_for_last(page)
    return page.evaluate("[...window.seen.values()]")


def _wait_for_last(page: Page) -> None:
    deadline = time.monotonic() + BOUND_MS / 1000
    while not page.evaluate(f"window.seen.has('{WORDS - 1}')"):
        if time.monotonic() > deadline:
            raise TimeoutError("Not every word was seen.")
        time.sleep(0.2)


def _opened(stage: Stage, page: Page) -> float:
    """From the choice of a long thread until its last words stand on the page; the median of some."""
    made = [stage.post("/api/threads/import", conversation(f"long {n}", MESSAGES)) for n in range(ROUNDS)]
    return median([_open(page, thread["id"], f"The end of long {n}.") for n, thread in enumerate(made)])


def _open(page: Page, thread: str, last: str) -> float:
    """As a click on it would: a change of address within the page, and not the page itself anew."""
    _show(page, None)
    return page.evaluate(
        """([path, last]) => new Promise((done) => {
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
        })""",
        [f"/t/{thread}", last],
    )


def _show(page: Page, thread: str | None) -> None:
    path = "/threads" if thread is None else f"/t/{thread}"
    page.evaluate(
        "(path) => { history.pushState({}, '', path); dispatchEvent(new PopStateEvent('popstate')); }", path
    )
    time.sleep(0.3)
