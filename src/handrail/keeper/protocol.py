"""What daemon, doors, windows and keeper say to each other on the keeper's socket.

Owns every message's name and fields, and the protocol's version. Does not know how a message is acted upon.
The facts that messages carry have a module of their own; whoever speaks the protocol finds them here.

A connection opens with `Hello`; the keeper answers `Welcome` or `Refused`. A door that wants the daemon started sends
`{"is": "hello", "protocol": 1, "want": "start_daemon"}` and a newline, and reads one line: `{"is": "welcome", …,
"answer": "started"}`, or `"already"`. That one, and `shutdown`, hold in every version; the rest needs equal versions.
A daemon then gets one `Kept` per terminal, and from there on replies (by `id`) and notices; a window, which attaches to
one terminal, the `Kept` and the notices of that one.

What can be known of a terminal, in the words of the keeper: its processes, how it waits, how it ended.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from handrail.keeper.message_framing import decode, name_of


@dataclass(frozen=True, slots=True)
class Exit:
    """How a leader ended: a code, or a signal's name, or neither and `lost` says why nobody knows."""

    code: int | None = None
    signal: str | None = None
    lost: str | None = None


@dataclass(frozen=True, slots=True)
class Sent:
    """A signal sent to the whole tree, in milliseconds since the ending began."""

    signal: str
    at_ms: float


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    name: str


@dataclass(frozen=True, slots=True)
class Seen:
    """What a look at a running terminal shows.

    `foreground` is the process its keys go to, `busy` whether that is another than the leader. `reading` is how the
    foreground waits: `tty` for a read on this terminal, `poll` for a wait on several things, `other`, or `hidden` when
    the system does not tell.
    """

    foreground: Process | None
    busy: bool
    cwd: str | None
    echo: bool
    canonical: bool
    reading: str

    @property
    def secret(self) -> bool:
        """It hides what is typed, line by line: a password. (A shell's own prompt has the echo off, too, but is raw.)"""
        return self.canonical and not self.echo


@dataclass(frozen=True, slots=True)
class Report:
    """How a tree was ended. `more` counts stopped processes beyond those listed."""

    why: str
    signals: tuple[Sent, ...] = ()
    stopped: tuple[Process, ...] = ()
    left: tuple[Process, ...] = ()
    duration_ms: float = 0.0
    more: int = 0


PROTOCOL = 3
TERMINAL_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
"""A terminal's id is also the name of its spool directory."""
NOT_READING = "not_reading"
"""`Failed.code`: the program leaves so much input unread that no more fits. The same request may succeed later."""


@dataclass(frozen=True, slots=True)
class Hello:
    """`want` is one of daemon, start_daemon, shutdown, attach.

    To attach is to be a person's own window on one `terminal`: type, resize, hear of its growth and its end. With
    `ends`, the terminal ends when this connection does.
    """

    protocol: int
    want: str
    grace: float = 2.0
    terminal: str = ""
    ends: bool = False


@dataclass(frozen=True, slots=True)
class Welcome:
    """`kept` says how many `Kept` follow; `answer` is for start_daemon: started or already."""

    protocol: int
    pid: int
    kept: int = 0
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    why: str


# Daemon → keeper. Each is answered by its id.


@dataclass(frozen=True, slots=True)
class Start:
    """Without `pipes` the program gets a PTY of this size; `grace` is for what its leader leaves behind.

    `note` is the daemon's own word on the terminal, kept and given back to the next daemon, unread. With `cwd_id`,
    the device and inode of a directory, the program starts in that very one or not at all, whatever its path leads to.
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


@dataclass(frozen=True, slots=True)
class Input:
    """Answered by `Typed`. Unless a `person` types, nothing is typed where the terminal hides it."""

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
    """To the leader alone."""

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
    """Drop an ended terminal from memory; with `delete`, its spool too."""

    id: int
    terminal: str
    delete: bool = False


@dataclass(frozen=True, slots=True)
class Remember:
    """An empty value forgets the key."""

    id: int
    key: str
    value: bytes


@dataclass(frozen=True, slots=True)
class Recall:
    id: int
    key: str


@dataclass(frozen=True, slots=True)
class Listen:
    """Open the first of these ports on loopback that can be had, and hold it until the keeper ends."""

    id: int
    ports: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Health:
    id: int


@dataclass(frozen=True, slots=True)
class Shutdown:
    """End every tree, answer, and exit."""

    id: int
    grace: float = 2.0


# Keeper → daemon: replies.


@dataclass(frozen=True, slots=True)
class Done:
    id: int


@dataclass(frozen=True, slots=True)
class Failed:
    """A refused request. `why` is for people; `code` is for decisions.

    An empty code is a refusal of no particular kind. A keeper from before codes sends none, so every code needs a
    fallback to that.
    """

    id: int
    why: str
    code: str = ""


@dataclass(frozen=True, slots=True)
class Started:
    """With pipes, three descriptors come along: our ends of stdin, stdout and stderr."""

    id: int
    pid: int
    descriptors: int = 0


@dataclass(frozen=True, slots=True)
class Typed:
    """`secret`: the terminal hid it at that moment. `typed` is False when that kept an agent's input out."""

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
    """One descriptor comes along: the listening socket."""

    id: int
    descriptors: int = 1


@dataclass(frozen=True, slots=True)
class Healthy:
    """`lag_ms` is the longest pass of the keeper's loop since health was last asked for."""

    id: int
    rss_bytes: int
    descriptors: int
    terminals: int
    lag_ms: float


# Keeper → daemon: notices.


@dataclass(frozen=True, slots=True)
class Kept:
    """Everything the keeper knows of one terminal; what a new daemon adopts."""

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
    """Somebody attached has typed; `data` is empty when the terminal hid it. `size` is how far the output was then."""

    terminal: str
    data: bytes
    secret: bool
    size: int


@dataclass(frozen=True, slots=True)
class Resized:
    """Somebody attached has another window size now."""

    terminal: str
    cols: int
    rows: int


@dataclass(frozen=True, slots=True)
class Attached:
    """The first window on a terminal has come, or the last has gone."""

    terminal: str
    attached: bool


@dataclass(frozen=True, slots=True)
class Grown:
    terminal: str
    size: int


@dataclass(frozen=True, slots=True)
class Unrecorded:
    """Output after `size` is read and thrown away, because of `why` (a full disk)."""

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
    """Nothing of the terminal's tree is alive any more, but for `report.left`."""

    terminal: str
    report: Report
    size: int


@dataclass(frozen=True, slots=True)
class Replaced:
    """Another daemon has taken this one's place; the connection ends here."""


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
    """The sentence for a pair whose versions differ."""
    if theirs == PROTOCOL:
        return None
    return (
        f"The running keeper and this daemon are of different versions of Handrail (protocol {PROTOCOL} here, {theirs} there). "
        "Run `handrail down`, which ends the terminals it keeps, then `handrail up`."
    )


class RefusalError(Exception):
    """A request that cannot be met. Its sentence and its code are the answer; see `protocol.Failed`."""

    def __init__(self, why: str, code: str = "") -> None:
        super().__init__(why)
        self.code = code
