"""A hundred thousand messages, and how long it takes to find words among them."""

import time
import urllib.parse

from bench.figures import Line, Target, percentile
from bench.sayings import VOCABULARY, conversation
from bench.stage import Stage

THREADS = 20
MESSAGES = 5000
ASKED = 60
INDEX_SECONDS = 300.0
"""Bounds the wait until all of them can be found."""


def run(stage: Stage) -> list[Line]:
    for n in range(THREADS):
        stage.post("/api/threads/import", conversation(f"memory{n}x", MESSAGES))
    _wait_until_found(stage, f"memory{THREADS - 1}x")
    common = [_ask(stage, "number") for _ in range(5)]  # stands in every message
    pairs = [f"{VOCABULARY[n * 37 % 4000]} {VOCABULARY[n * 101 % 4000][:3]}" for n in range(ASKED)]
    samples = [*common, *(_ask(stage, words) for words in pairs)]
    return [
        Line(
            what=f"search over {THREADS * MESSAGES} messages, p95",
            ours=percentile(samples, 0.95),
            peer=None,
            unit="ms",
            target=Target("at most", 100),
            note=f"a word of every message: {percentile(common, 0.5):.0f} ms",
        )
    ]


def _wait_until_found(stage: Stage, last: str) -> None:
    deadline = time.monotonic() + INDEX_SECONDS
    while not any(hit["kind"] == "message" for hit in _search(stage, f"end of {last}")):
        if time.monotonic() > deadline:
            raise TimeoutError("Not everything that was said can be found.")
        time.sleep(0.5)


def _ask(stage: Stage, words: str) -> float:
    began = time.perf_counter()
    _search(stage, words)
    return (time.perf_counter() - began) * 1000


def _search(stage: Stage, words: str) -> list[dict[str, object]]:
    return stage.get(f"/api/search?q={urllib.parse.quote(words)}")["hits"]
