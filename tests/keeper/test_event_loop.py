"""The loop calls back who is ready, and nobody who was let go of in the same pass."""

import os
import time
from collections.abc import Iterator

import pytest

from handrail.keeper.event_loop import READ, WRITE, Loop


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)
    os.close(writing)


def test_whoever_is_ready_is_called_with_what_it_is_ready_for(pipe: tuple[int, int]) -> None:
    loop, called = Loop(), list[int]()
    loop.watch(pipe[0], READ, called.append)
    loop.once(0)
    assert called == []
    os.write(pipe[1], b"x")
    loop.once(5)
    assert called == [READ]


def test_what_is_watched_can_be_changed_and_ended(pipe: tuple[int, int]) -> None:
    loop, called = Loop(), list[int]()
    loop.watch(pipe[1], WRITE, called.append)
    loop.once(5)
    loop.watch(pipe[1], 0, called.append)
    loop.watch(pipe[1], 0, called.append)
    loop.once(0)
    assert called == [WRITE]


def test_a_descriptor_let_go_of_in_a_pass_is_not_called_in_it(pipe: tuple[int, int]) -> None:
    loop, called = Loop(), list[str]()
    other, other_writing = os.pipe()
    fds = {"one": pipe[0], "two": other}

    def taking(name: str) -> None:
        called.append(name)
        loop.watch(fds[{"one": "two", "two": "one"}[name]], 0, lambda _: None)

    loop.watch(pipe[0], READ, lambda _: taking("one"))
    loop.watch(other, READ, lambda _: taking("two"))
    os.write(pipe[1], b"x")
    os.write(other_writing, b"x")
    loop.once(5)
    assert len(called) == 1
    assert loop.ready_count == 2
    os.close(other)
    os.close(other_writing)


def test_a_descriptor_is_waited_for_alone_until_another_is_ready(pipe: tuple[int, int]) -> None:
    loop, called = Loop(), list[str]()
    other, other_writing = os.pipe()

    def read_alone(_events: int) -> None:
        for _ in loop.wait_alone(pipe[0], time.monotonic() + 60):
            called.append("alone")
            os.write(other_writing, b"x")

    loop.watch(pipe[0], READ, read_alone)
    loop.watch(other, READ, lambda _: called.append("other"))
    os.write(pipe[1], b"x")
    loop.once(60)
    assert called == ["alone"]
    loop.watch(pipe[0], 0, read_alone)
    loop.once(60)
    assert called == ["alone", "other"]
    os.close(other)
    os.close(other_writing)


def test_a_wait_for_one_descriptor_ends_at_its_time_and_at_the_next_timer(pipe: tuple[int, int]) -> None:
    loop, waits = Loop(), list[int]()
    os.write(pipe[1], b"x")

    def read_alone(_: int) -> None:
        os.read(pipe[0], 1)
        waits.append(len(list(loop.wait_alone(pipe[0], time.monotonic() + (0.01 if not waits else 60)))))

    loop.watch(pipe[0], READ, read_alone)
    loop.once(60)
    os.write(pipe[1], b"x")
    loop.once(0.01)
    assert waits == [0, 0]
    os.write(pipe[1], b"x")
    loop.once(0.01)
    assert len(waits) == 3, "it is watched again"


def test_the_longest_pass_is_told_once() -> None:
    loop = Loop()
    loop.once(0)
    assert loop.take_worst() >= 0
    assert loop.take_worst() == 0
