"""What the daemon starts while its tools run: marked, without a key in its environment, and never from a user's folder.

An ordinary user's daemon, with model keys in its environment and a folder of planted programs first on its PATH. A thread
looks at every process below the daemon while each tool runs.
"""

import json
import os
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.house.source import ROOT
from tests.support.processes import is_alive
from tests.support.route_table import targets
from tests.support.user_account import Account, until

from handrail.keeper.lineage import hard_limit

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not Path("/proc/self/limits").exists(), reason="needs /proc"),
]

CONTRACTS = ROOT / "tests" / "contracts" / "files"
KEY = "sk-marked-for-our-agent"
SECRETS = {"ANTHROPIC_API_KEY": KEY, "OPENAI_API_KEY": f"{KEY}-too"}
PLANTED = (
    "rg",
    "notify-send",
    "prlimit",
    "sh",
    "bash",
    "env",
    "python3",
    "node",
    "npm",
    "git",
    "ps",
    "xdg-open",
    *("gcc", "cc", "ld", "nm", "objdump", "ldconfig", "uname", "uv", "which", "dbus-launch"),
)
LINES = 400_000
"""Lines of the file and of the output that are searched: enough to keep a search busy for a while."""
LAUNCHER = "handrail-launch"
"""The name of the launcher process, and of its forks that run a function of ours."""
OF_EDITORS = {"get_symbols", "find_references", "rename_symbol"}
"""Listed only while an editor is paired. They start no process: the editor answers."""
SLOW = r"(\w+ ){6}needle$"


@dataclass(frozen=True)
class Child:
    """A process seen below the daemon."""

    pid: int
    name: str
    is_marked: bool
    is_hidden: bool
    """No other process of the user can read its memory."""
    environ: bytes


@dataclass
class Watch:
    """Looks at the processes below the daemon, all the time."""

    daemon: int
    keeper: int
    seen: set[Child] = field(default_factory=set[Child])
    tools: set[str] = field(default_factory=set[str])
    _over: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> "Watch":
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.is_set():
            for pid in self._below(self.daemon):
                self._look(pid)

    def _below(self, pid: int) -> Generator[int]:
        for child in children(pid):
            if child != self.keeper:
                yield child
                yield from self._below(child)

    def _look(self, pid: int) -> None:
        limit = hard_limit(pid)
        try:
            # Before its name: a fork of the launcher is hidden until it executes a program, which gives it another name.
            is_hidden = Path(f"/proc/{pid}/mem").stat().st_uid != Path(f"/proc/{pid}").stat().st_uid
            name = Path(f"/proc/{pid}/comm").read_text().strip()
            environ = read_environ(pid)
        except OSError:
            return
        if limit is not None:
            self.seen.add(Child(pid, name, limit < (hard_limit(1) or 0), is_hidden, environ))


def read_environ(pid: int) -> bytes:
    """The environment of a process; empty if it is hidden, so that no process of the user can read it."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except PermissionError:
        return b""


def children(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):  # a process that just ended
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):  # a thread that just ended
                found += map(int, (task / "children").read_text().split())
    return found


@dataclass
class House:
    """An account whose daemon has keys in its environment and planted programs on its PATH."""

    account: Account
    person: str = ""
    agent: str = ""
    terminal: str = ""

    def start(self) -> None:
        self.plant()
        path = f"{self.planted}:{os.environ['PATH']}"
        self.account.environment = {**SECRETS, "PATH": path}
        self.account.start()
        self.account.trust()
        self.person, self.agent = self.account.sign_in(), self.account.credential()
        self.account.write(self.account.workspace / "big.txt", "some words in a line\n" * LINES)
        shell = {"shellPath": "/bin/bash", "shellArgs": ["--norc"]}
        self.terminal = self.use("create_tracked_terminal", **shell)["terminal_id"]
        self.use("send_to_terminal", terminalId=self.terminal, text="cat big.txt; echo end")
        self.use(
            "wait_for_terminal", terminalId=self.terminal, until="pattern", value="^end", timeout_seconds=30
        )

    @property
    def planted(self) -> Path:
        return self.account.root / "bin"

    @property
    def traces(self) -> Path:
        return self.account.root / "traces"

    def plant(self) -> None:
        """Programs that leave a trace if they run without the mark."""
        for folder in (self.planted, self.traces):
            folder.mkdir()
            os.chown(folder, self.account.uid, self.account.uid)
        limit = hard_limit(1)
        for name in PLANTED:
            unmarked = f'grep -q "Max msgqueue size *[0-9]* *{limit} " /proc/self/limits'
            trace = f'{unmarked} && : > "{self.traces}/{name}"'
            real = f'exec /usr/bin/{name} "$@"'
            program = self.account.write(
                self.planted / name, f"#!/bin/sh\nPATH=/usr/bin:/bin\n{trace}\n{real}\n"
            )
            program.chmod(0o755)

    def has_notified(self, watch: "Watch") -> bool:
        """Whether the notification program ran or was found missing."""
        log = (self.account.home / "logs" / "daemon.log").read_text()
        return "notify-send is not installed" in log or "notify-send" in {
            child.name for child in tuple(watch.seen)
        }

    def search_until_seen(self, watch: "Watch") -> None:
        """Search until the watch has seen ripgrep: a busy machine may look too late."""

        def has_seen_a_search() -> bool:
            assert self.use("search_content", pattern=SLOW)["status"] == "done"
            return "rg" in {child.name for child in tuple(watch.seen)}

        until(has_seen_a_search, "a search is seen")

    def use(self, tool: str, **input: Any) -> dict[str, Any]:
        return self.account.call(self.agent, tool, **input)


@pytest.fixture(scope="module")
def house(new_account: Callable[..., Account]) -> House:
    house = House(new_account())
    house.start()
    return house


@pytest.fixture(scope="module")
def watch(house: House) -> Watch:
    """All that was seen while every tool ran, one after another, and while everything was read that a page can read."""
    account = house.account
    terminal = {"terminalId": house.terminal}
    with Watch(account.pid, account.keeper) as watch:
        for tool, given in {
            "read_file": {"path": "big.txt", "limit": 5},
            "list_files": {"recursive": True},
            "search_files": {"pattern": "*.txt"},
            "search_content": {"pattern": SLOW},
            "write_file": {"path": "a.txt", "content": "one\n"},
            "edit_file": {"path": "a.txt", "old_string": "one", "new_string": "two"},
            "apply_diff": {"path": "a.txt", "diff": "@@ -1 +1 @@\n-two\n+three\n"},
            "execute_command": {"command": "sleep 0.1; true"},
            "create_tracked_terminal": {},
            "list_tracked_terminals": {},
            "get_terminal_buffer": terminal,
            "send_to_terminal": {**terminal, "text": "echo typed"},
            "wait_for_terminal": {**terminal, "until": "pattern", "value": "never", "timeout_seconds": 0.5},
            "search_terminal_buffer": {**terminal, "pattern": SLOW},
            "list_calls": {},
            "get_call": {"call_id": "none"},
            "wait_for_call": {"call_id": "none", "wait_seconds": 0},
            "approve": {"tool_name": "Read", "input": {"file_path": f"{account.workspace}/big.txt"}},
            "close_terminal": terminal,
            "get_diagnostics": {},
        }.items():
            house.use(tool, **given)
            watch.tools.add(tool)
        house.account.ask(house.agent)
        for target in targets():
            if target.method == "GET" and target.path.startswith("/api/"):
                account.http("GET", target.path, house.person)
        account.http("PUT", "/api/keys/openai", house.person, {"key": "k"})
        account.http("PUT", "/api/secrets/NAME", house.person, {"value": "of-a-server"})
        until(lambda: house.has_notified(watch), "the approval is announced on the desktop")
        house.search_until_seen(watch)
    return watch


def test_every_tool_was_watched(watch: Watch) -> None:
    contract = json.loads((CONTRACTS / "tools.json").read_text())
    assert watch.tools | OF_EDITORS == {tool["name"] for tool in contract["tools"]}
    assert "rg" in {child.name for child in watch.seen}, "the control: short-lived processes are seen"


def test_every_process_that_the_daemon_started_is_marked(watch: Watch) -> None:
    assert [child for child in watch.seen if not child.is_marked] == []


def test_no_process_that_the_daemon_started_has_a_key(watch: Watch) -> None:
    assert [child for child in watch.seen if KEY.encode() in child.environ] == []
    launchers = [child for child in watch.seen if child.name == LAUNCHER]
    assert {child.is_hidden for child in launchers} == {True}, (
        "another process of the user could read its memory"
    )


def test_no_program_of_a_folder_that_the_user_can_write_ran_unmarked(house: House, watch: Watch) -> None:
    assert watch.seen
    assert [path.name for path in house.traces.iterdir()] == []


def test_a_planted_program_that_runs_unmarked_leaves_a_trace(house: House) -> None:
    """The control: the person's own shell would run it."""
    with house.account.spawn(str(house.planted / "env"), "true") as process:
        process.communicate(timeout=60)
    assert (house.traces / "env").exists()


def test_after_the_launcher_was_killed_a_search_is_marked_again(house: House) -> None:
    account = house.account
    (launcher,) = [pid for pid in children(account.pid) if pid != account.keeper]
    os.kill(launcher, signal.SIGKILL)
    until(lambda: not is_alive(launcher), "the launcher has ended")
    with Watch(account.pid, account.keeper) as watch:
        house.search_until_seen(watch)
    searches = [child for child in watch.seen if child.name == "rg"]
    assert {child.is_marked for child in searches} == {True}
