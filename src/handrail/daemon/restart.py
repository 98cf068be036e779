"""The start of a daemon after another: calls, terminals and threads are restored, and what changed is recorded."""

import os
from dataclasses import asdict

from handrail import __version__
from handrail.daemon.terminal_events import TerminalEvents
from handrail.gate.gate import Gate
from handrail.gate.restore import restore
from handrail.server.api.daemon_models import Restart
from handrail.server.api.models import now_ms
from handrail.store.events import DaemonStarted
from handrail.store.records import Records
from handrail.store.threads.threads import Threads
from handrail.store.values import Result
from handrail.terminal.survivors import Survivors
from handrail.terminal.terminals import Terminals
from handrail.tools.commands.command_output import as_result, read_output


async def restore_all(
    gate: Gate,
    records: Records,
    terminals: Terminals,
    terminal_events: TerminalEvents,
    threads: Threads,
    survivors: Survivors,
    *,
    crashed: bool,
) -> Restart:
    """Restore everything that the previous daemon left, and record the start."""

    def output_of(terminal: str) -> Result:
        return as_result(read_output(terminals.tail(terminal)), terminal)

    terminals.orphaned = survivors.look_for
    lost = await terminal_events.catch_up(records, terminals)
    survivors.look_for(lost)
    await threads.restore()
    restored = await restore(gate, records, output_of)
    event = DaemonStarted(
        version=__version__,
        pid=os.getpid(),
        crashed=crashed,
        interrupted=restored.interrupted,
        approvals_kept=restored.approvals_kept,
        terminals_adopted=sum(not terminal.pipes for terminal in terminals.live.values()),
    )
    seq = gate.journal.append(event)
    await gate.journal.committed(seq)
    facts = asdict(event)
    return Restart(
        seq=seq, at=now_ms(), **{name: facts[name] for name in Restart.model_fields if name in facts}
    )
