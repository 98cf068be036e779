"""The wire to people's programs, about terminals: what they show, and what can be done to them.

Owns these JSON shapes, the text frames of an attached socket among them. Times are milliseconds since 1970, offsets
count bytes of output since the terminal began. It does not know routes, nor who may see what.

Domain into wire: how terminals look to people's programs.
"""

import base64
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from handrail.server.api.models import Wire
from handrail.store.terminals import TerminalRecord, TypedRecord
from handrail.store.values import Owner, ProcessSeen, Sure, TerminalKind
from handrail.terminal.output.output_search import Found
from handrail.terminal.output.paging import Reading
from handrail.terminal.output.screen import Shown
from handrail.terminal.output.tail import Tail
from handrail.terminal.shell_marks import Command, Marks
from handrail.terminal.terminal import Asks, Report, Taken, Terminal

MOST_TYPED = 200_000
"""Characters in one input: below what the keeper holds for a program that does not read."""
Side = Annotated[int, Field(ge=1, le=1000)]
"""Columns or rows: more than any screen has, and few enough to be drawn."""
Line = Annotated[str, Field(max_length=100_000)]
"""One argument or variable; the kernel takes no more than 128 KiB."""


class AsksView(Wire):
    """It waits for input."""

    prompt: str
    """Empty for whoever may not see what terminals show."""
    sure: Sure
    secret: bool
    """It hides what is typed: only a person may answer, and it is recorded nowhere."""
    since: int


class TakenView(Wire):
    """A person has taken it over: agents cannot type into it."""

    by: str
    holds: bool
    """Until it is released; otherwise only while the person types."""


class TerminalView(Wire):
    """A watched process."""

    id: str
    seq: int
    """Where it was opened in the journal; `before` in a listing goes on from there."""
    name: str
    of: TerminalKind
    owner: Owner | None
    """None in the records of old, when every terminal was a call's."""
    call_id: str | None
    shell: str
    """The program; empty in the records of old."""
    argv: tuple[str, ...]
    size: tuple[int, int]
    """Columns and rows."""
    running: bool
    pid: int
    exit_code: int | None
    signal: str | None
    lost: bool
    """It ended with the keeper, so its exit is unknown."""
    cwd: str
    """Where it is now; of an ended one, where it began."""
    busy: bool
    """Another program than its own has the keyboard."""
    foreground: str | None
    """The name of the program that has the keyboard; None when that is not known."""
    asks: AsksView | None
    taken: TakenView | None
    attached: bool
    """A window of `handrail shell` is on it, and owns its size."""
    started_at: int
    ended_at: int | None
    last_output_at: int | None
    bytes: int
    """All it has printed: the offset after the last byte."""
    first: int
    """The oldest offset still kept."""
    lines_dropped: int
    """Lines before `first`, dropped to keep within the limits."""
    forgotten: bool
    """Its output was deleted, to keep within what is kept of ended terminals."""


class CommandView(Wire):
    """One command line in a terminal, as the shell's own marks tell of it."""

    line: str | None
    begin: int
    """The offset of its prompt."""
    output: int
    """The offset at which its output begins."""
    end: int | None
    """The offset at which it ended; None while it runs."""
    exit_code: int | None
    cwd: str | None
    started_at: int | None
    duration_ms: int | None


class TypedView(Wire):
    """Something that somebody typed."""

    at: int
    by: str
    person: bool
    text: str | None
    """None when the terminal did not show it: what is hidden there is recorded nowhere."""
    offset: int
    """How far its output had come."""


class TerminalDetail(TerminalView):
    """Everything about one terminal but its output."""

    commands: list[CommandView]
    """The last 1,000, oldest first; none when its program makes no marks."""
    at_prompt: bool | None
    """Whether its shell waits for a command; None when its program makes no marks."""
    typed: list[TypedView]
    """The last 200, oldest first."""
    nonce: str
    """What the shell's own marks carry, so that output cannot forge them; empty when it makes none."""


class OutputView(Wire):
    """A part of what a terminal printed, or its screen."""

    text: str
    """For `text` and `screen`: escapes resolved, a screen's rows joined by newlines. Empty for `raw`."""
    base64: str
    """For `raw`: the bytes as they were. Empty otherwise."""
    start: int
    next: int
    """Ask for `after` this to go on."""
    end: int
    first: int
    lines_dropped: int
    left_out: int
    """Bytes between what was asked for and `start`, because they are no longer kept or were too many."""
    cursor: tuple[int, int] | None = None
    """Column and row on a screen, from 0."""
    alternate: bool = False
    """A screen that a full-screen program has put up over the output."""
    title: str = ""


class MatchView(Wire):
    """A line that matches."""

    line_number: int
    offset: int
    text: str
    before: list[str]
    after: list[str]


class FoundView(Wire):
    """What a search found."""

    matches: list[MatchView]
    more: bool
    """There were more than asked for."""


class Closed(TerminalView):
    """A terminal that was closed, and what that ended."""

    message: str
    stopped: list[ProcessSeen]
    left: list[ProcessSeen]
    """What could not be ended."""
    more: int
    """Stopped processes beyond those listed."""


class AttachState(Wire):
    """A text frame to whoever is attached: first of all, and whenever the terminal has changed.

    The first one also says where the bytes that follow begin; the others leave that out.
    """

    state: TerminalView
    sizes: bool
    """Whether this page may set the size now: it was typed in last, or no other was; and no window is on it."""
    begin: int | None = None
    """The offset of the first byte that will be sent."""
    alternate: bool | None = None
    """Whether the alternate screen was on at `begin`; None when that is not known."""


class AttachRefused(Wire):
    """A text frame: something that was sent on the socket was not done, or not all of it."""

    refused: str
    what: Literal["input", "size", "message"]


class AttachSize(Wire):
    """The only text frame that whoever is attached may send: columns and rows. Keys go in binary frames."""

    size: tuple[Side, Side]


class OpenBody(Wire):
    """A terminal of the person's own."""

    of: Literal["tracked", "shell"] = "tracked"
    """A `shell` has its window elsewhere: it gets exactly the environment given."""
    name: Annotated[str, Field(max_length=200)] = ""
    shell: Annotated[str | None, Field(min_length=1, max_length=4096)] = None
    """A path, or a name to be found on the PATH; the person's own unless given."""
    args: Annotated[tuple[Line, ...], Field(max_length=1000)] = ()
    command: Annotated[tuple[Line, ...], Field(max_length=1000)] = ()
    """A program with its arguments, instead of a shell."""
    cwd: Annotated[str | None, Field(min_length=1, max_length=4096)] = None
    """The home directory unless given."""
    env: Annotated[dict[str, Line], Field(max_length=10_000)] = Field(default_factory=dict)
    cols: Side = 120
    rows: Side = 40
    keep: bool = False
    """A `shell` may live without a window; otherwise it is ended when none comes."""


class InputBody(Wire):
    """What to type: the text, then Enter, then the keys."""

    text: Annotated[str | None, Field(max_length=MOST_TYPED)] = None
    newline: bool = True
    """Press Enter after the text, when there is a text."""
    keys: Annotated[tuple[Annotated[str, Field(max_length=50)], ...], Field(max_length=1000)] = ()
    """Named keys: `ctrl-c`, `up`, `enter`."""


class SizeBody(Wire):
    """A window's size."""

    cols: Side
    rows: Side


SOCKET_SHAPES = (
    *(AttachState, AttachRefused, AttachSize),
    *(OutputView,),
)
"""What no route returns or takes, for the description."""


def terminal_view(record: TerminalRecord, live: Terminal | None, tail: Tail) -> TerminalView:
    argv = live.argv if live else record.argv
    seen = live.seen if live and live.exit is None else None
    left = live.exit if live else None
    forgotten = record.forgotten_at is not None
    return TerminalView(
        id=record.id,
        seq=record.opened_seq,
        name=record.name,
        of=record.of,
        owner=record.owner,
        call_id=record.call,
        shell=argv[0] if argv else "",
        argv=argv,
        size=live.size if live else (record.cols, record.rows),
        running=live is not None and live.exit is None,
        pid=record.pid,
        exit_code=left.code if left else record.exit_code,
        signal=left.signal if left else record.signal,
        lost=left.lost is not None if left else record.lost,
        cwd=(seen and seen.cwd) or record.cwd,
        busy=seen is not None and seen.busy,
        foreground=seen.foreground.name if seen and seen.foreground else None,
        asks=_asks(live.asks) if live and live.asks else None,
        taken=_taken(live.taken) if live and live.taken else None,
        attached=live is not None and live.exit is None and live.attached,
        started_at=record.opened_at,
        ended_at=record.ended_at,
        last_output_at=_ms((live and live.last_output_at) or tail.last_at),
        bytes=(record.bytes or 0) if forgotten else tail.end,
        first=(record.bytes or 0) if forgotten else tail.first,
        lines_dropped=0 if forgotten else tail.lines_dropped,
        forgotten=forgotten,
    )


def terminal_detail(
    view: TerminalView, nonce: str, marks: Marks | None, typed: Sequence[TypedRecord]
) -> TerminalDetail:
    return TerminalDetail(
        **view.__dict__,
        commands=[_command(command) for command in marks.commands] if marks else [],
        at_prompt=marks.at_prompt if marks and view.running else None,
        typed=[
            TypedView(at=one.at, by=one.by, person=one.person, text=one.text, offset=one.offset)
            for one in typed
        ],
        nonce=nonce,
    )


def closed_view(view: TerminalView, report: Report | None, message: str) -> Closed:
    return Closed(
        **view.__dict__,
        message=message,
        stopped=[ProcessSeen(pid=one.pid, name=one.name) for one in (report.stopped if report else ())],
        left=[ProcessSeen(pid=one.pid, name=one.name) for one in (report.left if report else ())],
        more=report.more if report else 0,
    )


def output_view(reading: Reading) -> OutputView:
    return OutputView(
        text="" if isinstance(reading.data, bytes) else reading.data,
        base64=base64.b64encode(reading.data).decode() if isinstance(reading.data, bytes) else "",
        start=reading.start,
        next=reading.next,
        end=reading.end,
        first=reading.first,
        lines_dropped=reading.lines_dropped,
        left_out=reading.left_out,
    )


def screen_view(shown: Shown, tail: Tail) -> OutputView:
    end = tail.end
    return OutputView(
        text="\n".join(shown.lines),
        base64="",
        start=end,
        next=end,
        end=end,
        first=tail.first,
        lines_dropped=tail.lines_dropped,
        left_out=0,
        cursor=shown.cursor,
        alternate=shown.alternate,
        title=shown.title,
    )


def found_view(found: Found) -> FoundView:
    return FoundView(
        matches=[
            MatchView(
                line_number=match.line_number,
                offset=match.offset,
                text=match.text,
                before=list(match.before),
                after=list(match.after),
            )
            for match in found.matches
        ],
        more=found.more,
    )


def _command(command: Command) -> CommandView:
    return CommandView(
        line=command.line,
        begin=command.begin,
        output=command.output,
        end=command.end,
        exit_code=command.exit_code,
        cwd=command.cwd,
        started_at=_ms(command.started_at),
        duration_ms=command.duration_ms,
    )


def _asks(asks: Asks) -> AsksView:
    return AsksView(prompt=asks.prompt, sure=asks.sure, secret=asks.secret, since=round(asks.since * 1000))


def _taken(taken: Taken) -> TakenView:
    return TakenView(by=taken.by, holds=taken.holds)


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)
