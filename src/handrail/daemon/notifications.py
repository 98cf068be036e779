"""Desktop notifications for open approvals and for connected clients, shown when no page is open.

Decides when to notify, how often, and with which text; text from agents is escaped and cut. It answers no
approval.
"""

import logging
import sys
from collections.abc import Callable, Mapping, Sequence

import anyio.to_thread

from handrail.config import NotifySection
from handrail.daemon.approval_watch import ApprovalWatch
from handrail.gate.call import Call
from handrail.gate.gate import Gate
from handrail.gate.rules.policy_snapshot import PolicyChange
from handrail.hidden_text import hidden_name
from handrail.launcher.child import LaunchError, start_program
from handrail.launcher.trusted_programs import find_program
from handrail.server.client_sessions import ClientNotice

log = logging.getLogger(__name__)

GRACE_SECONDS = 1.0
"""Seconds to wait, in which a page may show the approval or a person may answer it."""
BURST_SECONDS = 2.0
"""Least seconds between two notifications; a burst of approvals gives one notification."""
SHOW_SECONDS = 5.0
"""Bounds the notification program, which may hang without a desktop."""
MOST_NAMED = 3
"""Approvals listed by title; the others are counted."""
MOST_NOTICES = 20
"""Notices of clients kept for the next notification; the oldest are dropped."""
LONGEST = 120
"""Characters shown of an agent's name or a call's title."""
ADVICE = "Answer with `handrail approvals -f`, or on the page: `handrail open`."
WARNING = "Handrail asks about everything: its rules or settings changed"
ACCEPT_ADVICE = "Look at it with `handrail rules accept`, or on the page: `handrail open`."
DESKTOP = (
    *("DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR"),
    *("HOME", "LANG"),
)
"""Environment variables passed to the notification program."""
_SCRIPT = ("on run argv", "display notification (item 2 of argv) with title (item 1 of argv)", "end run")


class Notifier:
    """Sends desktop notifications for approvals that no page shows."""

    def __init__(
        self,
        gate: Gate,
        pages: Callable[[], int],
        environment: Mapping[str, str],
        *,
        grace: float = GRACE_SECONDS,
        burst: float = BURST_SECONDS,
        bound: float = SHOW_SECONDS,
        quiet: Callable[[], bool] = lambda: False,
        system: str = sys.platform,
        find: Callable[[str, str], str | None] = find_program,
    ) -> None:
        """`pages` returns the number of connected followers who could answer, `find` a program on a PATH; while
        `quiet`, nothing is shown but a changed policy."""
        self._watch = ApprovalWatch(gate, grace=grace, burst=burst)
        self._pages = pages
        self._environment = {name: environment[name] for name in DESKTOP if name in environment}
        self._bound = bound
        self._quiet = quiet
        self._system = system
        self._find = find
        self._search_path = environment.get("PATH", "")
        self._notices: list[ClientNotice] = []
        self._missing = False

    def hear(self, settings: NotifySection, notice: ClientNotice) -> None:
        """Notify of a client that stopped or wants attention, unless the settings switch that off."""
        is_wanted = settings.client_stops if notice.sort == "stopped" else settings.client_asks
        if not (settings.desktop and is_wanted):
            return
        self._notices = [*self._notices, notice][-MOST_NOTICES:]
        self._watch.wake()

    async def run(self, changes: Sequence[PolicyChange] = ()) -> None:
        """Notify of changes that no person has accepted, then of approvals opened from now on, until cancelled."""
        if changes:
            await self._show(*build_warning(changes))
        await self._watch.run(self._notify)

    async def _notify(self) -> bool:
        """Notify of the approvals that are still open; False if no notification was needed."""
        waiting = self._watch.take_waiting()
        notices, self._notices = self._notices, []
        if self._pages() or self._quiet() or not (waiting or notices):
            return False
        if waiting:
            await self._show(*build_notification(waiting))
        if notices:
            await self._show(*build_client_notification(notices))
        return True

    async def _show(self, title: str, body: str) -> None:
        argv = _build_argv(self._system, title, body)
        program = self._find(argv[0], self._search_path)
        if program is None:
            if not self._missing:
                log.info("%s is not installed, so no desktop notification is shown", argv[0])
            self._missing = True
            return
        try:
            await anyio.to_thread.run_sync(self._run_program, (program, *argv[1:]))
        except LaunchError as problem:
            log.warning("no desktop notification could be shown: %s", problem)

    def _run_program(self, argv: Sequence[str]) -> None:
        child = start_program(argv, environment=self._environment, keep_output=False)
        child.wait(self._bound)
        child.close()


def build_notification(waiting: Sequence[Call]) -> tuple[str, str]:
    """The notification's title, and its body with the agents' titles."""
    title = "A call needs you" if len(waiting) == 1 else f"{len(waiting)} calls need you"
    named = [_describe_call(call) for call in waiting[:MOST_NAMED]]
    more = len(waiting) - len(named)
    return title, "\n".join([*named, *([f"and {more} more"] if more else []), ADVICE])


def build_client_notification(notices: Sequence[ClientNotice]) -> tuple[str, str]:
    """The notification about clients: the newest in its title, and the message of each."""
    newest = notices[-1]
    verb = "has finished" if newest.sort == "stopped" else "wants your attention"
    title = f"{escape_hidden(newest.title)} {verb}"
    return title, "\n".join(_describe_notice(notice) for notice in notices[-MOST_NAMED:])


def _describe_notice(notice: ClientNotice) -> str:
    folder = notice.folder.rstrip("/").rpartition("/")[2]
    place = f"{notice.title} in {folder}" if folder else notice.title
    return escape_hidden(f"{place}: {notice.message}" if notice.message else place)


def build_warning(changes: Sequence[PolicyChange]) -> tuple[str, str]:
    """The notification about a policy that changed without Handrail."""
    named = [escape_hidden(str(change)) for change in changes[:MOST_NAMED]]
    more = len(changes) - len(named)
    return WARNING, "\n".join([*named, *([f"and {more} more"] if more else []), ACCEPT_ADVICE])


def escape_hidden(text: str) -> str:
    """Cut to LONGEST, with invisible and control characters spelled out."""
    shown = "".join(_spell_out(each) if _is_hidden(each) else each for each in text[: LONGEST + 1])
    return shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}…"


def _describe_call(call: Call) -> str:
    risk = call.approval.asked.risk if call.approval is not None else "high"
    return f"{escape_hidden(call.caller.client)}: {escape_hidden(call.title)} ({risk} risk)"


def _is_hidden(character: str) -> bool:
    return not character.isprintable() or hidden_name(character) != ""


def _spell_out(character: str) -> str:
    return f"\\u{{{ord(character):x}}}"


def _build_argv(system: str, title: str, body: str) -> tuple[str, ...]:
    if system == "darwin":
        return ("osascript", *(part for line in _SCRIPT for part in ("-e", line)), title, body)
    return ("notify-send", "--app-name=Handrail", "--", title, _escape_markup(body))


def _escape_markup(body: str) -> str:
    """Escape for notify-send, which interprets markup and backslash escapes."""
    text = body.replace("\\", "\\\\")
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
