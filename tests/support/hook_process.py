"""`handrail hook` as a real process, with payloads in the format of Claude Code."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from tests.support.daemon_home import BOUND, Home

Json = dict[str, Any]


def payload(
    cwd: Path,
    tool: str,
    input: Mapping[str, Any],
    event: str = "PreToolUse",
    call: str = "toolu_1",
    **more: Any,
) -> Json:
    """What Claude Code sends to a hook about a tool call; an empty `call` leaves out the id."""
    about = {"session_id": "s1", "cwd": str(cwd), "hook_event_name": event, "permission_mode": "default"}
    ids = {"tool_use_id": call} if call else {}
    return {**about, "tool_name": tool, "tool_input": input, **ids, **more}


class HookProcess:
    """A hook program that runs."""

    def __init__(
        self, home: Home, sent: Json | bytes, *arguments: str, environment: Mapping[str, str] = {}
    ) -> None:
        words = arguments or ("claude",)
        self._input = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
        self.process = subprocess.Popen(
            command_line(words),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**home.environment, **environment},
        )

    async def answer(self) -> tuple[int, str, str]:
        """The exit status, stdout and stderr, once it has ended."""
        try:
            with anyio.fail_after(BOUND):
                out, err = await anyio.to_thread.run_sync(
                    self.process.communicate, self._input or None, abandon_on_cancel=True
                )
        except BaseException:
            self.process.kill()
            raise
        return self.process.returncode, out.decode(), err.decode()

    def send(self) -> "HookProcess":
        """Send the payload without waiting for the answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(self._input)
        self.process.stdin.close()
        self.process.stdin, self._input = None, b""
        return self

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(BOUND)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None and not pipe.closed:
                pipe.close()


def command_line(words: Sequence[str]) -> list[str]:
    return [sys.executable, "-P", "-m", "handrail", "hook", *words]


async def run_hook(home: Home, sent: Json | bytes, *arguments: str, **how: Any) -> tuple[int, str, str]:
    """The exit status, stdout and stderr of one hook."""
    return await HookProcess(home, sent, *arguments, **how).answer()


def decision(out: str) -> Json:
    """The decision in an answer to PreToolUse."""
    specific: Json = json.loads(out)["hookSpecificOutput"]
    return {name: value for name, value in specific.items() if name != "hookEventName"}
