"""A home with a real daemon in it, and the command line, for the tests of the commands.

Every wait is under `BOUND`.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from handrail.cli.client import Link, Live, reach
from handrail.door.connect import dial
from handrail.paths import Places

BOUND = 30.0
SRC = Path(__file__).parents[2] / "src"
T = TypeVar("T")
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Home:
    """One Handrail, with everything it writes in a directory of its own."""

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

    def run(self, *arguments: str, cwd: Path | None = None) -> Done:
        done = subprocess.run(
            self.argv(*arguments),
            env=self.env,
            cwd=cwd or self.workspace,
            capture_output=True,
            text=True,
            timeout=BOUND,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Done(done.returncode, done.stdout, done.stderr)

    def ok(self, *arguments: str) -> Done:
        done = self.run(*arguments)
        assert done.code == 0, done
        return done

    def up(self) -> None:
        """Returns with a daemon running."""
        if not self._answers():
            self.ok("up", "--no-open")

    def comes_up(self) -> None:
        """Returns once somebody has started the daemon."""

        within(lambda: self._answers() or None, "a daemon")

    def calls(self) -> list[Json]:
        """The calls in this workspace, newest first."""
        return self.own(self.ok("calls", "--json").json)

    def own(self, rows: list[Json]) -> list[Json]:
        return [row for row in rows if row["caller"]["workspace"] == str(self.workspace)]

    def asked(self, count: int = 1, *, anywhere: bool = False) -> list[Json]:
        """The open approvals of this workspace, once there are so many."""

        def look(link: Link) -> list[Json] | None:
            every: list[Json] = link.get("approvals", open=True)
            found = every if anywhere else self.own(every)
            return found if len(found) >= count else None

        return _followed(look, f"{count} approvals")

    def asks_nothing(self) -> None:
        """Returns once no approval of this workspace is open."""
        _followed(lambda link: self.own(link.get("approvals", open=True)) == [] or None, "an empty inbox")

    def becomes(self, call: str, status: str) -> Json:
        """The call, once its status is this."""

        def look(link: Link) -> Json | None:
            found: Json = link.get("calls", call)
            return found if found["status"] == status else None

        return _followed(look, f"{call} to be {status}")

    def printed(self, call: str) -> None:
        """Returns once the call's command has printed something."""
        with reach("read") as link:
            within(lambda: _printed(link, call) or None, f"{call} to print")

    def output(self, call: str) -> str:
        """What Complete would give the agent right now."""
        with reach("read") as link:
            terminal = link.get("calls", call)["terminal_id"]
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
        """What a command wrote to this file of the workspace, once it is there."""
        file = self.workspace / name
        return within(lambda: (file.read_text() if file.exists() else "") or None, f"{name} to be written")

    def _answers(self) -> bool:
        sock = dial(Places.under(self.path))
        if sock is not None:
            sock.close()
        return sock is not None

    def end(self) -> None:
        """Whatever still runs here, by the ids it left."""
        known = self.run("status", "--json")
        if known.code == 0:
            for pid in (known.json["pid"], known.json["keeper_pid"]):
                if pid:
                    _end(pid)


def within(look: Callable[[], T | None], what: str) -> T:
    """What a look finds, as soon as it finds something; for what no fact in the journal tells."""
    until = time.monotonic() + BOUND
    while time.monotonic() < until:
        found = look()
        if found is not None:
            return found
        time.sleep(0.02)
    raise AssertionError(f"waited {BOUND:.0f} s for {what}")


def _followed(look: Callable[[Link], T | None], what: str) -> T:
    """The same, looking again whenever a fact was added to the journal."""
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
