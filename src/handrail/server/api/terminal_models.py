"""JSON models of terminals and of the attach socket's text frames, and the conversion to them.

Times are milliseconds since 1970. Offsets count the bytes of output since the terminal started.
"""

import base64
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from handrail.server.api.models import Wire
from handrail.store.terminals import TerminalRecord, TypedRecord
from handrail.store.values import Certainty, Owner, ProcessSeen, TerminalKind
from handrail.terminal.output.output_search import SearchResult
from handrail.terminal.output.paging import OutputPage
from handrail.terminal.output.screen import RenderedScreen
from handrail.terminal.output.tail import Tail
from handrail.terminal.shell_marks import Command, Marks
from handrail.terminal.terminal import InputRequest, PersonControl, Report, Terminal

MOST_TYPED = 200_000
"""Characters in one input. Below the keeper's buffer for a program that does not read."""
Side = Annotated[int, Field(ge=1, le=1000)]
"""Columns or rows. Bounds the memory for a rendered screen."""
Line = Annotated[str, Field(max_length=100_000)]
"""One argument or variable. The kernel accepts at most 128 KiB."""


class AsksView(Wire):
    """The terminal waits for input."""

    prompt: str
    """Empty for clients that may not see terminal output."""
    sure: Certainty
    secret: bool
    """Echo is off: only a person may answer, and the input is not recorded."""
    since: int


class TakenView(Wire):
    """A person has taken over: agents cannot type into the terminal."""

    by: str
    holds: bool
    """True until released; False only while the person types."""


class TerminalView(Wire):
    """A watched process."""

    id: str
    seq: int
    """Journal position at which it was opened. Pass it as `before` to get the next page of a list."""
    name: str
    of: TerminalKind
    owner: Owner | None
    """None in old records, when every terminal belonged to a call."""
    call_id: str | None
    shell: str
    """The program; empty in old records."""
    argv: tuple[str, ...]
    size: tuple[int, int]
    """Columns and rows."""
    running: bool
    pid: int
    exit_code: int | None
    signal: str | None
    lost: bool
    """It ended together with the keeper; its exit status is unknown."""
    agent_gone: bool
    """It runs on, though the hosted agent that started it ended with an earlier daemon."""
    cwd: str
    """Current directory; the initial one if the terminal has ended."""
    busy: bool
    """A child program is in the foreground."""
    foreground: str | None
    """The name of the foreground program; None if unknown."""
    asks: AsksView | None
    taken: TakenView | None
    attached: bool
    """A `handrail shell` window is attached, and sets the size."""
    started_at: int
    ended_at: int | None
    last_output_at: int | None
    bytes: int
    """Total output: the offset after the last byte."""
    first: int
    """The oldest offset still kept."""
    lines_dropped: int
    """Lines before `first`, dropped by the size limits."""
    forgotten: bool
    """Its output was deleted by the retention of ended terminals."""


class CommandView(Wire):
    """One command in a terminal, as reported by the shell integration."""

    line: str | None
    begin: int
    """Offset of its shell prompt."""
    output: int
    """Offset of the start of its output."""
    end: int | None
    """Offset of its end; None while it runs."""
    exit_code: int | None
    cwd: str | None
    started_at: int | None
    duration_ms: int | None


class TypedView(Wire):
    """One recorded input."""

    at: int
    by: str
    person: bool
    text: str | None
    """None if echo was off: such input is not recorded."""
    offset: int
    """Output offset at the time of the input."""


class TerminalDetail(TerminalView):
    """Everything about one terminal except its output."""

    commands: list[CommandView]
    """The last 1,000, oldest first. Empty without shell integration."""
    at_prompt: bool | None
    """Whether the shell waits for a command. None without shell integration."""
    typed: list[TypedView]
    """The last 200, oldest first."""
    nonce: str
    """Secret in the shell integration's escape sequences, so that output cannot forge them. Empty without it."""


class OutputView(Wire):
    """A range of a terminal's output, or its screen."""

    text: str
    """For modes `text` and `screen`: without escape sequences; screen rows are joined by newlines. Empty for `raw`."""
    base64: str
    """For mode `raw`: the unchanged bytes. Else empty."""
    start: int
    next: int
    """Pass as `after` to continue."""
    end: int
    first: int
    lines_dropped: int
    left_out: int
    """Bytes skipped before `start`, because they were deleted or exceed the limit."""
    cursor: tuple[int, int] | None = None
    """Column and row on the screen, from 0."""
    alternate: bool = False
    """The alternate screen is on: a full-screen program runs."""
    title: str = ""


class MatchView(Wire):
    """A matching line, with context."""

    line_number: int
    offset: int
    text: str
    before: list[str]
    after: list[str]


class FoundView(Wire):
    """Matches of a search in a terminal's output."""

    matches: list[MatchView]
    more: bool
    """There are more matches than requested."""


class Closed(TerminalView):
    """A closed terminal, and the processes that were stopped."""

    message: str
    stopped: list[ProcessSeen]
    left: list[ProcessSeen]
    """Processes that could not be stopped."""
    more: int
    """Stopped processes beyond those listed."""


class AttachState(Wire):
    """Text frame to an attached client: sent first, and after every change of the terminal.

    Only the first frame has `begin` and `alternate`.
    """

    state: TerminalView
    sizes: bool
    """Whether this client may set the size: no window is attached, and no other page was typed in last."""
    begin: int | None = None
    """Offset of the first byte that follows."""
    alternate: bool | None = None
    """Whether the alternate screen was on at `begin`; None if unknown."""


class AttachRefused(Wire):
    """Text frame: an input, size or message from the client was refused, in whole or in part."""

    refused: str
    what: Literal["input", "size", "message"]


class AttachSize(Wire):
    """The only text frame that a client may send: columns and rows. Keys go in binary frames."""

    size: tuple[Side, Side]


class OpenBody(Wire):
    """A terminal for a person to open."""

    of: Literal["tracked", "shell"] = "tracked"
    """A `shell` is shown in the person's own terminal window, and gets exactly the environment in `env`."""
    name: Annotated[str, Field(max_length=200)] = ""
    shell: Annotated[str | None, Field(min_length=1, max_length=4096)] = None
    """A path, or a name on the PATH. Default: the person's shell."""
    args: Annotated[tuple[Line, ...], Field(max_length=1000)] = ()
    command: Annotated[tuple[Line, ...], Field(max_length=1000)] = ()
    """A program with arguments, instead of a shell."""
    cwd: Annotated[str | None, Field(min_length=1, max_length=4096)] = None
    """Default: the home directory."""
    env: Annotated[dict[str, Line], Field(max_length=10_000)] = Field(default_factory=dict)
    cols: Side = 120
    rows: Side = 40
    keep: bool = False
    """Keep a `shell` running without a window. Else it is stopped if no window attaches."""


class InputBody(Wire):
    """What to type: the text, then Enter, then the keys."""

    text: Annotated[str | None, Field(max_length=MOST_TYPED)] = None
    newline: bool = True
    """Press Enter after the text, if there is one."""
    keys: Annotated[tuple[Annotated[str, Field(max_length=50)], ...], Field(max_length=1000)] = ()
    """Named keys: `ctrl-c`, `up`, `enter`."""


class CloseBody(Wire):
    """Which terminals to close."""

    which: Literal["agent_gone"]
    """Those that run on without the agent that started them."""


class SizeBody(Wire):
    """A window's size."""

    cols: Side
    rows: Side


SOCKET_SHAPES = (
    *(AttachState, AttachRefused, AttachSize),
    *(OutputView,),
)
"""Models that no route uses, to be added to the OpenAPI document."""


def terminal_view(record: TerminalRecord, live: Terminal | None, tail: Tail) -> TerminalView:
    argv = live.argv if live else record.argv
    seen = live.seen if live and live.exit is None else None
    ending = live.exit if live else None
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
        exit_code=ending.code if ending else record.exit_code,
        signal=ending.signal if ending else record.signal,
        lost=ending.lost is not None if ending else record.lost,
        agent_gone=live is not None and live.exit is None and live.agent_gone,
        cwd=(seen and seen.cwd) or record.cwd,
        busy=seen is not None and seen.busy,
        foreground=seen.foreground.name if seen and seen.foreground else None,
        asks=_asks_view(live.asks) if live and live.asks else None,
        taken=_taken_view(live.taken) if live and live.taken else None,
        attached=live is not None and live.exit is None and live.attached,
        started_at=record.opened_at,
        ended_at=record.ended_at,
        last_output_at=_to_ms((live and live.last_output_at) or tail.last_at),
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
        commands=[_command_view(command) for command in marks.commands] if marks else [],
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
        stopped=[
            ProcessSeen(pid=process.pid, name=process.name) for process in (report.stopped if report else ())
        ],
        left=[ProcessSeen(pid=process.pid, name=process.name) for process in (report.left if report else ())],
        more=report.more if report else 0,
    )


def output_view(reading: OutputPage) -> OutputView:
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


def screen_view(shown: RenderedScreen, tail: Tail) -> OutputView:
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


def found_view(result: SearchResult) -> FoundView:
    return FoundView(
        matches=[
            MatchView(
                line_number=match.line_number,
                offset=match.offset,
                text=match.text,
                before=list(match.before),
                after=list(match.after),
            )
            for match in result.matches
        ],
        more=result.more,
    )


def _command_view(command: Command) -> CommandView:
    return CommandView(
        line=command.line,
        begin=command.begin,
        output=command.output,
        end=command.end,
        exit_code=command.exit_code,
        cwd=command.cwd,
        started_at=_to_ms(command.started_at),
        duration_ms=command.duration_ms,
    )


def _asks_view(asks: InputRequest) -> AsksView:
    return AsksView(prompt=asks.prompt, sure=asks.sure, secret=asks.secret, since=round(asks.since * 1000))


def _taken_view(taken: PersonControl) -> TakenView:
    return TakenView(by=taken.by, holds=taken.holds)


def _to_ms(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)
