"""A real shell with shell integration, in a PTY under a real keeper, with an empty home."""

import os
import shutil
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from tests.support.keeper_terminals import BOUND, running_keeper, shell_home

import handrail.terminal
from handrail.terminal.open_shell import integrate
from handrail.terminal.output.tail import Tail
from handrail.terminal.shell_marks import Command, Marks, MarksReader, output_of
from handrail.terminal.terminal import Terminal

SCRIPTS = Path(handrail.terminal.__file__).parent / "shell_scripts"
NONCE = "5eed5eed0123abcd"


@dataclass
class Shell:
    terminal: Terminal
    home: Path
    reader: MarksReader = field(default_factory=lambda: MarksReader(NONCE))

    @property
    def marks(self) -> Marks:
        return self.reader.marks

    @property
    def tail(self) -> Tail:
        return self.terminal.tail

    @property
    def shown(self) -> bytes:
        return self.tail.read(0, 1 << 20)[0]

    async def type(self, text: str | bytes) -> None:
        await self.terminal.write(text.encode() if isinstance(text, str) else text)

    async def run(self, line: str) -> Command:
        """Type a line, and wait for the prompt after it."""
        await self.prompt()
        before = len(self.marks.commands)
        await self.type(line + "\r")
        with anyio.fail_after(BOUND):
            while len(self.marks.commands) == before or not self.marks.at_prompt:
                await self.more()
        return self.marks.commands[-1]

    async def told(self, line: str) -> str:
        """Run a line and return its output as text."""
        return self.output(await self.run(line)).decode().replace("\r\n", "\n").strip()

    async def prompt(self, after: int = -1) -> None:
        """Wait for a prompt that begins after this offset."""
        with anyio.fail_after(BOUND):
            while not self.marks.at_prompt or self.marks.prompt_at <= after:
                await self.more()

    async def until(self, text: bytes, after: int = 0) -> None:
        with anyio.fail_after(BOUND):
            while text not in self.shown[after:]:
                await self.more()

    async def rest(self, seconds: float = 0.3) -> None:
        """Wait until it has drawn all it wants: fish loses a Ctrl-C that comes while it draws."""
        with anyio.fail_after(BOUND):
            end = -1
            while end != self.tail.end:
                end = self.tail.end
                await anyio.sleep(seconds)

    def output(self, command: Command) -> bytes:
        return output_of(command, self.tail)

    async def more(self) -> None:
        """Read what has come, or let some come."""
        end = self.tail.end
        self.reader.catch_up(self.tail)
        if end == self.tail.end and self.marks.read_to == end:
            await anyio.sleep(0.002)


@asynccontextmanager
async def integrated_shell(
    home: Path,
    *argv: str,
    files: Mapping[str, str] | None = None,
    env: Mapping[str, str] | None = None,
    size: tuple[int, int] = (200, 24),
) -> AsyncGenerator[Shell]:
    """The shell `argv`, whose home holds `files` and nothing else."""
    program = shutil.which(argv[0])
    assert program, f"{argv[0]} is missing: scripts/tools installs it"
    place = shell_home(home / "h")
    for name, text in {".hushlogin": "", **(files or {})}.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    whole = {
        "PATH": os.environ["PATH"],
        "HOME": str(place),
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        **(env or {}),
    }
    started = integrate((program, *argv[1:]), whole, NONCE, SCRIPTS)
    assert started, f"{argv} would not be marked"
    async with running_keeper(home / "k") as keeper:
        terminal = await keeper.terminals.open(started[0], str(place), started[1], size)
        yield Shell(terminal, place)
