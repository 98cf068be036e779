"""The homes of the command line's tests, and a person who allows whatever the demo asks."""

import contextlib
import threading
from collections.abc import Iterator

import pytest
from tests.cli.conftest import alone
from tests.support.cli_home import BOUND, SRC, Home

from handrail.cli.client import reach
from handrail.cli.failure import Failure

__all__ = ["alone"]

BETWEEN = 0.05
"""Seconds between two looks."""


@pytest.fixture
def allowed(alone: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Everything is, by somebody, for as long as the test lasts."""
    monkeypatch.setenv("PYTHONPATH", str(SRC))
    alone.up()
    over = threading.Event()
    person = threading.Thread(target=_allow, args=(over,))
    person.start()
    yield
    over.set()
    person.join(BOUND)


def _allow(over: threading.Event) -> None:
    with reach("person") as link:
        while not over.wait(BETWEEN):
            for asked in link.get("approvals", open=True):
                with contextlib.suppress(Failure):  # it was withdrawn meanwhile
                    link.post(
                        "approvals",
                        asked["id"],
                        "answer",
                        body={"answer": "allow", "digest": asked["digest"]},
                    )
