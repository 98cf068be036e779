"""The demo that a person starts on the page: `handrail demo` in a terminal, in a folder that is trusted while it runs.

The demo is an ordinary client. Trust, and what becomes of the calls that it leaves open, are decided here.
"""

import contextlib
import logging
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

import anyio
from anyio import to_thread

from handrail.config import OWN_COMMAND
from handrail.errors import Conflict, Unwritable
from handrail.gate.call import Outcome
from handrail.gate.gate import Gate
from handrail.store.actor import CLIENT, Actor
from handrail.store.values import Owner
from handrail.terminal.open_shell import TerminalSettings, open_shell
from handrail.terminal.terminal import Terminal
from handrail.terminal.terminals import Terminals

log = logging.getLogger(__name__)

NAME = "Handrail demo"
MINUTES = "10"
ENDED = "The demo ended."


class DemoTerminal:
    """At most one demo at a time."""

    def __init__(
        self, gate: Gate, terminals: Terminals, settings: TerminalSettings, environment: Mapping[str, str]
    ) -> None:
        """`environment` has the variables by which a program finds this daemon."""
        self._gate, self._terminals, self._settings = gate, terminals, settings
        self._environment = environment
        self._terminal: Terminal | None = None
        self._folder = ""
        self._by: Actor | None = None
        self._started = anyio.Event()
        self._one_start = anyio.Lock()

    async def start(self, by: Actor) -> Terminal:
        """Start the demo, or return the one that runs. Raises KeeperError or OpenRefused."""
        async with self._one_start:
            if self._terminal is None:
                self._by, self._folder = by, await to_thread.run_sync(_make_folder)
                with contextlib.suppress(Conflict, Unwritable):  # it runs untrusted, and asks more often
                    await self._gate.rules.trust(self._folder, None, by)
                self._terminal = await self._open(by)
                self._started.set()
            return self._terminal

    async def run(self) -> None:
        """Clean up after each demo, until cancelled."""
        while True:
            await self._started.wait()
            self._started = anyio.Event()
            terminal, by = self._terminal, self._by
            if terminal is None or by is None:
                continue
            while terminal.exit is None:
                await terminal.changed()
            await self._clean_up(by)
            self._terminal = None

    async def _open(self, by: Actor) -> Terminal:
        settings = self._settings
        program, *options = OWN_COMMAND[:-1]
        return await open_shell(
            self._terminals,
            shell=program,
            args=(*options, "demo", "--no-open", "--minutes", MINUTES, "--folder", self._folder),
            cwd="/",
            env={**settings.environment, **self._environment, "TERM": "xterm-256color"},
            of="tracked",
            name=NAME,
            owner=Owner(person=True, name=str(by)),
            max_bytes=settings.max_bytes,
            max_lines=settings.max_lines,
            grace=settings.grace,
        )

    async def _clean_up(self, by: Actor) -> None:
        """Cancel what the demo left open, and forget its folder."""
        for call in list(self._gate.open.values()):
            if call.caller.workspace == self._folder:
                self._gate.end(call, Outcome(ending="cancelled", by=CLIENT, message=ENDED))
        try:
            await self._gate.rules.distrust(self._folder, by)
        except Unwritable as problem:
            log.warning("the folder of the demo is still trusted: %s", problem)
        await to_thread.run_sync(shutil.rmtree, Path(self._folder).parent, True)


def _make_folder() -> str:
    folder = Path(tempfile.mkdtemp(prefix="handrail-demo-")).resolve() / "orchard"
    folder.mkdir()
    return str(folder)
