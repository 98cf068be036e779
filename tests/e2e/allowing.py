"""A person who allows whatever is asked, for tests that are about something else."""

import contextlib
import threading
from collections.abc import Generator
from contextlib import contextmanager

import httpx
from tests.e2e.home import BOUND
from tests.e2e.person import Person

BETWEEN = 0.01
"""Seconds between two looks."""


@contextmanager
def allowing(person: Person) -> Generator[None]:
    """Allow everything, from a thread of its own, for as long as this lasts."""
    over = threading.Event()
    thread = threading.Thread(target=_allow, args=(person, over))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(BOUND)


def _allow(person: Person, over: threading.Event) -> None:
    url = f"{person.home.url}/api/approvals"
    with httpx.Client(headers=person.headers, timeout=BOUND) as http:
        while not over.wait(BETWEEN):
            with contextlib.suppress(httpx.TransportError):
                for asked in http.get(url, params={"open": True}).raise_for_status().json():
                    body = {"answer": "allow", "digest": asked["digest"]}
                    http.post(f"{url}/{asked['id']}/answer", json=body)
