"""`handrail shell`: the person's own shell in a terminal that Handrail keeps, shown in the window it is started from.

Owns the command line, when a plain shell is run instead, and how it ends: with the exit status of the program, or by
the signal that ended it. Does not know what passes between window and terminal: that is `relay`'s.

The person's shell without Handrail: which one it is, and becoming it.

The one line, said once in a home, that VS Code's terminals could be kept too.

Asking the daemon for a terminal of the person's own.

One request of a person's program to the daemon, without the modules that would take longer to load than it
takes.
"""

from __future__ import annotations

import json
import os
import pwd
import signal
import socket
import sys
import time

from handrail.door.attach_client import Attached, NotAttached, SpoolReader
from handrail.door.connect import START_SECONDS, DaemonNotRunning, HelloRefused, connect, say_hello
from handrail.door.window import Interrupted, Outlet, Relay, Window, size_of
from handrail.hardening import hide_memory
from handrail.paths import Places

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn


FAILED, NO_DAEMON = 1, 3


class Wish:
    """What was asked for on the command line."""

    # No dataclass: importing that would take longer than opening the terminal.
    __slots__ = ("command", "keep", "name", "or_plain")

    def __init__(
        self, *, keep: bool = False, name: str = "", or_plain: bool = False, command: list[str] | None = None
    ) -> None:
        self.keep = keep
        self.name = name
        self.or_plain = or_plain
        """Be the plain shell when it cannot be a kept one: nobody is to be left without a shell."""
        self.command = command or []


def main(arguments: list[str]) -> int | None:
    """Run what these arguments ask for; the exit status. None when they ask for something else, or make no sense."""
    wish = parse(arguments)
    return None if wish is None else run(wish)


def parse(arguments: list[str]) -> Wish | None:
    """Only what opening a shell takes. Help, and what is wrong, is told by those who have the time."""
    wish, rest = Wish(), list(arguments)
    while rest and rest[0].startswith("-"):
        match rest.pop(0).partition("="):
            case ("--", "", ""):
                wish.command = rest
                return wish
            case ("--keep", "", ""):
                wish.keep = True
            case ("--or-plain", "", ""):
                wish.or_plain = True
            case ("--name", "=", name):
                wish.name = name
            case ("--name", "", "") if rest:
                wish.name = rest.pop(0)
            case _:
                return None
    wish.command = rest
    return wish


def run(wish: Wish) -> int:
    """Be the window until the program ends; the exit status."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    hide_memory()
    if wish.command and find(wish.command[0]) is None:
        _note(f"handrail shell: {wish.command[0]}: command not found")
        return NOT_FOUND
    why = _why_plain(wish)
    if why:
        _note(why)
        become(wish.command)
    return _in_window(wish)


def _in_window(wish: Wish) -> int:
    try:
        with Window(0) as window:
            relay, terminal = _shown(wish, window)
    except Interrupted as interrupted:
        return die_by(interrupted.number)
    except NotKept as problem:
        if wish.or_plain:
            _note(f"Not kept by Handrail: {problem}")
            become(wish.command)
        _note(str(problem))
        return problem.code
    if relay.ended_by is None:
        return _end(terminal)
    if wish.keep:
        _note(f"Terminal {terminal.terminal} goes on.{_how(terminal)}")
    return die_by(relay.ended_by)


def _why_plain(wish: Wish) -> str:
    inside = os.environ.get("HANDRAIL_TERMINAL")
    if inside:
        return f"This is terminal {inside} of Handrail already, so no other is opened in it."
    if not wish.command and not os.isatty(0):
        return "The input is no terminal, so this is the plain shell; `handrail shell -- CMD` would be kept."
    return ""


class NotKept(Exception):
    """There is nothing to show; the sentence says why."""

    def __init__(self, why: str, code: int) -> None:
        super().__init__(why)
        self.code = code


def _shown(wish: Wish, window: Window) -> tuple[Relay, Attached]:
    """Open a terminal and show it until one of the two ends. Raises NotKept, Interrupted."""
    places = Places.find(os.environ)
    terminal = _opened(wish, places)
    if wish.keep:
        _note(f"This is terminal {terminal.terminal}; it goes on when this window is closed.{_how(terminal)}")
    if window.is_terminal and not wish.or_plain:
        offer(places, _note)
    reader = SpoolReader(os.path.join(places.spool, terminal.terminal))
    relay = Relay(window, terminal, reader, Outlet(1))
    window.begin()
    terminal.resize(*window.size())
    relay.run()
    terminal.close()
    return relay, terminal


def _opened(wish: Wish, places: Places) -> Attached:
    try:
        made = open_terminal(places, wish.command, wish.name, keep=wish.keep, is_patient=not wish.or_plain)
        return Attached.attach(places, made, ends=not wish.keep)
    except NotOpened as problem:
        raise NotKept(str(problem), NO_DAEMON if problem.is_gone else FAILED) from None
    except NotAttached as problem:
        raise NotKept(str(problem), FAILED) from None
    except Interrupted:
        raise
    except Exception as error:  # whatever is wrong with us, a person must get a shell
        if not wish.or_plain:
            raise
        raise NotKept(f"{type(error).__name__}: {error}", FAILED) from None


def _how(terminal: Attached) -> str:
    name = terminal.terminal
    return f" `handrail terminal read {name}` shows it, `handrail terminal close {name}` ends it."


def _end(terminal: Attached) -> int:
    """As the program ended, so do we."""
    ended = terminal.exit or {"lost": "Handrail's keeper has ended, and with it all of its terminals."}
    if ended.get("code") is not None:
        return int(ended["code"])
    if ended.get("signal"):
        return die_by(_number(ended["signal"]))
    _note(f"{ended['lost']} What it printed is kept: `handrail terminal read {terminal.terminal}`.")
    return FAILED


def _number(name: str) -> int:
    known = {each.name: int(each) for each in signal.Signals}
    return known.get(name) or int(name.removeprefix("SIG"))


def die_by(number: int) -> int:
    """End by a signal, so that whoever started us sees what they would see of the program itself."""
    import resource  # noqa: PLC0415 - needed by few

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    return 128 + number


def _note(sentence: str) -> None:
    try:
        sys.stderr.write(f"{sentence}\n")
        sys.stderr.flush()
    except OSError:
        return  # the window is gone


NOT_FOUND = 127
"""What shells say of a program that is not there."""

_ALTERED = (signal.SIGPIPE, *((signal.SIGXFSZ,) if hasattr(signal, "SIGXFSZ") else ()))
"""Signals that Python ignores: they would stay ignored across exec."""


def shell() -> str:
    """The caller's own, else the one the system has for this user, else the one every system has."""
    known = (os.environ.get("SHELL"), _login_shell())
    return next((path for path in known if path and os.access(path, os.X_OK)), "/bin/sh")


def find(program: str) -> str | None:
    """The file that a name on the command line stands for; None when there is none."""
    if "/" in program:
        return program if os.access(program, os.X_OK) and not os.path.isdir(program) else None
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder, program)
        if os.access(path, os.X_OK) and not os.path.isdir(path):
            return path
    return None


def become(command: list[str]) -> NoReturn:
    """Be this command, or the person's shell when there is none."""
    argv = command or [shell()]
    for number in _ALTERED:
        signal.signal(number, signal.SIG_DFL)
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        if not command and argv[0] != "/bin/sh":
            os.execv("/bin/sh", ["sh"])
        sys.stderr.write(f"handrail: {argv[0]}: {error.strerror}\n")
    os._exit(NOT_FOUND)


def _login_shell() -> str | None:
    try:
        return pwd.getpwuid(os.getuid()).pw_shell
    except KeyError:  # a user without an entry, as in a container
        return None


LINE = (
    "To have every terminal of VS Code kept like this one: `handrail shell --install-profile vscode` "
    "(shows the change, keeps a backup; said only this once)."
)


def offer(places: Places, say: Callable[[str], None]) -> None:
    """Say it to somebody who sits in VS Code, unless it was said before."""
    if os.environ.get("TERM_PROGRAM") != "vscode":
        return
    try:
        fd = os.open(places.state / "profile-offered", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError:  # said before, or it could not be remembered that it was said
        return
    os.close(fd)
    say(LINE)


SIDE_MAX = 1000
"""Columns or rows that a terminal may be opened with; a window may grow it further."""

NAME_MAX = 200

IMPATIENT_SECONDS = 5.0
"""For a daemon to come up while somebody waits who would rather have a plain shell."""


class NotOpened(Exception):
    """There is no terminal; the sentence says why."""

    def __init__(self, why: str, is_gone: bool) -> None:
        super().__init__(why)
        self.is_gone = is_gone
        """There was no daemon to ask."""


def open_terminal(places: Places, command: list[str], name: str, *, keep: bool, is_patient: bool) -> str:
    """The id of a new terminal that runs this, or the person's shell. Raises NotOpened."""
    within = None if is_patient else IMPATIENT_SECONDS
    try:
        return str(post(places, "/api/terminals", order(command, name, keep=keep), within)["id"])
    except Refused as refused:
        raise NotOpened(str(refused), refused.is_gone) from None


def order(command: list[str], name: str, *, keep: bool) -> dict[str, Any]:
    """What is asked for."""
    cols, rows = size_of(0, 1, 2)
    return {
        "of": "shell",
        "name": _shown_name(name)[:NAME_MAX],
        "command": [_absolute(command[0]), *command[1:]] if command else [],
        "cwd": _cwd(),
        "env": environment(),
        "cols": min(cols, SIDE_MAX),
        "rows": min(rows, SIDE_MAX),
        "keep": keep,
    }


def environment() -> dict[str, str]:
    """All of the caller's variables that can be told in words, and a shell that exists."""
    told = {name: value for name, value in os.environ.items() if _is_text(name) and _is_text(value)}
    return {**told, "SHELL": shell()}


def _absolute(program: str) -> str:
    return os.path.join(_cwd(), program) if "/" in program else program


def _cwd() -> str:
    """Where the caller is, by the name that the caller's shell has for it."""
    here, named = os.getcwd(), os.environ.get("PWD", "")
    try:
        return named if os.path.isabs(named) and os.path.samefile(named, here) else here
    except OSError:
        return here


def _is_text(value: str) -> bool:
    """A byte that is no UTF-8 cannot be said in JSON."""
    return value.isprintable() or not any("\ud800" <= each <= "\udfff" for each in value)


def _shown_name(name: str) -> str:
    return name.encode(errors="replace").decode()


REQUEST_SECONDS = 30.0
"""A daemon answers in milliseconds; bounds the wait for one that hangs."""

ANSWER_MAX = 8 << 20
"""Bytes of an answer; bounds what a wrong peer can make us hold."""


class Refused(Exception):
    """The daemon did not do it; the sentence says why."""

    def __init__(self, why: str, is_gone: bool = False) -> None:
        super().__init__(why)
        self.is_gone = is_gone
        """There was nobody to do it."""


def post(places: Places, path: str, body: object, within: float | None = None) -> Any:
    """As a person, ask the daemon, which is started if need be, in that time. Raises Refused."""
    try:
        # The bearer holds for as long as this connection.
        with connect(places, within=START_SECONDS if within is None else within) as sock:
            reply = say_hello(sock, "person")
            return _ask(str(reply["url"]), path, str(reply["bearer"]), json.dumps(body).encode())
    except DaemonNotRunning as problem:
        raise Refused(str(problem), is_gone=True) from None
    except HelloRefused as refused:
        raise Refused(refused.why, is_gone=refused.hung_up) from None
    except (OSError, ValueError) as error:
        raise Refused(f"The daemon went away ({error}). Start it with `handrail up`.", is_gone=True) from None


def _ask(url: str, path: str, bearer: str, body: bytes) -> Any:
    host = url.removeprefix("http://")
    name, _, port = host.rpartition(":")
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {bearer}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    deadline = time.monotonic() + REQUEST_SECONDS
    with socket.create_connection((name, int(port)), REQUEST_SECONDS) as sock:
        sock.sendall(head.encode() + body)
        answer = b""
        while data := sock.recv(1 << 16):
            answer += data
            if time.monotonic() > deadline or len(answer) > ANSWER_MAX:
                raise TimeoutError("its answer did not end")
    return _answer(answer)


def _answer(whole: bytes) -> Any:
    head, _, body = whole.partition(b"\r\n\r\n")
    status = int(head.split(b" ", 2)[1]) if head.startswith(b"HTTP/1.") else 0
    found = json.loads(body)
    if not 200 <= status < 300:
        raise Refused(_detail(found, status))
    return found


def _detail(answer: Any, status: int) -> str:
    try:
        return str(answer["detail"])
    except (TypeError, KeyError):
        return f"The daemon refused this ({status}) without a reason. `handrail doctor` may say more."
