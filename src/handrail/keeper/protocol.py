"""The keeper protocol: the messages between the keeper and daemons, doors and windows, and the protocol version.

A connection opens with `Hello`; the keeper answers `Welcome` or `Refused`. A door that needs a daemon sends
`{"is": "hello", "protocol": 1, "want": "start_daemon"}` and a newline, and reads one line: `{"is": "welcome", …,
"answer": "started"}`, or `"already"`. `start_daemon` and `shutdown` work across versions; everything else needs equal
versions. A daemon then gets one `Kept` per terminal, followed by replies (matched by `id`) and notices. A window attaches
to one terminal and gets the `Kept` and the notices of that terminal.
"""

from __future__ import annotations

import re

from handrail.keeper.message_framing import decode, name_of
from handrail.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Exit:
    """How a leader ended: an exit code, or a signal name, or neither; then `lost` is the reason why it is unknown."""

    code: int | None = None
    signal: str | None = None
    lost: str | None = None


@dataclass(frozen=True, slots=True)
class Sent:
    """A signal sent to the whole tree; `at_ms` is the time since the stop began."""

    signal: str
    at_ms: float


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    name: str


@dataclass(frozen=True, slots=True)
class Seen:
    """A snapshot of a running terminal.

    `foreground` is the process that receives its input; `busy` means it is not the leader. `reading` is how the
    foreground waits: `tty` in a read of this terminal, `poll` in select, poll or epoll, `other`, or `hidden` if the
    system does not expose it.
    """

    foreground: Process | None
    busy: bool
    cwd: str | None
    echo: bool
    canonical: bool
    reading: str

    @property
    def secret(self) -> bool:
        """Line input without echo: a password prompt. (A shell prompt is also without echo, but in raw mode.)"""
        return self.canonical and not self.echo


@dataclass(frozen=True, slots=True)
class Report:
    """How a process tree was stopped. `more` counts stopped processes beyond those listed."""

    why: str
    signals: tuple[Sent, ...] = ()
    stopped: tuple[Process, ...] = ()
    left: tuple[Process, ...] = ()
    duration_ms: float = 0.0
    more: int = 0


PROTOCOL = 3
TERMINAL_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
"""A terminal's id is also the name of its spool directory."""
RESTART_KEY = "restart-daemon"
"""Key in the memo. While it is set, the keeper restarts a daemon that disconnects. A daemon that ends on purpose removes it."""
NO_REPLY = 0
"""An id that no awaited request has."""
NOT_READING = "not_reading"
"""`Failed.code`: the input queue is full because the program does not read. The same request may succeed later."""


@dataclass(frozen=True, slots=True)
class Hello:
    """`want` is one of daemon, start_daemon, which_daemon, shutdown, attach.

    `attach` makes the connection a person's window on one `terminal`: it can type and resize, and is notified of output
    and of the end. With `ends`, the terminal ends when the connection closes.
    """

    protocol: int
    want: str
    grace: float = 2.0
    terminal: str = ""
    ends: bool = False


@dataclass(frozen=True, slots=True)
class Welcome:
    """`kept` is the number of `Kept` messages that follow; `answer` is for start_daemon: started or already.

    `daemon` is the pid of the connected daemon, for start_daemon and which_daemon; 0 without one. A keeper from before
    that refuses which_daemon.
    """

    protocol: int
    pid: int
    kept: int = 0
    answer: str = ""
    daemon: int = 0


@dataclass(frozen=True, slots=True)
class Refused:
    why: str


# Daemon → keeper. Each is answered by its id.


@dataclass(frozen=True, slots=True)
class CheckedProgram:
    """A program that was checked: its path, relative to `cwd` or absolute, with device, inode, size and ctime."""

    path: str
    identity: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Start:
    """Start a program. Without `pipes` it gets a PTY of this size.

    `grace` is the time for processes that outlive the leader. `note` is opaque data for the next daemon. `cwd_id` is the
    device and inode of the checked directory: if `cwd` now leads elsewhere, the start fails. It also fails if one of
    `programs` is no longer the file that was checked. With `exact`, the first of them is executed by its descriptor with
    these arguments, in place of the shell in `argv`, which would start it by its path.
    """

    id: int
    terminal: str
    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str]
    cols: int = 80
    rows: int = 24
    pipes: bool = False
    cap_bytes: int = 64 * 1024 * 1024
    cap_lines: int = 1_000_000
    grace: float = 2.0
    note: str = ""
    cwd_id: tuple[int, int] | None = None
    programs: tuple[CheckedProgram, ...] = ()
    exact: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Input:
    """Answered by `Typed`. If the terminal does not echo (a password prompt), only a `person`'s input is written."""

    id: int
    terminal: str
    data: bytes
    person: bool = False


@dataclass(frozen=True, slots=True)
class Resize:
    id: int
    terminal: str
    cols: int
    rows: int


@dataclass(frozen=True, slots=True)
class Signal:
    """Send a signal to the leader only."""

    id: int
    terminal: str
    number: int


@dataclass(frozen=True, slots=True)
class Look:
    """Answered by `Looked`."""

    id: int
    terminal: str


@dataclass(frozen=True, slots=True)
class Stop:
    """Answered by `Stopped` when the whole tree is gone."""

    id: int
    terminal: str
    grace: float = 2.0


@dataclass(frozen=True, slots=True)
class Forget:
    """Drop an ended terminal from memory; with `delete`, its spool too. With the id NO_REPLY it is not answered."""

    id: int
    terminal: str
    delete: bool = False


@dataclass(frozen=True, slots=True)
class Remember:
    """Store a value across daemon restarts; an empty value deletes the key."""

    id: int
    key: str
    value: bytes


@dataclass(frozen=True, slots=True)
class Recall:
    id: int
    key: str


@dataclass(frozen=True, slots=True)
class Listen:
    """Listen on the first of these loopback ports that is available, and hold it until the keeper exits.

    With `both`, hold the same port of the IPv6 loopback address too, if the system has one and it is free. With `host`,
    listen on exactly the first port of that address instead, or with `release` no longer. A keeper from before `host`
    ignores it and listens on loopback.
    """

    id: int
    ports: tuple[int, ...]
    both: bool = False
    host: str = ""
    release: bool = False


@dataclass(frozen=True, slots=True)
class Health:
    id: int


@dataclass(frozen=True, slots=True)
class Shutdown:
    """Stop every tree, answer, and exit."""

    id: int
    grace: float = 2.0


# Keeper → daemon: replies.


@dataclass(frozen=True, slots=True)
class Done:
    id: int


@dataclass(frozen=True, slots=True)
class Failed:
    """A refused request. `why` is for people, `code` for programs.

    Most refusals have an empty code. A keeper from before codes sends none, so the daemon must work without them.
    """

    id: int
    why: str
    code: str = ""


@dataclass(frozen=True, slots=True)
class Started:
    """With pipes, three descriptors are attached: our ends of stdin, stdout and stderr."""

    id: int
    pid: int
    descriptors: int = 0


@dataclass(frozen=True, slots=True)
class Typed:
    """`secret`: the terminal did not echo at that moment. `typed` is False if an agent's input was refused for that."""

    id: int
    secret: bool
    typed: bool


@dataclass(frozen=True, slots=True)
class Looked:
    id: int
    seen: Seen


@dataclass(frozen=True, slots=True)
class Stopped:
    id: int
    report: Report


@dataclass(frozen=True, slots=True)
class Recalled:
    id: int
    value: bytes | None


@dataclass(frozen=True, slots=True)
class Listening:
    """The listening sockets are attached: IPv4, then IPv6 if it was requested and is available."""

    id: int
    descriptors: int = 1


@dataclass(frozen=True, slots=True)
class Healthy:
    """`lag_ms` is the longest pass of the keeper's loop since the previous `Health` request.

    `restarts` counts the daemons that the keeper started because the previous one ended unexpectedly; `restarted_at` is the
    time of the last one, in seconds since 1970. A keeper from before that sends neither.
    """

    id: int
    rss_bytes: int
    descriptors: int
    terminals: int
    lag_ms: float
    restarts: int = 0
    restarted_at: float = 0.0


# Keeper → daemon: notices.


@dataclass(frozen=True, slots=True)
class Kept:
    """The full state of one terminal, from which a new daemon adopts it."""

    terminal: str
    argv: tuple[str, ...]
    cwd: str
    pid: int
    created_at: float
    cols: int
    rows: int
    pipes: bool
    size: int
    exit: Exit | None = None
    report: Report | None = None
    unrecorded: str | None = None
    note: str = ""
    attached: bool = False


@dataclass(frozen=True, slots=True)
class Overheard:
    """A person typed in a window. `data` is empty if the terminal did not echo; `size` is the output offset then."""

    terminal: str
    data: bytes
    secret: bool
    size: int


@dataclass(frozen=True, slots=True)
class Resized:
    """A window has resized the terminal."""

    terminal: str
    cols: int
    rows: int


@dataclass(frozen=True, slots=True)
class Attached:
    """The first window on a terminal opened, or the last one closed."""

    terminal: str
    attached: bool


@dataclass(frozen=True, slots=True)
class Grown:
    terminal: str
    size: int


@dataclass(frozen=True, slots=True)
class Unrecorded:
    """Output after offset `size` is discarded; `why` gives the reason (a full disk)."""

    terminal: str
    size: int
    why: str


@dataclass(frozen=True, slots=True)
class Exited:
    terminal: str
    exit: Exit
    size: int


@dataclass(frozen=True, slots=True)
class Swept:
    """No process of the terminal's tree is alive, except those in `report.left`."""

    terminal: str
    report: Report
    size: int


@dataclass(frozen=True, slots=True)
class Replaced:
    """Another daemon has connected and replaced this one; the keeper closes the connection."""


Request = (
    Start | Input | Resize | Signal | Look | Stop | Forget | Remember | Recall | Listen | Health | Shutdown
)
Reply = Done | Failed | Started | Typed | Looked | Stopped | Recalled | Listening | Healthy
Notice = Kept | Overheard | Resized | Attached | Grown | Unrecorded | Exited | Swept | Replaced


def _named(*kinds: type) -> dict[str, type]:
    return {name_of(kind): kind for kind in kinds}


_TO_KEEPER = _named(
    *(Hello, Start, Input, Resize, Signal, Look, Stop, Forget, Remember, Recall, Listen, Health, Shutdown)
)
_FROM_KEEPER = _named(
    *(Welcome, Refused, Done, Failed, Started, Typed, Looked, Stopped, Recalled, Listening, Healthy),
    *(Kept, Overheard, Resized, Attached, Grown, Unrecorded, Exited, Swept, Replaced),
)


def to_keeper(line: bytes) -> Hello | Request:
    return decode(line, _TO_KEEPER)


def from_keeper(line: bytes) -> Welcome | Refused | Reply | Notice:
    return decode(line, _FROM_KEEPER)


def skew(theirs: int) -> str | None:
    """The error message if the peer's protocol version differs from ours, else None."""
    if theirs == PROTOCOL:
        return None
    return (
        f"The running keeper and this daemon are of different versions of Handrail (protocol {PROTOCOL} here, {theirs} there). "
        "Run `handrail down`, which ends the terminals it keeps, then `handrail up`."
    )


class RefusalError(Exception):
    """A refused request. Its message and code become the reply; see `Failed`."""

    def __init__(self, why: str, code: str = "") -> None:
        super().__init__(why)
        self.code = code
