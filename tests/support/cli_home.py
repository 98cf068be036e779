"""A home with a real daemon for tests of the CLI: its commands, terminals, agents and screens.

Every wait is under `BOUND`.

An agent is an MCP client behind a real `handrail mcp`. Another process launches it, because a process that launches a
door no longer counts as a person, and the tests must be one.
"""

from __future__ import annotations

import json
import os
import queue
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from tests.support.fork_server import Order, fork_daemon, fork_handrail, run_handrail

from handrail.cli.client import Link, Live, reach
from handrail.door.connect import dial
from handrail.paths import Places

BOUND = 30.0
SRC = Path(__file__).parents[2] / "src"
T = TypeVar("T")
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Home:
    """One Handrail with a separate home directory."""

    def __init__(self, path: Path, workspace: Path) -> None:
        self.path = path
        self.workspace = workspace
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        self.env = {**kept, "HANDRAIL_HOME": str(path), "PYTHONPATH": str(SRC), "COLUMNS": "200"}

    def argv(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "handrail", *arguments]

    def start(self, *arguments: str, **settings: Any) -> subprocess.Popen[str]:
        """A command that goes on."""
        return subprocess.Popen(
            self.argv(*arguments), env=self.env, cwd=self.workspace, text=True, **settings
        )

    def run(self, *arguments: str, cwd: Path | None = None) -> CommandResult:
        done = run_handrail(self.order(*arguments, cwd=cwd), BOUND)
        assert "Traceback" not in done.stderr, done.stderr
        return CommandResult(done.returncode, done.stdout, done.stderr)

    def order(self, *arguments: str, cwd: Path | None = None, has_session: bool = False) -> Order:
        return Order(arguments, self.env, str(cwd or self.workspace), has_session=has_session)

    def run_all(self, *commands: tuple[str, ...]) -> list[CommandResult]:
        """Several commands at the same time, each of which may wait for something that hangs."""
        with ThreadPoolExecutor(len(commands)) as pool:
            running = [pool.submit(self.run, *command) for command in commands]
            return [each.result() for each in running]

    def ok(self, *arguments: str) -> CommandResult:
        done = self.run(*arguments)
        assert done.code == 0, done
        return done

    def up(self) -> None:
        """Returns with a daemon running. A daemon that is the first of its home is a fork."""
        if self._answers():
            return
        if (self.path / "handrail.db").exists():
            self.ok("up", "--no-open")
            return
        fork_daemon(self.env, self.path / "foreground.out")
        self.comes_up()

    def comes_up(self) -> None:
        """Wait until a daemon runs."""

        wait_for(lambda: self._answers() or None, "a daemon")

    def calls(self) -> list[Json]:
        """The calls in this workspace, newest first."""
        return self.own(self.ok("calls", "--json").json)

    def own(self, rows: list[Json]) -> list[Json]:
        return [row for row in rows if row["caller"]["workspace"] == str(self.workspace)]

    def asked(self, count: int = 1, *, anywhere: bool = False) -> list[Json]:
        """The open approvals of this workspace, once there are so many."""

        def look(link: Link) -> list[Json] | None:
            every: list[Any] = link.get("approvals", open=True)
            found = every if anywhere else self.own(every)
            return found if len(found) >= count else None

        return _followed(look, f"{count} approvals")

    def asks_nothing(self) -> None:
        """Returns once no approval of this workspace is open."""

        def look(link: Link) -> bool | None:
            rows: list[Any] = link.get("approvals", open=True)
            return self.own(rows) == [] or None

        _followed(look, "an empty inbox")

    def becomes(self, call: str, status: str) -> Json:
        """The call, once its status is this."""

        def look(link: Link) -> Json | None:
            found: Any = link.get("calls", call)
            return found if found["status"] == status else None

        return _followed(look, f"{call} to be {status}")

    def printed(self, call: str) -> None:
        """Returns once the call's command has printed something."""
        with reach("read") as link:
            wait_for(lambda: _printed(link, call) or None, f"{call} to print")

    def output(self, call: str) -> str:
        """The output that Complete would return to the agent now."""
        with reach("read") as link:
            terminal = link.get("calls", call)["terminal_id"] or ""
        return b"".join(
            file.read_bytes() for file in sorted((self.path / "spool" / terminal).glob("*.seg"))
        ).decode()

    def ended(self, pidfd: int) -> bool:
        """Whether a process ends in time; closes its descriptor."""
        try:
            return bool(select.select([pidfd], [], [], BOUND)[0])
        finally:
            os.close(pidfd)

    def printed_to(self, name: str) -> str:
        """The content of a workspace file, once a command wrote it."""
        file = self.workspace / name
        return wait_for(lambda: (file.read_text() if file.exists() else "") or None, f"{name} to be written")

    def _answers(self) -> bool:
        sock = dial(Places.under(self.path))
        if sock is not None:
            sock.close()
        return sock is not None

    def end(self) -> None:
        """End the daemon and the keeper that still run here."""
        known = self.run("status", "--json")
        if known.code == 0:
            for pid in (known.json["pid"], known.json["keeper_pid"]):
                if pid:
                    _end(pid)


def wait_for(look: Callable[[], T | None], what: str) -> T:
    """Poll until `look` returns something, for changes without an event."""
    until = time.monotonic() + BOUND
    while time.monotonic() < until:
        found = look()
        if found is not None:
            return found
        time.sleep(0.02)
    raise AssertionError(f"waited {BOUND:.0f} s for {what}")


def _followed(look: Callable[[Link], T | None], what: str) -> T:
    """The same, polling after each event of the journal."""
    until = time.monotonic() + BOUND
    with Live("read") as live:
        while time.monotonic() < until:
            found = look(live.link)
            if found is not None:
                return found
            live.wait(until - time.monotonic())
    raise AssertionError(f"waited {BOUND:.0f} s for {what}")


def _printed(link: Link, call: str) -> bool:
    return any(row["call_id"] == call and row["bytes"] for row in link.get("terminals"))


def _end(pid: int) -> None:
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return
    try:
        signal.pidfd_send_signal(descriptor, signal.SIGTERM)
        if not select.select([descriptor], [], [], BOUND)[0]:
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    except ProcessLookupError:
        pass
    finally:
        os.close(descriptor)


def open_terminal(home: Home, script: str, name: str = "", **more: object) -> str:
    """Open a terminal of the person that runs this script."""
    body: Any = {
        "of": "shell",
        "keep": True,
        "name": name,
        "command": ["sh", "-c", script],
        "cwd": str(home.workspace),
        "env": {"PATH": os.environ["PATH"], "TERM": "xterm"},
        **more,
    }
    with reach("person") as link:
        return str(link.post("terminals", body=body)["id"])


def wait_for_output(home: Home, terminal: str, words: str) -> str:
    """All output of the terminal, once these words are in it."""

    def look() -> str | None:
        out = home.ok("terminal", "read", terminal).out
        return out if words in out else None

    return wait_for(look, words)


def terminal_row(home: Home, terminal: str) -> Json:
    return next(each for each in home.ok("terminals", "--all", "--json").json if each["id"] == terminal)


def wait_for_end(home: Home, terminal: str) -> Json:
    def look() -> Json | None:
        found = terminal_row(home, terminal)
        return None if found["running"] else found

    return wait_for(look, f"{terminal} to end")


LAUNCHER = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))"


class Agent:
    """An MCP client behind a door, as launched by a program that is not this one."""

    def __init__(self, home: Home) -> None:
        argv = [sys.executable, "-c", LAUNCHER, *home.argv("mcp", "--workspace", str(home.workspace))]
        self._process = subprocess.Popen(
            argv,
            env=home.env,
            cwd=home.workspace,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self._answers: queue.Queue[Json] = queue.Queue()
        self._early: dict[int, Json] = {}
        self._number = 0
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        about = {"name": "test agent", "version": "1"}
        self.answer(
            self._ask(
                "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about}
            )
        )
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave without a word, as a client does that crashed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(BOUND)
        self._process.stdin.close()
        self._listener.join(BOUND)
        self._process.stdout.close()

    def call(self, tool: str, **arguments: object) -> int:
        """Use a tool, without waiting for what comes of it."""
        return self._ask("tools/call", {"name": tool, "arguments": arguments})

    def answer(self, number: int) -> Json:
        """What came of a request."""
        until = time.monotonic() + BOUND
        while number not in self._early:
            message = self._answers.get(timeout=max(0.0, until - time.monotonic()))
            self._early[message.get("id", 0)] = message
        return self._early.pop(number)["result"]

    def _ask(self, method: str, params: Json) -> int:
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        return self._number

    def _send(self, message: Json) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(json.loads(line))


GUARDED = 0.8
"""Seconds after which a person presses a key again that did nothing: a little more than the guard lasts."""
AGAIN = 2.0
"""The same, where the guard was not the reason."""


class Screen:
    """A command on a pseudo-terminal."""

    def __init__(self, home: Home, *arguments: str) -> None:
        self.text = ""
        self._fd, terminal = os.openpty()
        self._process = fork_handrail(
            replace(home.order(*arguments, has_session=True), environment={**home.env, "TERM": "xterm"}),
            (terminal, terminal, terminal),
        )
        os.close(terminal)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait(BOUND)
        os.close(self._fd)

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def shows(self, words: str, within: float = BOUND) -> str:
        """All text up to and with these words, once they appear; it is then behind us."""
        until = time.monotonic() + within
        while words not in self.text:
            if not self._read(until):
                raise AssertionError(f"{words!r} did not appear; the terminal shows:\n{self.text}")
        seen, _, self.text = self.text.partition(words)
        return seen + words

    def press(self, key: str, words: str) -> str:
        """Type a key until these words appear. The guard discards keys that come too early."""
        until, pause = time.monotonic() + BOUND, GUARDED
        while time.monotonic() < until:
            self.type(key)
            if not self.stays_without(words, pause):
                return self.shows(words)
            pause = AGAIN
        raise AssertionError(f"{key!r} was not taken; the terminal shows:\n{self.text}")

    def stays_without(self, words: str, seconds: float) -> bool:
        """Whether these words do not appear for so long."""
        until = time.monotonic() + seconds
        while words not in self.text:
            if not self._read(until):
                return True
        return False

    def ends(self) -> int:
        """The exit status, once the command has ended."""
        return self._process.wait(BOUND)

    def _read(self, until: float) -> bool:
        if not select.select([self._fd], [], [], max(0.0, until - time.monotonic()))[0]:
            return False
        styled = os.read(self._fd, 65536).decode(errors="replace")
        self.text += re.sub(r"\x1b\[[0-9;]*m", "", styled).replace("\r\n", "\n")
        return True
