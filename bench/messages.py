"""Search over 100000 messages; and long threads to import, which the page's bench opens too."""

import random
import time
import urllib.parse
from collections.abc import Generator
from typing import Any

from bench.daemon import ACP_AGENT, Daemon, with_daemon
from bench.line import Figure, Line, Measurement, Target
from bench.samples import percentile, time_each

THREADS = 20
MESSAGES = 5000
"""In one thread."""
WORDS = 40
"""In one message."""
QUERIES = 60
COMMON_QUERIES = 5
INDEX_SECONDS = 300.0
"""Bounds the wait until all messages are indexed."""
VOCABULARY = [
    "".join(random.Random(n).choices("bcdfghklmnprstvw", k=2))
    + "".join(random.Random(-n - 1).choices("aeiou", k=1)) * (1 + n % 2)
    + f"{n % 97}"
    for n in range(4000)
]


def measure_search(daemon: Daemon) -> Generator[Figure]:
    for number in range(THREADS):
        daemon.post("/api/threads/import", build_thread(f"memory{number}x", MESSAGES))
    _wait_until_indexed(daemon, f"memory{THREADS - 1}x")
    common = time_each(lambda: _search(daemon, "number"), COMMON_QUERIES)  # this word is in every message
    queries = iter([f"{VOCABULARY[n * 37 % 4000]} {VOCABULARY[n * 101 % 4000][:3]}" for n in range(QUERIES)])
    samples = [*common, *time_each(lambda: _search(daemon, next(queries)), QUERIES)]
    note = f"a word of every message: {percentile(common, 0.5) * 1000:.0f} ms"
    yield Figure(percentile(samples, 0.95) * 1000, note=note)


def build_thread(title: str, messages: int) -> dict[str, Any]:
    """A thread in the export format, the same for the same title. Its last words are `The end of TITLE.`"""
    chance = random.Random(title)
    body = [
        _build_message(n, " ".join(chance.choices(VOCABULARY, k=WORDS)) + f" {title} number {n}.")
        for n in range(messages - 1)
    ]
    end = _build_message(messages, f"The end of {title}.")
    thread = {"title": title, "agent": ACP_AGENT, "created_at": 1, "updated_at": messages}
    return {"handrail": 1, "thread": thread, "messages": [*body, end]}


def _build_message(n: int, text: str) -> dict[str, Any]:
    return {
        "role": "assistant" if n % 2 else "user",
        "agent": ACP_AGENT,
        "opened_at": n + 1,
        "ended_at": n + 1,
        "stop": "end_turn",
        "parts": [{"kind": "text", "text": text}],
    }


def _wait_until_indexed(daemon: Daemon, last: str) -> None:
    deadline = time.monotonic() + INDEX_SECONDS
    while not any(hit["kind"] == "message" for hit in _search(daemon, f"end of {last}")):
        if time.monotonic() > deadline:
            raise TimeoutError("Not all messages were indexed.")
        time.sleep(0.5)


def _search(daemon: Daemon, words: str) -> list[dict[str, object]]:
    return daemon.get(f"/api/search?q={urllib.parse.quote(words)}")["hits"]


MEASUREMENTS = (
    Measurement(
        (Line(f"search over {THREADS * MESSAGES} messages, p95", "ms", Target("at most", 100)),),
        with_daemon(measure_search),
    ),
)
