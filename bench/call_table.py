"""The table of 100,000 calls in Chromium: its first rows, a search, and scrolling."""

from collections.abc import Generator
from itertools import cycle
from typing import Any

from playwright.sync_api import Page

from bench.daemon import make_home, run_daemon
from bench.growth import CALLS, load_journal
from bench.line import Figure, Line, Measurement, Target
from bench.page import open_page
from bench.samples import ROUNDS, median, percentile

SEARCHES = (
    "status:failed",
    "module77",
    "agent:codex -tool:read_file",
    "in:output 4242",
    "exit:failed",
    "nowhere",
)
"""Fields, words that are frequent, rare or nowhere, and a negation."""
FRAMES = 300
"""Frames of scrolling, each by eight rows: a fast wheel."""

_OPEN_JS = """() => new Promise((done) => {
  const rows = () => document.querySelector("[data-list] [data-call][role=row]");
  const go = (path) => {
    history.pushState({}, "", path);
    dispatchEvent(new PopStateEvent("popstate"));
  };
  let began = 0;
  const look = () => {
    if (!began && !rows()) {
      began = performance.now();
      go("/calls");
    }
    if (began && rows()) done(performance.now() - began);
    else requestAnimationFrame(look);
  };
  go("/");
  look();
})"""
"""Opens the table as a click does; resolves to the milliseconds until its first rows are drawn."""
_SEARCH_JS = """(text) => new Promise((done) => {
  const field = document.getElementById("filter");
  const rows = () => [...document.querySelectorAll("[data-list] [data-call]")].map((row) => row.dataset.call).join();
  const shown = rows();
  const began = performance.now();
  const look = () => (rows() === shown ? requestAnimationFrame(look) : done(performance.now() - began));
  field.value = text;
  field.dispatchEvent(new InputEvent("input", { bubbles: true }));
  requestAnimationFrame(look);
})"""
"""Types a search; resolves to the milliseconds until other rows are drawn."""
_SCROLL_JS = """(count) => new Promise((done) => {
  const pane = document.querySelector("[data-list] .pane");
  const frames = [];
  let last = 0;
  const step = (now) => {
    if (last) frames.push(now - last);
    last = now;
    if (frames.length === count) return done(frames);
    pane.scrollTop += 240;
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})"""
"""Scrolls down; resolves to the milliseconds of each frame."""


def measure_table() -> Generator[Figure]:
    with make_home(load_journal()) as home, run_daemon(home) as daemon, open_page(daemon) as page:
        yield Figure(median([page.evaluate(_OPEN_JS) for _ in range(ROUNDS)]))
        yield _measure_searches(page)
        frames = page.evaluate(_SCROLL_JS, FRAMES)
        yield Figure(percentile(frames, 0.95), note=f"p50 {percentile(frames, 0.5):.1f} ms")


def _measure_searches(page: Page) -> Figure:
    page.evaluate(_OPEN_JS)
    samples: list[tuple[float, str]] = []
    for _, text in zip(range(ROUNDS * len(SEARCHES)), cycle(SEARCHES), strict=False):
        samples.append((page.evaluate(_SEARCH_JS, text), text))
        page.evaluate(_SEARCH_JS, "")
    slowest: Any = max(samples)
    return Figure(median([took for took, _ in samples]), note=f"slowest: {slowest[1]}, {slowest[0]:.0f} ms")


MEASUREMENTS = (
    Measurement(
        (
            Line(f"first rows of the table of {CALLS} calls", "ms", Target("at most", 300)),
            Line(f"a search among {CALLS} calls, from the key to the rows", "ms", Target("at most", 100)),
            Line(f"scrolling the table of {CALLS} calls, a frame, p95", "ms", Target("at most", 32)),
        ),
        measure_table,
    ),
)
