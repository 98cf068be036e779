"""A user account with a running Handrail, and an attack that runs in it as a command.

It owns the user, the home and the processes. As root, each account has a separate user id; otherwise it has the id of
the user who runs the tests. The attacks are in tests/safety/attack.
"""

import contextlib
import http.client
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from tests.safety.attack.ground import Got
from tests.support.fork_server import DAEMON, Order, fork_handrail, run_handrail

T = TypeVar("T")

BOUND = 60.0
"""Seconds for anything a test waits for: far more than it takes, so that only a fault reaches it."""
FIRST_UID = 20_000 + os.getpid() % 400 * 100
"""Of the users made here, each of whom is ended with all that is theirs: others who run these tests have others."""
NO_RESTART = "[daemon]\nrestart = false\n"
"""The keeper restarts no daemon: a test that kills one starts the next one itself."""
CONFIG = f'default_policy = "allow"\n{NO_RESTART}[command]\nstop_grace = 0.2\nwait_seconds = 1\n'
"""Commands in the workspace run without approval. Outside of it they ask, and are handed back after a second."""


def until(seen: Callable[[], T], what: str, within: float = BOUND) -> T:
    """Poll until `seen` returns something true."""
    end = time.monotonic() + within
    while not (found := seen()):
        assert time.monotonic() < end, f"{what}: not within {within:g} s"
        time.sleep(0.01)
    return found


@dataclass(frozen=True, slots=True)
class Answer:
    """What an HTTP request came back with."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def detail(self) -> str:
        return str(self.json["detail"])


@dataclass
class Account:
    """One user, one home, and the Handrail that runs there."""

    python: str
    uid: int
    root: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="hr-", dir="/tmp")))
    environment: Mapping[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        for folder in (self.root, self.home, self.workspace):
            folder.mkdir(exist_ok=True)
            self._own(folder)
        self.home.chmod(0o700)
        self.write(self.home / "config.toml", CONFIG)

    @property
    def home(self) -> Path:
        return self.root / "h"

    @property
    def workspace(self) -> Path:
        return self.root / "w"

    @property
    def about(self) -> dict[str, Any]:
        """The content of daemon.json, empty while it does not exist."""
        try:
            return json.loads((self.home / "daemon.json").read_text())
        except (FileNotFoundError, ValueError):
            return {}

    @property
    def pid(self) -> int:
        return self.about["pid"]

    @property
    def keeper(self) -> int:
        return int((self.home / "keeper.lock").read_text())

    @property
    def where(self) -> str:
        return str(self.about["url"]).removeprefix("http://")

    def write(self, path: Path, text: str) -> Path:
        path.write_text(text)
        self._own(path)
        return path

    def spawn(self, *argv: str, **options: Any) -> subprocess.Popen[str]:
        """A process of this user, outside of everything that Handrail started."""
        nobody, to_us = subprocess.DEVNULL, subprocess.PIPE
        chosen: dict[str, Any] = {"cwd": "/", "stdin": nobody, "stdout": to_us, "stderr": to_us, **options}
        if os.getuid() != self.uid:
            chosen |= {"user": self.uid, "group": self.uid, "extra_groups": []}
        return subprocess.Popen(argv, env=self._variables(), text=True, **chosen)

    def run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        with self.spawn(*argv) as process:
            try:
                out, err = process.communicate(timeout=BOUND)
            except BaseException:
                process.kill()
                raise
        return subprocess.CompletedProcess(argv, process.returncode, out, err)

    def handrail(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The command line, used by the person."""
        return run_handrail(Order(arguments, self._variables(), uid=self.uid), BOUND, self.python)

    def start(self) -> None:
        """The daemon, detached as `handrail up` starts it. A daemon that is the first of its home is a fork."""
        if (self.home / "handrail.db").exists():
            done = self.handrail("up", "--no-open")
            assert done.returncode == 0, done.stderr
        else:
            order = Order(DAEMON, self._variables(), uid=self.uid, has_session=True)
            with open(os.devnull, "r+b") as nothing:
                fork_handrail(order, [nothing.fileno()] * 3, self.python)
        until(lambda: self.about, "the daemon writes where it is")

    @contextlib.contextmanager
    def in_the_foreground(self) -> Generator[None]:
        """The daemon with this account's whole environment, as a person starts it in a shell."""
        with self.spawn(self.python, "-m", "handrail", "up", "--foreground", "--no-open") as daemon:
            try:
                until(lambda: self.about.get("pid") == daemon.pid, "the daemon writes where it is")
                yield
            finally:
                daemon.terminate()
                daemon.communicate(timeout=BOUND)

    def trust(self) -> None:
        """Trust the workspace as the person, so that calls of medium risk are allowed there."""
        done = self.handrail("trust", "--yes", str(self.workspace))
        assert done.returncode == 0, done.stderr

    def allow(self, call: str, person: str) -> None:
        """Allow a call's approval as the person."""
        asked = self.http("GET", "/api/approvals?open=true", person).json
        (row,) = [row for row in asked if row["call_id"] == call]
        body = {"answer": "allow", "digest": row["digest"]}
        answer = self.http("POST", f"/api/approvals/{row['id']}/answer", person, body)
        assert answer.status == 200, answer.body

    def link(self) -> str:
        """A fresh link for the page."""
        done = self.handrail("open", "--print")
        assert done.returncode == 0, done.stderr
        return done.stdout.split()[-1]

    def sign_in(self) -> str:
        """A page's bearer."""
        code = self.link().partition("#code=")[2]
        answer = self.http("POST", "/api/sign-in", body={"code": code})
        assert answer.status == 200, answer.body
        return answer.json["bearer"]

    def credential(self) -> str:
        """A call bearer for the workspace."""
        done = self.handrail("credential", "--workspace", str(self.workspace), "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["bearer"]

    def http(
        self,
        method: str,
        path: str,
        bearer: str | None = None,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        sent = {"content-type": "application/json", **(headers or {})}
        if bearer is not None:
            sent["authorization"] = f"Bearer {bearer}"
        with contextlib.closing(http.client.HTTPConnection(self.where, timeout=BOUND)) as connection:
            connection.request(method, path, None if body is None else json.dumps(body), sent)
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read())

    def call(self, bearer: str, tool: str, **input: Any) -> dict[str, Any]:
        """Use a tool over HTTP, as an agent with this call bearer does; the structured result, empty if there is none."""
        me: dict[str, Any] = {"protocolVersion": "2025-06-18", "capabilities": {}}
        me["clientInfo"] = {"name": "test", "version": "1"}
        session = self._rpc(bearer, None, {"id": 1, "method": "initialize", "params": me})[1]
        self._rpc(bearer, session, {"method": "notifications/initialized"})
        wanted = {"id": 2, "method": "tools/call", "params": {"name": tool, "arguments": input}}
        reply, _ = self._rpc(bearer, session, wanted)
        return reply["result"].get("structuredContent", {})

    def ask(self, bearer: str) -> dict[str, Any]:
        """A call that waits for approval and is handed back immediately."""
        return self.call(bearer, "execute_command", command="echo approved", cwd="/", wait_seconds=0)

    def approvals(self, bearer: str) -> dict[str, str]:
        """Every approval there is, by id: its status."""
        return {row["id"]: row["status"] for row in self.http("GET", "/api/approvals", bearer).json}

    def down(self) -> None:
        """End everything of this account and remove its files."""
        self.kill()
        shutil.rmtree(self.root, ignore_errors=True)

    def kill(self) -> None:
        """End every process of this account, however it defends itself."""
        for _ in range(50):
            living = self.processes()
            if not living:
                break
            for pid in living:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)

    def processes(self) -> list[int]:
        """What lives in this account: of the user, where it is ours alone; else daemon and keeper."""
        if self.uid != os.getuid():
            numbers = (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())
            return [pid for pid in numbers if _uid(pid) == self.uid]
        known = [self.about.get("pid", 0)]
        with contextlib.suppress(OSError, ValueError):
            known.append(self.keeper)
        return [pid for pid in known if pid and _uid(pid) == self.uid]

    def _variables(self) -> dict[str, str]:
        return {
            "HOME": str(self.root),
            "PATH": os.environ["PATH"],
            "HANDRAIL_HOME": str(self.home),
            **self.environment,
        }

    def _own(self, path: Path) -> None:
        if os.getuid() == 0:
            os.chown(path, self.uid, self.uid)

    def _rpc(self, bearer: str, session: str | None, message: dict[str, Any]) -> tuple[Any, str | None]:
        headers = {"accept": "application/json, text/event-stream"}
        if session is not None:
            headers |= {"mcp-session-id": session, "mcp-protocol-version": "2025-06-18"}
        answer = self.http("POST", "/mcp", bearer, {"jsonrpc": "2.0", **message}, headers)
        assert answer.status in (200, 202), answer.body
        lines = [line for line in answer.body.splitlines() if line.startswith(b"data: {")]
        said = json.loads(lines[-1].removeprefix(b"data: ")) if lines else None
        return said, answer.headers.get("mcp-session-id")


def _uid(pid: int) -> int | None:
    """Whose process it is, while it lives."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    lines = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    return None if lines["State"].startswith("Z") else int(lines["Uid"].split()[0])


PROGRAM = Path(__file__).parents[1] / "safety" / "attack"


@dataclass
class Attacker:
    """A home with an open approval, the bearers of an agent and a person, and an attack on them."""

    account: Account
    person: str = field(init=False)
    agent: str = field(init=False)
    ids: dict[str, str] = field(init=False)
    keeper: int = field(init=False)
    """Who was the keeper before any attack."""

    def __post_init__(self) -> None:
        self.account.start()
        self.account.trust()
        self.keeper = self.account.keeper
        self.person = self.account.sign_in()
        self._let_loose()
        self.agent = self.account.credential()
        call = self.account.ask(self.agent)["call_id"]
        (row,) = self.account.http("GET", "/api/approvals?open=true", self.person).json
        (credential,) = self.account.http("GET", "/api/credentials", self.person).json
        self.ids = {
            "approval": row["id"],
            "digest": row["digest"],
            "call": call,
            "credential": credential["id"],
            "workspace": str(self.account.workspace),
            "bearer": self.agent,
        }

    def _let_loose(self) -> None:
        """Add a rule that allows attacks."""
        rule = {"command": f"{self.account.python} -m attack", "workspace": str(self.account.workspace)}
        answer = self.account.http("POST", "/api/rules", self.person, rule)
        assert answer.status == 201, answer.body

    def attack(self, posture: str, tries: Iterable[str]) -> "AttackResult":
        """Run an attack and wait for its result."""
        self.order(posture, tries)
        return self.loot()

    def order(self, posture: str, tries: Iterable[str]) -> None:
        """Start an attack."""
        place = self.account.workspace
        shutil.copytree(PROGRAM, place / "attack", dirs_exist_ok=True)
        order = {"posture": posture, "tries": [*tries], "ids": self.ids, "out": str(self._out)}
        self.account.write(place / "order.json", json.dumps(order))
        self._out.unlink(missing_ok=True)
        self.account.write(place / "attack" / "home", str(self.account.home))
        line = f"{self.account.python} -m attack order.json"
        with contextlib.suppress(
            http.client.HTTPException, OSError
        ):  # it may end the daemon before that has answered
            self.account.call(self.agent, "execute_command", command=line, background=True)

    def loot(self) -> "AttackResult":
        """Wait for the attack's result."""
        until(self._out.exists, "the attack tells what it got", within=150)
        return AttackResult(json.loads(self._out.read_text()))

    @property
    def _out(self) -> Path:
        return self.account.workspace / "got.json"

    def asked(self) -> Mapping[str, Any]:
        """The approval, as anyone may read it now."""
        done = self.account.handrail("approvals", "--all", "--json")
        assert done.returncode == 0, done.stderr
        return {row["id"]: row for row in json.loads(done.stdout)}[self.ids["approval"]]


@dataclass(frozen=True)
class AttackResult:
    """The result of an attack."""

    told: dict[str, Any]

    @property
    def above(self) -> list[int]:
        """The process ids of the attack's ancestors, nearest first."""
        return self.told["above"]

    def of(self, name: str) -> Got:
        assert "broke" not in self.told, self.told
        return Got(*self.told["got"][name])
