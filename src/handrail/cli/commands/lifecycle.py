"""`handrail up`, `down`, `restart` and `open`.

`up --foreground` runs the daemon in this process. `down` and `restart` wait until the processes have exited.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Annotated

import typer

from handrail import __version__
from handrail.cli.client import Link, reach
from handrail.cli.command_help import add_command
from handrail.cli.commands.accept_policy import accept_first, expect_config, find_policy, show_taken
from handrail.cli.failure import Code, Failure
from handrail.cli.render.formats import format_count
from handrail.cli.render.output import note, say
from handrail.cli.web_browser import has_display, open_in_browser
from handrail.door.connect import dial_path
from handrail.door.own_processes import (
    ANSWER_SECONDS,
    describe_hung_keeper,
    end_process,
    find_daemon,
    find_hung_keeper,
    find_keeper,
)
from handrail.paths import Places, own_python
from handrail.regular_file import read_regular_file

if TYPE_CHECKING:
    from handrail.cli.wire import TerminalView

Port = Annotated[
    int | None, typer.Option(min=1, max=65535, help="Port of the page; if it is taken, a free one.")
]
NoOpen = Annotated[bool, typer.Option("--no-open", help="Do not open the page.")]


def add_to(app: typer.Typer) -> None:
    add_command(app, "up", "handrail up", "handrail up --no-open --port 8000", "handrail up --foreground")(up)
    add_command(app, "down", "handrail down", "handrail down --force")(down)
    add_command(app, "restart", "handrail restart")(restart)
    add_command(app, "open", "handrail open", "handrail open --print")(open_page)


def up(
    foreground: Annotated[
        bool, typer.Option("--foreground", help="Run in this terminal; Ctrl-C stops everything.")
    ] = False,
    port: Port = None,
    no_open: NoOpen = False,
) -> None:
    """Start Handrail if it is not running, and open its page."""
    if foreground:
        raise typer.Exit(_run_daemon(port, announce=not no_open))
    _check_config()
    _check_keeper()
    with reach("read", start=True, argv=_daemon_argv(port), keep=_kept_variables()) as link:
        say(f"Handrail runs at {link.url} (pid {link.pid}).")
        _warn_of_skew(link)
        if port is not None and not link.url.endswith(f":{port}"):
            note(
                f"It does not use port {port}: it was already running, or the port is taken. Try `handrail down` first."
            )
    try:
        with reach("person") as person:
            accept_first(person)
            if sys.stdout.isatty() or (not no_open and has_display()):
                show_page(person, browse=not no_open)
            else:  # the output of an agent's command, or a log
                say("To sign in, run `handrail open` in a terminal of your own.")
    except Failure as refused:
        note(str(refused))


def down(
    force: Annotated[
        bool, typer.Option("--force", help="Also end a daemon or keeper that does not answer, by signal.")
    ] = False,
) -> None:
    """Stop Handrail and everything it started."""
    places = Places.find(os.environ)
    if force and _hangs(places):
        _end_by_force(places)
        return
    _check_keeper()
    with reach("person", start=_is_keeper_running(places), ends=True) as link:
        health = link.get("health")
        pids = [link.pid, *([health["keeper"]["pid"]] if health["keeper"] else [])]
        terminals = _describe_terminals(link.get("terminals", running=True))
        shut_down(link, pids, keep_terminals=False)
    say(f"Handrail is down, and everything it started has ended{terminals}.")


def _hangs(places: Places) -> bool:
    """Whether the keeper or the daemon does not answer, or a keeper runs without a daemon.

    Raises Failure if the daemon answers and takes us for no person.
    """
    try:
        with reach("person", within=ANSWER_SECONDS):
            return find_hung_keeper(places) is not None
    except Failure as failure:
        if failure.code is Code.FAILED:
            raise
        return find_keeper(places) is not None or find_daemon(places) is not None


def _end_by_force(places: Places) -> None:
    """End the daemon, then the keeper: a daemon that loses its keeper would start another.

    The keeper is halted meanwhile: it would restart the daemon.
    """
    found = {"daemon": find_daemon(places), "keeper": find_keeper(places)}
    ended = {name: pid for name, pid in found.items() if pid is not None}
    note((f"Ending {' and '.join(f'the {name} (process {pid})' for name, pid in ended.items())} …", "dim"))
    if (keeper := found["keeper"]) is not None:
        with suppress(OSError):
            os.kill(keeper, signal.SIGSTOP)
    left = [f"the {name} (process {pid})" for name, pid in ended.items() if not end_process(pid)]
    if left:
        raise Failure(
            f"Killed, but still there: {' and '.join(left)}. It waits in the kernel, for a disk or a network file system."
        )
    say("Handrail is down. What the keeper had started has ended with it.")


def _check_keeper() -> None:
    """Raise Failure for a keeper that hangs: no daemon can start, and a restart would leave none."""
    pid = find_hung_keeper(Places.find(os.environ))
    if pid is not None:
        raise Failure(describe_hung_keeper(pid))


def _describe_terminals(running: list[TerminalView]) -> str:
    """Describe the terminals that `down` ends; empty if none run."""
    if not running:
        return ""
    own = sum(row["of"] == "shell" for row in running)
    yours = f", {own} of them your own `handrail shell`" if own else ""
    return f": {len(running)} terminal{'s' * (len(running) > 1)}{yours}"


def restart(port: Port = None) -> None:
    """Restart the daemon. Terminals keep running; waiting approvals and the page's address are kept."""
    port = port or (None if _check_config() else _last_port())
    _check_keeper()
    running: list[str] = []
    try:
        with reach("person") as link:
            expect_config(link)
            running = [call["id"] for call in link.get("state")["calls"] if call["status"] == "running"]
            shut_down(link, [link.pid], keep_terminals=True)
    except Failure as failure:
        if failure.code is not Code.NO_DAEMON:
            raise
        note("It was not running.")
    with reach("read", start=True, argv=_daemon_argv(port), keep=_kept_variables()) as link:
        say(f"Handrail runs at {link.url} (pid {link.pid}): {_describe_restart(link, running)}")
        show_taken(find_policy(link))
    try:
        with reach("person") as person:
            accept_first(person)
    except Failure as refused:
        note(str(refused))


def open_page(
    only_print: Annotated[
        bool, typer.Option("--print", help="Print the link instead of opening it.")
    ] = False,
) -> None:
    """Open the page, signed in. Without a display, print a sign-in link instead."""
    with reach("person") as link:
        show_page(link, browse=not only_print)


def _describe_restart(link: Link, running: list[str]) -> str:
    """Describe what the restart did to running calls, approvals and terminals."""
    started = link.get("state")["started"]
    stopped = sum(link.get("calls", call)["status"] == "interrupted" for call in running)
    return (
        f"{format_count(max(stopped, started['interrupted']), 'call')} interrupted, "
        f"{format_count(started['approvals_kept'], 'approval')} kept, "
        f"{format_count(started['terminals_adopted'], 'terminal')} re-adopted."
    )


def _run_daemon(port: int | None, announce: bool) -> int:
    from handrail.config import BadConfig, load  # noqa: PLC0415 - pydantic, which most commands do without
    from handrail.daemon import daemon  # noqa: PLC0415 - imports everything

    places = Places.find(os.environ)
    try:
        return daemon.run(places, load(places.config), port=port, announce=announce)
    except BadConfig as problem:
        raise Failure(str(problem)) from None


def _check_config() -> bool:
    """Whether the configuration sets a port. Raises Failure for an invalid one: here, not in the log of a dead daemon."""
    from handrail.config import BadConfig  # noqa: PLC0415 - pydantic, which most commands do without
    from handrail.doctor.checks import check_rules  # noqa: PLC0415 - imports the rules engine
    from handrail.flat_settings import settings  # noqa: PLC0415 - pydantic, which most commands do without

    path = Places.find(os.environ).config
    try:
        values = settings(path)
        check_rules(path)
    except BadConfig as problem:
        raise Failure(str(problem)) from None
    return any(each.name == "server.port" and each.origin != "default" for each in values)


def _last_port() -> int | None:
    """The port given to the last `up --port`, from the daemon's port file; a restart keeps it."""
    from handrail.config import load  # noqa: PLC0415 - pydantic, which most commands do without

    places = Places.find(os.environ)
    try:
        port = int(read_regular_file(places.port).split()[0])
    except (OSError, ValueError, IndexError):
        return None
    return None if port == load(places.config).server.port else port


def _daemon_argv(port: int | None) -> tuple[str, ...] | None:
    """The command line that starts the daemon on this port; None for the default one."""
    if port is None:
        return None
    return (*own_python(), "-m", "handrail", "up", "--foreground", "--no-open", "--port", str(port))


def _kept_variables() -> tuple[str, ...]:
    """Environment variables that the new daemon keeps for our own agent: API keys and base URLs."""
    from handrail.config import PROVIDER_VARIABLES  # noqa: PLC0415 - pydantic, which most commands do without

    return PROVIDER_VARIABLES


def _warn_of_skew(link: Link) -> None:
    if link.version != __version__:
        note(f"The daemon is version {link.version}, this command {__version__}. Run `handrail restart`.")


def show_page(link: Link, *, browse: bool) -> None:
    if browse and has_display() and open_in_browser(link.post("code", body={"local": True})["url"]):
        say("The page is open in your browser.")
    else:
        say("Open this within a minute; it signs you in once:")
        say(f"  {link.post('code', body={'local': False})['url']}")


def _is_keeper_running(places: Places) -> bool:
    """Whether a keeper still runs. If its daemon is gone, a new daemon is needed to end it."""
    keeper = dial_path(str(places.keeper_socket), check=False)
    if keeper is not None:
        keeper.close()
    return keeper is not None


GONE_SECONDS = 15.0
"""Seconds to wait for an exit. The daemon takes up to five, its processes their grace period; bounds a hang."""


def shut_down(link: Link, pids: Iterable[int], *, keep_terminals: bool) -> None:
    """Shut the daemon down and wait until these processes have exited. Raises Failure on timeout."""
    with ExitStack() as stack:
        exits = [ProcessExit(pid, stack) for pid in pids]
        if sys.stderr.isatty():
            note(("Ending …", "dim"))
        link.post("down", keep_terminals=keep_terminals)
        until = time.monotonic() + GONE_SECONDS
        remaining = [each.pid for each in exits if not each.wait(until)]
    if remaining:
        raise Failure(
            f"Still there after {GONE_SECONDS:.0f} s: process {', '.join(map(str, remaining))}. "
            "`handrail down --force` ends it; `handrail doctor` may show why, and so may the logs in "
            f"{Places.find(os.environ).logs}."
        )


class ProcessExit:
    """Waits for the exit of a process. Uses a pidfd on Linux, so a reused pid does not matter."""

    def __init__(self, pid: int, stack: ExitStack) -> None:
        self.pid = pid
        self._fd = -1
        if sys.platform == "linux":
            try:
                self._fd = os.pidfd_open(pid)
            except OSError:
                return
            stack.callback(os.close, self._fd)

    def wait(self, until: float) -> bool:
        if self._fd >= 0:
            return bool(select.select([self._fd], [], [], max(0.0, until - time.monotonic()))[0])
        while _exists(self.pid) and time.monotonic() < until:
            time.sleep(0.05)
        return not _exists(self.pid)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True
