"""Handrail in containers and on hardened hosts: a pid 1 of the user's, and a /proc that hides processes.

Each account runs in namespaces of its own, as an ordinary user.
"""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.safety.test_door import AGENT
from tests.support.user_account import FIRST_UID, Account, until

from handrail.keeper.lineage import KERNEL_DEFAULT, STATED_LIMIT

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(300),
    pytest.mark.skipif(os.getuid() != 0, reason="needs root to make namespaces"),
]

MARKED = (
    "import os, resource, sys\nfrom handrail.keeper.lineage import mark, own_limit\nmark()\n"
    "if sys.argv[1] == 'lower':\n"
    "    resource.prlimit(1, resource.RLIMIT_MSGQUEUE, (own_limit(), own_limit()))\n"
    "os.execv(sys.executable, [sys.executable, '-m', 'handrail', *sys.argv[2:]])\n"
)
"""Does what a command of Handrail's could do: it is marked, lowers pid 1's limit, and uses the command line."""


@dataclass
class Container(Account):
    """An account in its own PID and mount namespaces, below the pid 1 that this command line becomes."""

    first: tuple[str, ...] = ()
    pid_1: int = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        command = [each.format(uid=self.uid) for each in self.first]
        argv = ["unshare", "--pid", "--mount", "--fork", *command]
        self._outer = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        assert self._outer.stdout is not None
        assert self._outer.stdout.readline() == "ready\n"
        children = Path(f"/proc/{self._outer.pid}/task/{self._outer.pid}/children")
        self.pid_1 = int(until(children.read_text, "the namespace has a first process"))

    def spawn(self, *argv: str, **options: Any) -> "subprocess.Popen[str]":
        user = ["setpriv", f"--reuid={self.uid}", f"--regid={self.uid}", "--clear-groups"]
        environment = {"HOME": str(self.root), "PATH": os.environ["PATH"], "HANDRAIL_HOME": str(self.home)}
        chosen: dict[str, Any] = {
            "cwd": "/",
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            **options,
        }
        return subprocess.Popen([*self._enter, *user, *argv], env=environment, text=True, **chosen)

    def handrail(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """A new process in these namespaces, which the fork server cannot enter."""
        return self.run(self.python, "-m", "handrail", *arguments)

    def start(self) -> None:
        done = self.handrail("up", "--no-open")
        assert done.returncode == 0, done.stderr
        until(lambda: self.about, "the daemon writes where it is")

    def as_root(self, script: str) -> None:
        subprocess.run([*self._enter, "sh", "-ec", script], check=True, timeout=60)

    def from_inside(self, how: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Use the command line from a process that carries the mark."""
        return self.run(self.python, "-c", MARKED, how, *arguments)

    def down(self) -> None:
        os.kill(self.pid_1, signal.SIGKILL)  # and with it all others of its namespace
        self._outer.wait(60)
        assert self._outer.stdout is not None
        self._outer.stdout.close()
        super().down()

    @property
    def _enter(self) -> list[str]:
        return ["nsenter", f"--target={self.pid_1}", "--pid", "--mount"]


New = Callable[..., Container]
_uids = count(FIRST_UID + 50)
"""Apart from those of `new_account`."""


@pytest.fixture(scope="module")
def new_container(python: str) -> Iterator[New]:
    made: list[Container] = []

    def make(*first: str) -> Container:
        made.append(Container(python, next(_uids), first=first))
        return made[-1]

    yield make
    for container in made:
        container.down()


@pytest.fixture(scope="module")
def users_own(new_container: New) -> Container:
    """A container whose pid 1 runs as the user, as with `docker run -u`."""
    user = "setpriv --reuid={uid} --regid={uid} --clear-groups"
    sleep = "sh -c 'echo ready; exec sleep 100000'"
    return new_container("sh", "-c", f"mount -t proc proc /proc; exec {user} {sleep}")


def test_where_the_first_process_is_the_users_nobody_is_a_person_until_root_says_so(
    users_own: Container,
) -> None:
    started = users_own.handrail("up", "--no-open")
    assert started.returncode == 0, started.stderr
    assert "#code=" not in started.stdout
    refused = users_own.handrail("open", "--print")
    assert refused.returncode == 1
    for words in ("Process 1 of this container runs as your own user", STATED_LIMIT, "docker exec -u root"):
        assert words in refused.stderr
    assert users_own.handrail("down").returncode == 0

    copy = users_own.root / "etc"
    users_own.as_root(f"cp -a /etc {copy}; mount --bind {copy} /etc; mkdir -p /etc/handrail")
    users_own.as_root(f"echo {KERNEL_DEFAULT} > {STATED_LIMIT}")
    users_own.start()
    assert users_own.http("GET", "/api/state", users_own.sign_in()).status == 200


def test_a_command_that_lowers_the_limit_of_the_first_process_is_still_no_person(
    users_own: Container,
) -> None:
    """It depends on the test before: root has said that people are known here."""
    for verb in (("open", "--print"), ("restart",), ("down",)):
        done = users_own.from_inside("lower", *verb)
        assert done.returncode == 1
        assert "Do it on the page" in done.stderr
    assert "#code=" in users_own.link()

    users_own.as_root(f"kill -9 {users_own.pid} {users_own.keeper}")
    users_own.from_inside("lower", "up", "--no-open")
    sealed = users_own.handrail("open", "--print")
    assert (sealed.returncode, sealed.stdout) == (1, "")
    assert "handrail down" in sealed.stderr
    assert users_own.handrail("down").returncode == 0


@pytest.fixture(scope="module", params=[1, 2])
def hiding(new_container: New, request: pytest.FixtureRequest) -> Container:
    """A host on which a process cannot read /proc of others, nor of its own user's that hide their memory."""
    mount = f"mount -t proc -o hidepid={request.param} proc /proc"
    container = new_container("sh", "-c", f"{mount}; echo ready; exec sleep 100000")
    container.start()
    return container


def test_where_processes_are_hidden_a_person_decides_and_a_restart_keeps_the_sign_in(
    hiding: Container,
) -> None:
    container = hiding
    container.trust()
    person, agent = container.sign_in(), container.credential()
    container.ask(agent)
    (row,) = container.http("GET", "/api/approvals?open=true", person).json
    done = container.handrail("approve", row["id"])
    assert done.returncode == 0, done.stderr
    assert container.handrail("restart").returncode == 0
    assert container.http("GET", "/api/state", person).status == 200
    assert container.call(agent, "execute_command", command="echo hi")["output"].strip() == "hi"


def test_where_processes_are_hidden_a_command_is_no_person(hiding: Container) -> None:
    done = hiding.from_inside("as it is", "open", "--print")
    assert done.returncode == 1
    assert "Do it on the page" in done.stderr


def test_where_processes_are_hidden_an_agent_with_a_door_is_no_person(hiding: Container) -> None:
    argv = (hiding.python, "-c", AGENT, "a1", "door open")
    with hiding.spawn(*argv, stdin=subprocess.PIPE, start_new_session=True) as agent:
        assert agent.stdout is not None
        told = json.loads(agent.stdout.readline())
        agent.communicate(timeout=60)
    assert told["open"][0] == 1
    assert "Do it on the page" in told["open"][1]
    assert "#code=" in hiding.link()


def test_a_shell_that_another_program_has_marked_is_told_so(new_account: Callable[[], Account]) -> None:
    account = new_account()
    account.start()
    lower = f"--msgqueue={KERNEL_DEFAULT - 1}:{KERNEL_DEFAULT - 1}"
    line = f"for verb in 'open --print' 'approve a1' 'restart' 'down'; do {account.python} -m handrail $verb; echo code $?; done"
    done = account.run("prlimit", lower, "sh", "-c", line)
    assert done.stdout.split() == ["code", "1"] * 4
    for words in ("Process", "(sh)", "prlimit", "new terminal", "log in again", "sudo"):
        assert words in done.stderr
    assert "agent's process tree" not in done.stderr
    assert "#code=" in account.link()


def test_without_a_marked_shell_the_same_command_works(new_account: Callable[[], Account]) -> None:
    """The control for the test above, and for `prlimit` as such."""
    account = new_account()
    account.start()
    line = f"{account.python} -m handrail open --print"
    assert "#code=" in account.run("prlimit", "--nofile=512:512", "sh", "-c", line).stdout
