"""`handrail shell`: run the person's shell or a command in a Handrail terminal, shown in the current window.

Exits with the program's exit status, or by the signal that ended it. Falls back to a plain shell where a Handrail terminal
is not possible. Contains a minimal HTTP client, because importing a full one would slow the start.
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
from handrail.door.connect import (
    START_SECONDS,
    DaemonNotRunning,
    HelloRefused,
    check_lives,
    connect,
    say_hello,
)
from handrail.door.window import Interrupted, Outlet, Relay, Window, size_of
from handrail.hardening import hide_memory
from handrail.paths import Places

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn


FAILED, NO_DAEMON = 1, 3


class ShellRequest:
    """The options of the command line."""

    # Not a dataclass: importing dataclasses takes longer than opening the terminal.
    __slots__ = ("command", "keep", "name", "or_plain")

    def __init__(
        self, *, keep: bool = False, name: str = "", or_plain: bool = False, command: list[str] | None = None
    ) -> None:
        self.keep = keep
        self.name = name
        self.or_plain = or_plain
        """Run a plain shell if no Handrail terminal can be opened, so that the person always gets a shell."""
        self.command = command or []


def main(arguments: list[str]) -> int | None:
    """Run the shell and return the exit status; None for options that only the full command line handles."""
    wish = parse(arguments)
    return None if wish is None else run(wish)


def parse(arguments: list[str]) -> ShellRequest | None:
    """Parse the options for opening a shell; None for any other. The full command line handles help and errors."""
    wish, rest = ShellRequest(), list(arguments)
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


def run(wish: ShellRequest) -> int:
    """Show the terminal until the program ends; return the exit status."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    hide_memory()
    if wish.command and find(wish.command[0]) is None:
        _note(f"handrail shell: {wish.command[0]}: command not found")
        return NOT_FOUND
    why = _why_plain(wish)
    if why:
        _note(why)
        become(wish.command)
    return _run_in_window(wish)


def _run_in_window(wish: ShellRequest) -> int:
    try:
        with Window(0) as window:
            relay, terminal = _show_terminal(wish, window)
    except Interrupted as interrupted:
        return die_by(interrupted.number)
    except NotKept as problem:
        if wish.or_plain:
            _note(f"Not kept by Handrail: {problem}")
            become(wish.command)
        _note(str(problem))
        return problem.code
    if relay.ended_by is None:
        return _exit_like(terminal)
    if wish.keep:
        _note(f"Terminal {terminal.terminal} goes on.{_usage_hint(terminal)}")
    return die_by(relay.ended_by)


def _why_plain(wish: ShellRequest) -> str:
    inside = os.environ.get("HANDRAIL_TERMINAL")
    if inside:
        return f"This is terminal {inside} of Handrail already, so no other is opened in it."
    if not wish.command and not os.isatty(0):
        return "The input is no terminal, so this is the plain shell; `handrail shell -- CMD` would be kept."
    return ""


class NotKept(Exception):
    """No Handrail terminal could be opened; the message gives the reason."""

    def __init__(self, why: str, code: int) -> None:
        super().__init__(why)
        self.code = code


def _show_terminal(wish: ShellRequest, window: Window) -> tuple[Relay, Attached]:
    """Open a terminal and show it until the program or the window ends. Raises NotKept, Interrupted."""
    places = Places.find(os.environ)
    terminal = _open_attached(wish, places)
    if wish.keep:
        hint = _usage_hint(terminal)
        _note(f"This is terminal {terminal.terminal}; it goes on when this window is closed.{hint}")
    if window.is_terminal and not wish.or_plain:
        offer(places, _note)
    reader = SpoolReader(os.path.join(places.spool, terminal.terminal))
    relay = Relay(window, terminal, reader, Outlet(1))
    window.begin()
    terminal.resize(*window.size())
    relay.run()
    terminal.close()
    return relay, terminal


def _open_attached(wish: ShellRequest, places: Places) -> Attached:
    try:
        terminal = open_terminal(
            places, wish.command, wish.name, keep=wish.keep, is_patient=not wish.or_plain
        )
        return Attached.attach(places, terminal, ends=not wish.keep)
    except NotOpened as problem:
        raise NotKept(str(problem), NO_DAEMON if problem.is_gone else FAILED) from None
    except NotAttached as problem:
        raise NotKept(str(problem), FAILED) from None
    except Interrupted:
        raise
    except Exception as error:  # on any error of ours, the person must still get a shell
        if not wish.or_plain:
            raise
        raise NotKept(f"{type(error).__name__}: {error}", FAILED) from None


def _usage_hint(terminal: Attached) -> str:
    name = terminal.terminal
    return f" `handrail terminal read {name}` shows it, `handrail terminal close {name}` ends it."


def _exit_like(terminal: Attached) -> int:
    """End as the program did: return its exit status, or die by its signal."""
    ended = terminal.exit or {"lost": "Handrail's keeper has ended, and with it all of its terminals."}
    if ended.get("code") is not None:
        return int(ended["code"])
    if ended.get("signal"):
        return die_by(_signal_number(ended["signal"]))
    _note(f"{ended['lost']} What it printed is kept: `handrail terminal read {terminal.terminal}`.")
    return FAILED


def _signal_number(name: str) -> int:
    numbers = {each.name: int(each) for each in signal.Signals}
    return numbers.get(name) or int(name.removeprefix("SIG"))


def die_by(number: int) -> int:
    """End by a signal, so that the parent process sees the same status as from the program itself."""
    import resource  # noqa: PLC0415 - rarely needed

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
"""Exit status of shells for "command not found"."""

_ALTERED = (signal.SIGPIPE, *((signal.SIGXFSZ,) if hasattr(signal, "SIGXFSZ") else ()))
"""Signals that Python ignores; they would stay ignored across exec."""


def shell() -> str:
    """The shell in $SHELL, else the user's login shell, else /bin/sh."""
    candidates = (os.environ.get("SHELL"), _login_shell())
    return next((path for path in candidates if path and os.access(path, os.X_OK)), "/bin/sh")


def find(program: str) -> str | None:
    """Find the executable of a command name, on PATH unless it contains a slash; None if not found."""
    if "/" in program:
        return program if os.access(program, os.X_OK) and not os.path.isdir(program) else None
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder, program)
        if os.access(path, os.X_OK) and not os.path.isdir(path):
            return path
    return None


def become(command: list[str]) -> NoReturn:
    """Replace this process with the command, or with the person's shell if it is empty."""
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
    "To have every terminal of VS Code kept like this one: `handrail connect vscode` installs the extension, which has a "
    "terminal profile (said only this once)."
)


def offer(places: Places, say: Callable[[str], None]) -> None:
    """Suggest the terminal profile of the VS Code extension once per home, in VS Code's own terminal only."""
    if os.environ.get("TERM_PROGRAM") != "vscode":
        return
    try:
        fd = os.open(places.state / "profile-offered", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError:  # already shown, or the marker file cannot be created
        return
    os.close(fd)
    say(LINE)


SIDE_MAX = 1000
"""Maximum columns or rows of a new terminal; resizing the window may exceed it."""

NAME_MAX = 200

IMPATIENT_SECONDS = 5.0
"""Seconds for the daemon to start before `--or-plain` falls back to a plain shell."""


class NotOpened(Exception):
    """The daemon did not open a terminal; the message gives the reason."""

    def __init__(self, why: str, is_gone: bool) -> None:
        super().__init__(why)
        self.is_gone = is_gone
        """Whether no daemon could be reached."""


def open_terminal(places: Places, command: list[str], name: str, *, keep: bool, is_patient: bool) -> str:
    """Open a terminal that runs the command, or the person's shell; return its id. Raises NotOpened."""
    within = None if is_patient else IMPATIENT_SECONDS
    try:
        return str(post(places, "/api/terminals", order(command, name, keep=keep), within)["id"])
    except Refused as refused:
        raise NotOpened(str(refused), refused.is_gone) from None


def order(command: list[str], name: str, *, keep: bool) -> dict[str, Any]:
    """Build the body of the request that opens a terminal."""
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
    """All of the caller's variables that are valid text, with SHELL set to a shell that exists."""
    variables = {name: value for name, value in os.environ.items() if _is_text(name) and _is_text(value)}
    return {**variables, "SHELL": shell()}


def _absolute(program: str) -> str:
    return os.path.join(_cwd(), program) if "/" in program else program


def _cwd() -> str:
    """The current directory, as the path in PWD if that is valid (it may contain symlinks)."""
    cwd, pwd_variable = os.getcwd(), os.environ.get("PWD", "")
    try:
        is_valid = os.path.isabs(pwd_variable) and os.path.samefile(pwd_variable, cwd)
    except OSError:
        return cwd
    return pwd_variable if is_valid else cwd


def _is_text(value: str) -> bool:
    """Whether the value is valid UTF-8; other bytes (as surrogates) cannot be encoded in JSON."""
    return value.isprintable() or not any("\ud800" <= character <= "\udfff" for character in value)


def _shown_name(name: str) -> str:
    return name.encode(errors="replace").decode()


REQUEST_SECONDS = 30.0
"""Seconds for the daemon's response; bounds the wait for a hung daemon."""

ANSWER_MAX = 8 << 20
"""Bytes of a response; bounds the memory that a wrong peer can make us use."""


class Refused(Exception):
    """The daemon refused the request or could not be reached; the message gives the reason."""

    def __init__(self, why: str, is_gone: bool = False) -> None:
        super().__init__(why)
        self.is_gone = is_gone
        """Whether no daemon could be reached."""


def post(places: Places, path: str, body: object, within: float | None = None) -> Any:
    """POST JSON to the daemon as a person. Starts the daemon if needed, within that many seconds. Raises Refused."""
    try:
        # The bearer token is valid as long as this connection is open.
        with connect(places, within=START_SECONDS if within is None else within) as sock:
            reply = say_hello(sock, "person")
            return _send_request(
                sock, str(reply["url"]), path, str(reply["bearer"]), json.dumps(body).encode()
            )
    except DaemonNotRunning as problem:
        raise Refused(str(problem), is_gone=True) from None
    except HelloRefused as refused:
        raise Refused(refused.why, is_gone=refused.hung_up) from None
    except (OSError, ValueError) as error:
        raise Refused(f"The daemon went away ({error}). Start it with `handrail up`.", is_gone=True) from None


def _send_request(daemon: socket.socket, url: str, path: str, bearer: str, body: bytes) -> Any:
    host = url.removeprefix("http://")
    name, _, port = host.rpartition(":")
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {bearer}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    deadline = time.monotonic() + REQUEST_SECONDS
    with socket.create_connection((name, int(port)), REQUEST_SECONDS) as sock:
        check_lives(daemon)
        sock.sendall(head.encode() + body)
        answer = b""
        while data := sock.recv(1 << 16):
            answer += data
            if time.monotonic() > deadline or len(answer) > ANSWER_MAX:
                raise TimeoutError("its answer did not end")
    return _parse_response(answer)


def _parse_response(response: bytes) -> Any:
    head, _, body = response.partition(b"\r\n\r\n")
    status = int(head.split(b" ", 2)[1]) if head.startswith(b"HTTP/1.") else 0
    content = json.loads(body)
    if not 200 <= status < 300:
        raise Refused(_detail(content, status))
    return content


def _detail(answer: Any, status: int) -> str:
    try:
        return str(answer["detail"])
    except (TypeError, KeyError):
        return f"The daemon refused this ({status}) without a reason. `handrail doctor` may say more."
