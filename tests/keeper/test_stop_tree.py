"""An ending asks, waits and kills in that order, and reports what it did."""

import subprocess
import sys

from tests.support.keeper_terminals import BOUND, ENV

import handrail.keeper.stop_tree

ENDING = (
    "import os, subprocess, time\n"
    "from handrail.keeper import system\n"
    "from handrail.keeper.stop_tree import TreeStop\n"
    "system.adopt_orphans()\n"
    "def run(ending):\n"
    "    while True:\n"
    "        try:\n"
    "            while os.waitpid(-1, os.WNOHANG)[0]: pass\n"
    "        except ChildProcessError: return ending.report()\n"
    "        if ending.advance(): return ending.report(left=True)\n"
    "        time.sleep(min(0.01, ending.wait_at_most()))\n"
    "def start(script):\n"
    "    child = subprocess.Popen(['sh', '-c', script + '; echo ready; read x; sleep 1000'], stdout=subprocess.PIPE,\n"
    "                             stdin=subprocess.PIPE)\n"
    "    child.stdout.readline(); child.returncode = 0; return child\n"
)


def ended(program: str) -> str:
    """What a program prints that is the adopter of a tree of its own."""
    assert handrail.keeper.stop_tree.__file__
    command = [sys.executable, "-c", ENDING + program]
    return subprocess.run(command, env=ENV, capture_output=True, text=True, timeout=BOUND, check=True).stdout


def test_what_obeys_is_only_asked() -> None:
    said = ended(
        "start(':'); r = run(TreeStop('test', 10)); print([s.signal for s in r.signals], r.duration_ms < 5000)"
    )
    assert said == "['SIGHUP', 'SIGTERM', 'SIGCONT'] True\n"


def test_what_is_deaf_is_killed_when_the_grace_is_over() -> None:
    program = "start('trap \"\" HUP TERM'); r = run(TreeStop('test', 0.1)); print(r.signals[-1].signal, r.signals[-1].at_ms >= 100)"
    assert ended(program) == "SIGKILL True\n"


def test_without_a_grace_nothing_is_asked() -> None:
    assert (
        ended("start(':'); r = run(TreeStop('test', 0)); print([s.signal for s in r.signals])")
        == "['SIGKILL']\n"
    )


def test_hurry_shortens_a_grace_and_never_lengthens_it() -> None:
    program = (
        "start('trap \"\" HUP TERM'); e = TreeStop('test', 1000); e.hurry(0.1); e.hurry(500)\n"
        "print(run(e).duration_ms < 10000)"
    )
    assert ended(program) == "True\n"


def test_the_spared_live_on() -> None:
    program = (
        "kept, other = start(':'), start(':'); e = TreeStop('test', 0, {kept.pid}); e.advance(); os.waitpid(other.pid, 0)\n"
        "print(os.waitpid(kept.pid, os.WNOHANG)[0], [p.pid for p in e.report().stopped] == [other.pid])\n"
        "os.kill(kept.pid, 9)"
    )
    assert ended(program) == "0 True\n"


def test_a_long_list_is_cut_and_counted() -> None:
    program = (
        "[subprocess.Popen(['sleep', '1000']) for _ in range(80)]\n"
        "r = run(TreeStop('test', 0)); print(len(r.stopped), r.more)"
    )
    assert ended(program) == "64 16\n"
