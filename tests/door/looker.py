"""A process that looks for the daemon, as a door or the CLI would, and what its stand-in told of itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.door.peer import BOUND, SRC

STANDIN = [sys.executable, str(Path(__file__).with_name("standin.py"))]

LOOK = """
import os
import sys
from pathlib import Path
from handrail.paths import Places
from handrail.door.connect import connect, DaemonNotRunning
from handrail.door.connect import say_hello
home, executable, within, *argv = sys.argv[1:]
sys.executable = executable
try:
    with connect(Places.under(Path(home)), argv=argv or None, within=float(within), keep=os.environ["KEEP"].split()) as sock:
        print(say_hello(sock, "read")["pid"])
except DaemonNotRunning as error:
    sys.exit(str(error))
"""


class Looker:
    """One such process, started at once; whatever it starts inherits from it, or should not."""

    def __init__(
        self,
        home: Path,
        *argv: str,
        executable: str = sys.executable,
        within: float = 15.0,
        inherits: tuple[int, ...] = (),
        keep: str = "",
    ) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", LOOK, str(home), executable, str(within), *argv],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            pass_fds=inherits,
            env={
                **os.environ,
                "PYTHONPATH": str(SRC),
                "HANDRAIL_HOME": str(home),
                "KEEP": keep,
                "A_SECRET": "s",
                "LC_X": "c",
            },
        )

    def found(self) -> int:
        """The pid of the daemon it got."""
        out, err = self.process.communicate(timeout=BOUND)
        assert self.process.returncode == 0, err
        return int(out)

    def failed(self) -> str:
        """The sentence with which it gave up."""
        out, err = self.process.communicate(timeout=BOUND)
        assert self.process.returncode == 1, out
        return err


def started(home: Path) -> list[dict[str, Any]]:
    """What each stand-in that got the lock of this home told of itself."""
    try:
        return [json.loads(line) for line in (home / "started").read_text().splitlines()]
    except FileNotFoundError:
        return []
