"""A last look: who is there is asked, and only a key pressed after the question counts."""

import os
import sys
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from itertools import chain, repeat

import pytest

from handrail.cli.interactive.keyboard import GUARD_SECONDS, confirm

BOUND = 30.0


@contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch) -> Generator[int]:
    """The person's end of the terminal that the program has."""
    theirs, ours = os.openpty()
    with (
        os.fdopen(ours, "r+b", buffering=0) as raw,
        open(os.dup(ours), "w") as out,
        monkeypatch.context() as now,
    ):
        now.setattr(sys, "stdin", raw)
        now.setattr(sys, "stdout", out)
        yield theirs
    os.close(theirs)


@contextmanager
def typing(person: int, *keys: str) -> Generator[None]:
    """Keys, one after the other, from the moment on in which they count; the last one until it was heard."""
    heard = threading.Event()
    typist = threading.Thread(target=_type, args=(person, keys, heard))
    typist.start()
    yield
    heard.set()
    typist.join(BOUND)


def _type(person: int, keys: Sequence[str], heard: threading.Event) -> None:
    heard.wait(GUARD_SECONDS)
    for key in chain(keys, repeat(keys[-1])):
        if heard.wait(0.3):
            return
        os.write(person, key.encode())


@pytest.mark.parametrize(
    ("key", "meant"), [("y", True), ("Y", True), ("n", False), ("\n", False), ("\x1b", False)]
)
def test_only_a_plain_yes_is_one(monkeypatch: pytest.MonkeyPatch, key: str, meant: bool) -> None:
    with terminal(monkeypatch) as person, typing(person, key):
        os.write(person, b"n" if meant else b"y")  # before it is asked
        assert confirm("Really?") is meant


def test_any_other_key_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = time.monotonic()
    with terminal(monkeypatch) as person, typing(person, "a", "x", "y"):
        assert confirm("Really?") is True
        assert time.monotonic() - begun >= GUARD_SECONDS + 0.8


def test_without_a_terminal_the_command_was_the_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    with open(os.devnull) as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        assert confirm("Really?") is True
