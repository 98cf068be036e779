"""Whoever launched a door is an agent: neither it nor what it starts decides for a person, but others do."""

import json
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.support.user_account import Account, Attacker

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

AGENT = """
import json, os, shlex, signal, subprocess, sys, time
from handrail.door.connect import connect
from handrail.door.connect import HelloRefused, say_hello
from handrail.paths import Places

def greet():
    try:
        with connect(Places.find(os.environ), start=False) as sock:
            return say_hello(sock, "person")["ok"]
    except HelloRefused as refused:
        return refused.why

def use(*arguments):
    done = subprocess.run([sys.executable, "-m", "handrail", *arguments], capture_output=True, text=True)
    return [done.returncode, done.stdout + done.stderr]

argv = [sys.executable, "-m", "handrail", "mcp"]
if sys.argv[2] == "through a wrapper":
    argv = ["sh", "-c", shlex.join(["sh", "-c", shlex.join(argv) + "; true"]) + "; true"]
door = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
door.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\\n')
door.stdin.flush()
door.stdout.readline()
if sys.argv[2] == "door closed":
    door.stdin.close()
    door.wait()
told = {}
if sys.argv[2] == "daemon killed":
    door.kill()
    os.kill(json.load(open(os.environ["HANDRAIL_HOME"] + "/daemon.json"))["pid"], signal.SIGKILL)
    told["up"] = use("up", "--no-open")
told |= {"itself": greet(), "approve": use("approve", sys.argv[1]), "open": use("open", "--print")}
print(json.dumps(told), flush=True)
sys.stdin.read()
"""


WAYS = ["door open", "door closed", "through a wrapper", "daemon killed"]


@pytest.fixture(scope="module")
def hostile(new_account: Callable[[], Account]) -> Attacker:
    return Attacker(new_account())


@pytest.fixture(scope="module", params=WAYS)
def told(hostile: Attacker, request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """What an agent with a door was told, while it lives on."""
    argv = (hostile.account.python, "-c", AGENT, hostile.ids["approval"], request.param)
    with hostile.account.spawn(*argv, stdin=subprocess.PIPE, start_new_session=True) as agent:
        assert agent.stdout is not None
        yield json.loads(agent.stdout.readline())
        agent.communicate(timeout=60)


def test_an_agent_that_launched_a_door_is_not_taken_for_a_person(told: dict[str, Any]) -> None:
    assert "Do it on the page" in told["itself"]


@pytest.mark.parametrize("verb", ["approve", "open"])
def test_what_an_agent_with_a_door_starts_is_refused_a_persons_verbs(told: dict[str, Any], verb: str) -> None:
    code, said = told[verb]
    assert code == 1
    assert "Do it on the page" in said


def test_the_daemon_that_an_agent_starts_gives_it_no_link(told: dict[str, Any]) -> None:
    if "up" in told:
        assert told["up"][0] == 0
        assert "#code=" not in told["up"][1]


def test_another_process_of_the_same_user_still_decides(hostile: Attacker, told: dict[str, Any]) -> None:
    assert told["approve"][0] == 1
    assert hostile.asked()["status"] == "open"
    assert "#code=" in hostile.account.link()


def test_an_agent_without_a_door_is_like_any_other_process(hostile: Attacker) -> None:
    """The control: what is refused above is refused for the door, and not for how it is asked."""
    plain = AGENT.replace('"mcp"', '"status"').replace("door.stdout.readline()", "door.stdout.read()")
    argv = (hostile.account.python, "-c", plain, hostile.ids["approval"], "door open")
    done = hostile.account.run(*argv)
    told = json.loads(done.stdout)
    assert told["itself"] is True
    assert told["open"][0] == 0
    assert told["approve"][0] == 0


LAUNCHER = """
import os, subprocess, sys, time
out = open(sys.argv[1], "w")
door = subprocess.Popen([sys.executable, "-m", "handrail", "mcp"], stdin=subprocess.PIPE, stdout=out)
os.write(door.stdin.fileno(), b'{"jsonrpc":"2.0","id":1,"method":"ping"}' + bytes([10]))
if os.fork() == 0:
    time.sleep(60)  # holds the door's input open
os._exit(0)
"""
ADOPTER = """
import ctypes, json, os, subprocess, sys, time
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # a child subreaper, as a session manager is
subprocess.Popen([sys.executable, "-c", sys.argv[2], sys.argv[1]], start_new_session=True).wait()
until = time.monotonic() + 50
while "jsonrpc" not in open(sys.argv[1]).read() and time.monotonic() < until:
    time.sleep(0.02)
done = subprocess.run([sys.executable, "-m", "handrail", "open", "--print"], capture_output=True, text=True)
print(json.dumps([open(sys.argv[1]).read(), done.returncode, done.stdout + done.stderr]), flush=True)
os._exit(0)
"""


def test_a_door_whose_client_is_gone_locks_nobody_out(hostile: Attacker) -> None:
    """Its adopter is the person's session manager, below which all of their terminals run."""
    out = hostile.account.workspace / "door.out"
    argv = (hostile.account.python, "-c", ADOPTER, str(out), LAUNCHER)
    with hostile.account.spawn(*argv, start_new_session=True, stderr=None) as adopter:
        assert adopter.stdout is not None
        answered, code, said = json.loads(adopter.stdout.readline())
    assert "jsonrpc" in answered  # the door greeted the daemon
    assert code == 0, said
    assert "#code=" in said
