"""Domain into wire: how terminals look to people's programs.

Pure translations. A terminal that lives knows more than its record; one that ended is read from the record alone.
"""

from handrail.server.terminal_wire import TerminalView
from handrail.store.records import TerminalRecord
from handrail.terminal.terminal import Terminal


def terminal_view(record: TerminalRecord, live: Terminal | None) -> TerminalView:
    return TerminalView(
        id=record.id,
        seq=record.opened_seq,
        name=record.name,
        of="command",
        owner=None,
        call_id=record.call,
        shell=live.argv[0] if live else "",
        argv=live.argv if live else (),
        size=live.size if live else (80, 24),
        running=live is not None and live.exit is None,
        pid=record.pid,
        exit_code=record.exit_code,
        signal=record.signal,
        lost=record.lost,
        cwd=record.cwd,
        busy=False,
        foreground=None,
        asks=None,
        taken=None,
        attached=False,
        started_at=record.opened_at,
        ended_at=record.ended_at,
        last_output_at=None,
        bytes=live.tail.end if live else record.bytes or 0,
        first=live.tail.first if live else 0,
        lines_dropped=0,
        forgotten=False,
    )
