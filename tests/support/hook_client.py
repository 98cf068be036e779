"""A client with hooks of Claude Code, as a process of its own: it runs `handrail hook claude` when it is told to."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from tests.support.daemon_home import BOUND, Home

CLIENT = """
import subprocess, sys
for line in sys.stdin:
    subprocess.run([sys.executable, "-P", "-m", "handrail", "hook", "claude"], input=line.encode(), stdout=2)
    print("done", flush=True)
"""
"""A client that runs its hook for each payload."""


class HookClient:
    """A client with hooks, as a process of its own."""

    def __init__(self, home: Home, session: str, folder: Path) -> None:
        self.session = session
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-c", CLIENT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=home.environment,
            text=True,
        )

    def send(self, name: str, **more: Any) -> None:
        """Begin a hook without waiting for its end."""
        about = {"session_id": self.session, "cwd": str(self.folder), "hook_event_name": name}
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({**about, **more}) + "\n")
        self.process.stdin.flush()

    async def report(self, name: str, **more: Any) -> None:
        """Run a hook to its end."""
        self.send(name, **more)
        await self.hook_ended()

    async def hook_ended(self) -> None:
        """Wait until the hook has ended that was sent before."""
        assert self.process.stdout is not None
        with anyio.fail_after(BOUND):
            await anyio.to_thread.run_sync(self.process.stdout.readline)

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()
