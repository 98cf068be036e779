"""Starting and ending: up, down, restart, open.

Owns those commands and the wait until a process is really gone. What the daemon does when it starts or ends is its
own; `up --foreground` is the daemon, in this process.
"""

import os
import select
import sys
import time
import webbrowser
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Annotated

import typer

from handrail import __version__
from handrail.cli.failure import Failure
from handrail.cli.help import verb
from handrail.cli.link import Link, reach
from handrail.cli.show import note, say
from handrail.cli.words import Row, count
from handrail.config import BadConfig, load
from handrail.door.find import dial_path
from handrail.places import Places

GONE_SECONDS = 15.0
"""A daemon ends within five seconds, what it started within its grace; bounds the wait for one that does not."""

Port = Annotated[int | None, typer.Option(min=1, max=65535, help="Listen here; a free port if it is taken.")]
NoOpen = Annotated[bool, typer.Option("--no-open", help="Do not open the page.")]


def add_to(app: typer.Typer) -> None:
    verb(app, "up", "handrail up", "handrail up --no-open --port 8000", "handrail up --foreground")(up)
    verb(app, "down", "handrail down")(down)
    verb(app, "restart", "handrail restart")(restart)
    verb(app, "open", "handrail open", "handrail open --print")(open_page)


def up(
    foreground: Annotated[
        bool, typer.Option("--foreground", help="Stay here; Ctrl-C ends all of it.")
    ] = False,
    port: Port = None,
    no_open: NoOpen = False,
) -> None:
    """Start Handrail, if it does not run yet, and open its page."""
    if foreground:
        raise typer.Exit(_be_the_daemon(port, announce=not no_open))
    _check_config()
    argv = None
    if port is not None:
        argv = (sys.executable, "-m", "handrail", "up", "--foreground", "--no-open", "--port", str(port))
    with reach("read", start=True, argv=argv) as link:
        say(f"Handrail runs at {link.url} (pid {link.pid}).")
        _warn_of_skew(link)
        if port is not None and not link.url.endswith(f":{port}"):
            note(f"That is not port {port}: it ran before, or the port is taken. Try `handrail down` first.")
    try:
        with reach("person") as person:
            show_page(person, browse=not no_open)
    except Failure as refused:
        note(str(refused))


def down() -> None:
    """End Handrail and everything it started."""
    places = Places.find(os.environ)
    with reach("person", start=_keeper_lives(places)) as link:
        health: Row = link.get("health")
        pids = [link.pid, *([health["keeper"]["pid"]] if health["keeper"] else [])]
        _end(link, pids, keep_terminals=False)
    say("Handrail is down, and everything it started has ended.")


def restart() -> None:
    """Replace the daemon; terminals run on and waiting approvals are kept."""
    try:
        with reach("person") as link:
            _end(link, [link.pid], keep_terminals=True)
    except Failure as failure:
        if failure.code != 3:
            raise
        note("It was not running.")
    _check_config()
    with reach("read", start=True) as link:
        found: Row = link.get("state")["started"]
        say(
            f"Handrail runs at {link.url} (pid {link.pid}): {count(found['interrupted'], 'call')} interrupted, "
            f"{count(found['approvals_kept'], 'approval')} kept, "
            f"{count(found['terminals_adopted'], 'terminal')} re-adopted."
        )


def open_page(
    only_print: Annotated[bool, typer.Option("--print", help="Only print the link.")] = False,
) -> None:
    """Open the page, already signed in; print a fresh link where there is no browser to open."""
    with reach("person") as link:
        show_page(link, browse=not only_print)


def _be_the_daemon(port: int | None, announce: bool) -> int:
    from handrail import daemon  # noqa: PLC0415 - everything there is; only who becomes the daemon pays for it

    places = Places.find(os.environ)
    try:
        return daemon.run(places, load(places.config), port=port, announce=announce)
    except BadConfig as problem:
        raise Failure(str(problem)) from None


def _check_config() -> None:
    """Say here what is wrong with it, rather than in the log of a daemon that does not come up."""
    try:
        load(Places.find(os.environ).config)
    except BadConfig as problem:
        raise Failure(str(problem)) from None


def _warn_of_skew(link: Link) -> None:
    if link.version != __version__:
        note(f"The daemon is version {link.version}, this command {__version__}. Run `handrail restart`.")


def show_page(link: Link, *, browse: bool) -> None:
    page: str = link.post("code")["url"]
    if browse and _has_screen() and webbrowser.open(page):
        say("The page is open in your browser.")
    else:
        say("Open this within a minute; it signs you in once:")
        say(f"  {page}")


def _has_screen() -> bool:
    """A text browser would take over this terminal, so one is opened only where there is a screen."""
    return sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _keeper_lives(places: Places) -> bool:
    """What a lost daemon started is still there, and a new one is needed to end it."""
    keeper = dial_path(str(places.keeper_socket))
    if keeper is not None:
        keeper.close()
    return keeper is not None


def _end(link: Link, pids: Iterable[int], *, keep_terminals: bool) -> None:
    """Tell the daemon to end and wait until these processes are gone."""
    with ExitStack() as held:
        gone = [_Gone(pid, held) for pid in pids]
        link.post("down", keep_terminals=str(keep_terminals).lower())
        until = time.monotonic() + GONE_SECONDS
        left = [each.pid for each in gone if not each.wait(until)]
    if left:
        raise Failure(
            f"Told to end, but still there after {GONE_SECONDS:.0f} s: process {', '.join(map(str, left))}. "
            "`handrail doctor` says more; its log is "
            f"in {Places.find(os.environ).logs}."
        )


class _Gone:
    """A process whose end is awaited, whoever gets its number later."""

    def __init__(self, pid: int, held: ExitStack) -> None:
        self.pid = pid
        self._fd = -1
        if sys.platform == "linux":
            try:
                self._fd = os.pidfd_open(pid)
            except OSError:
                return
            held.callback(os.close, self._fd)

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
