"""What is asked of the kernel is there afterwards."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.keeper_terminals import BOUND, ENV

from handrail.keeper import system


def said(program: str) -> str:
    command = [
        sys.executable,
        "-c",
        "import os\nfrom handrail import hardening\nfrom handrail.keeper import system\n" + program,
    ]
    return subprocess.run(
        command, env=ENV, capture_output=True, text=True, timeout=BOUND, check=True
    ).stdout.strip()


def test_a_name_is_what_others_see() -> None:
    assert (
        said("system.set_name('handrail-warden'); print(open('/proc/self/comm').read())") == "handrail-warden"
    )


def test_an_orphan_falls_to_its_adopter() -> None:
    program = (
        "system.adopt_orphans(); r, w = os.pipe()\n"
        "if os.fork() == 0:\n"
        "    if os.fork() == 0:\n"
        "        os.close(w); os.read(r, 1); os._exit(0)\n"
        "    os._exit(0)\n"
        "os.close(r); os.wait(); print(len(open(f'/proc/self/task/{os.getpid()}/children').read().split()))\n"
    )
    assert said(program) == "1"


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to become another user")
def test_hidden_memory_is_not_shown_to_the_same_user() -> None:
    program = (
        "os.setgroups([]); os.setgid(65534); os.setuid(65534); hardening.hide_memory(); pid = os.getpid()\n"
        "if os.fork() == 0:\n"
        "    for name in ('environ', 'mem', 'fd'):\n"
        "        try: (os.listdir if name == 'fd' else lambda p: open(p, 'rb').read(1))(f'/proc/{pid}/{name}')\n"
        "        except PermissionError: print('refused', flush=True)\n"
        "    os._exit(0)\n"
        "os.wait(); assert system.open_descriptors() > 2 and system.resident_bytes() > 1_000_000\n"
    )
    assert said(program).split() == ["refused"] * 3


def test_signals_can_be_read_from_a_descriptor() -> None:
    before = signal.getsignal(signal.SIGUSR1)
    wake = system.wake_on(signal.SIGUSR1)
    try:
        os.kill(os.getpid(), signal.SIGUSR1)
        assert os.read(wake, 10) == bytes([signal.SIGUSR1])
    finally:
        os.close(signal.set_wakeup_fd(-1))
        os.close(wake)
        signal.signal(signal.SIGUSR1, before)


def test_own_figures_are_those_the_kernel_shows() -> None:
    count = system.open_descriptors()
    with Path("/dev/null").open():
        assert system.open_descriptors() == count + 1
    assert system.resident_bytes() > 1_000_000


def test_a_listing_shows_this_process_under_its_parent() -> None:
    parent, group, _ = system.listing()[os.getpid()]
    assert (parent, group) == (os.getppid(), os.getpgrp())
