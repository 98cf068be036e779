"""Descendants are found at any depth, and signals reach only them."""

import os
import signal
import subprocess
from collections.abc import Iterator

import pytest

from handrail.keeper import process_tree


@pytest.fixture
def family() -> Iterator[tuple[int, int, int]]:
    """A child of ours, its child and its grandchild."""
    script = "sh -c 'sleep 1000 & echo $$ $!; wait' & wait"
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        inner, sleeper = map(int, process.stdout.readline().split())
        yield process.pid, inner, sleeper
        for pid in (sleeper, inner, process.pid):
            process_tree.send(pid, process_tree.descendants(os.getpid()).get(pid, 0), (signal.SIGKILL,))


def test_a_tree_is_found_with_each_parent(family: tuple[int, int, int]) -> None:
    child, inner, sleeper = family
    found = process_tree.descendants(os.getpid())
    assert (found[child], found[inner], found[sleeper]) == (os.getpid(), child, inner)
    assert process_tree.descendants(child) == {inner: child, sleeper: inner}


def test_what_is_spared_is_left_out_with_all_below_it(family: tuple[int, int, int]) -> None:
    child, inner, _ = family
    assert process_tree.descendants(child, {inner}) == {}
    assert child not in process_tree.descendants(os.getpid(), {child})


def test_a_signal_for_a_pid_that_has_another_parent_by_now_is_not_sent(family: tuple[int, int, int]) -> None:
    _, inner, sleeper = family
    assert process_tree.send(
        sleeper, 1, (signal.SIGKILL,)
    )  # as if its pid had been taken by a child of another
    assert process_tree.descendants(inner) == {sleeper: inner}
    assert process_tree.name_of(inner) == "sh"


def test_a_process_that_is_gone_is_no_fault() -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    assert process_tree.send(process.pid, 1, (signal.SIGKILL,))
    assert process_tree.children(process.pid) == []
    assert process_tree.name_of(process.pid) == "?"
