"""A tmux of one's own, to compare a screen with: what it shows for a program, or for bytes that one has printed."""

import os
import secrets
import shlex
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

ENV = {
    "PATH": os.environ["PATH"],
    "HOME": "/",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "TERM": "xterm-256color",
}
SECONDS = "60"
"""After which whatever runs in it ends by itself."""


class Tmux:
    def __init__(self, folder: Path, cols: int, rows: int) -> None:
        self._name = f"handrail-{os.getpid()}-{secrets.token_hex(4)}"
        self._folder = folder
        self._size = ("-x", str(cols), "-y", str(rows))
        (folder / "tmux.conf").write_text("set -g status off\nset -g remain-on-exit on\n")

    def run(self, *argv: str) -> None:
        """Show a program, started with the same environment as ours."""
        inside = shlex.join(["timeout", SECONDS, "env", *(f"{k}={v}" for k, v in ENV.items()), *argv])
        self._ask("-f", str(self._folder / "tmux.conf"), "new-session", "-d", *self._size, inside)

    def replay(self, printed: bytes) -> None:
        """Show bytes as they are."""
        (self._folder / "printed").write_bytes(printed)
        shown = shlex.quote(str(self._folder / "printed"))
        self.run("sh", "-c", f"stty raw -echo; cat {shown}; exec sleep {SECONDS}")

    def type(self, text: str) -> None:
        self._ask("send-keys", "-l", text)

    def shown(self) -> tuple[str, ...]:
        """Each row, trailing blanks trimmed."""
        said = self._ask("capture-pane", "-p").removesuffix("\n")
        return tuple(line.rstrip() for line in said.split("\n"))

    def end(self) -> None:
        subprocess.run(
            ["tmux", "-L", self._name, "kill-server"], check=False, capture_output=True, timeout=20
        )

    def _ask(self, *words: str) -> str:
        command = ["tmux", "-L", self._name, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=20, env=ENV).stdout


@contextmanager
def tmux(folder: Path, cols: int, rows: int) -> Generator[Tmux]:
    other = Tmux(folder, cols, rows)
    try:
        yield other
    finally:
        other.end()
