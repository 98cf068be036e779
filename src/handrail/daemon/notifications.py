"""Word on the desktop that a question waits, for when no page is open to show it.

Owns when the person is told, how often, and in which words: those of agents are shown exactly, and short. It does not
know pages (it is told how many there are), and answers nothing.
"""

import logging
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import anyio

import handrail
from handrail.gate.call import Call
from handrail.gate.gate import Gate
from handrail.hidden_text import hidden_name
from handrail.store.events import ApprovalOpened, Entry

log = logging.getLogger(__name__)

GRACE_SECONDS = 1.0
"""In which a page may show the question, or a quick hand answer it."""
BURST_SECONDS = 2.0
"""Between two words: an agent that asks ten things at once is told of once."""
SHOW_SECONDS = 5.0
"""For the program that shows it; one without a desktop may hang."""
MOST_NAMED = 3
"""Questions that are named; the others are counted."""
LONGEST = 120
"""Characters of a question."""
ADVICE = "Answer with `handrail approvals -f`, or on the page: `handrail open`."
DESKTOP = (
    *("DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR"),
    *("HOME", "LANG", "PATH"),
)
"""Of the daemon's own environment, what reaches the desktop; nothing else is passed on."""

# What it starts is marked like everything Handrail starts, so that it cannot pass for a person.
_LAUNCH = (
    "import os, sys; sys.path.insert(0, sys.argv[1]); from handrail.keeper.lineage import mark; "
    "mark(); os.execv(sys.argv[2], sys.argv[2:])"
)
_SCRIPT = ("on run argv", "display notification (item 2 of argv) with title (item 1 of argv)", "end run")


class Notifier:
    """Tells of questions that nobody can see."""

    def __init__(
        self,
        gate: Gate,
        pages: Callable[[], int],
        environment: Mapping[str, str],
        *,
        grace: float = GRACE_SECONDS,
        burst: float = BURST_SECONDS,
        bound: float = SHOW_SECONDS,
        system: str = sys.platform,
    ) -> None:
        """`pages` says how many people follow what happens right now, and could answer."""
        self._gate = gate
        self._pages = pages
        self._environment = {name: environment[name] for name in DESKTOP if name in environment}
        self._grace = grace
        self._burst = burst
        self._bound = bound
        self._system = system
        self._asked: list[ApprovalOpened] = []
        self._bell = anyio.Event()
        self._missing = False

    async def run(self) -> None:
        """Until cancelled. Of what was asked before, the page or another daemon told."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._gate.journal.follow, self._gate.journal.head, self._hear)
            while True:
                await self._bell.wait()
                self._bell = anyio.Event()
                await anyio.sleep(self._grace)
                if await self._tell():
                    await anyio.sleep(self._burst)

    async def _hear(self, entries: Sequence[Entry]) -> None:
        asked = [entry.event for entry in entries if isinstance(entry.event, ApprovalOpened)]
        if asked:
            self._asked += asked
            self._bell.set()

    async def _tell(self) -> bool:
        """Tell of all that is still open; False when there was no need to."""
        asked, self._asked = self._asked, []
        waiting = [call for each in asked if (call := self._open(each)) is not None]
        if not waiting or self._pages():
            return False
        await self._show(*build_notification(waiting))
        return True

    def _open(self, asked: ApprovalOpened) -> Call | None:
        call = self._gate.open.get(asked.call)
        is_open = call is not None and call.approval is not None and call.approval.open
        return call if is_open else None

    async def _show(self, title: str, body: str) -> None:
        argv = _argv(self._system, title, body)
        program = shutil.which(argv[0], path=self._environment.get("PATH", ""))
        if program is None:
            if not self._missing:
                log.info("%s is not installed, so nothing is told on the desktop", argv[0])
            self._missing = True
            return
        root = str(Path(handrail.__file__).parent.parent)
        launched = [sys.executable, "-I", "-S", "-c", _LAUNCH, root, program, *argv[1:]]
        try:
            with anyio.move_on_after(self._bound):
                await anyio.run_process(
                    launched,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    check=False,
                    cwd="/",
                    env=self._environment,
                )
        except OSError as problem:
            log.warning("nothing could be told on the desktop: %s", problem)


def build_notification(waiting: Sequence[Call]) -> tuple[str, str]:
    """A title in our own words, and a body with the agents'."""
    title = "A call needs you" if len(waiting) == 1 else f"{len(waiting)} calls need you"
    named = [_line(call) for call in waiting[:MOST_NAMED]]
    more = len(waiting) - len(named)
    return title, "\n".join([*named, *([f"and {more} more"] if more else []), ADVICE])


def escape_hidden(text: str) -> str:
    """On one line, short, and with whatever could hide or disguise itself spelled out."""
    shown = "".join(_spelled(each) if _is_hidden(each) else each for each in text[: LONGEST + 1])
    return shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}…"


def _line(call: Call) -> str:
    risk = call.approval.asked.risk if call.approval is not None else "high"
    return f"{escape_hidden(call.caller.client)}: {escape_hidden(call.title)} ({risk} risk)"


def _is_hidden(character: str) -> bool:
    return not character.isprintable() or hidden_name(character) != ""


def _spelled(character: str) -> str:
    return f"\\u{{{ord(character):x}}}"


def _argv(system: str, title: str, body: str) -> tuple[str, ...]:
    if system == "darwin":
        return ("osascript", *(part for line in _SCRIPT for part in ("-e", line)), title, body)
    return ("notify-send", "--app-name=Handrail", "--", title, _plain(body))


def _plain(body: str) -> str:
    """For notify-send, which takes markup and undoes backslashes, by which markup could be spelled too."""
    text = body.replace("\\", "\\\\")
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
