"""Domain into wire: how terminals look to people's programs.

Pure translations. A terminal that lives knows more than its record; one that ended is read from the record and its
tail. Who may see what is decided elsewhere (visible.py).
"""

import base64
from collections.abc import Sequence

from handrail.keeper.protocol import Report
from handrail.server.terminal_wire import (
    AsksView,
    Closed,
    CommandView,
    FoundView,
    MatchView,
    OutputView,
    TakenView,
    TerminalDetail,
    TerminalView,
    TypedView,
)
from handrail.store.records import TerminalRecord, TypedRecord
from handrail.store.value import ProcessSeen
from handrail.terminal.output.output_search import Found
from handrail.terminal.output.paging import Reading
from handrail.terminal.output.screen import Shown
from handrail.terminal.output.tail import Tail
from handrail.terminal.shell_marks import Command, Marks
from handrail.terminal.terminal import Asks, Taken, Terminal


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
