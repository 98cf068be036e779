"""What ending processes really did, in the words of a receipt."""

from handrail.gate.tool import ReceiptFacts
from handrail.keeper.protocol import Report
from handrail.store.value import ProcessSeen, SignalSent


def facts_of(report: Report) -> ReceiptFacts:
    """How a process tree was ended."""
    return ReceiptFacts(
        signals=tuple(SignalSent(signal=item.signal, after_ms=int(item.at_ms)) for item in report.signals),
        processes_stopped=tuple(ProcessSeen(pid=item.pid, name=item.name) for item in report.stopped),
        processes_left=tuple(ProcessSeen(pid=item.pid, name=item.name) for item in report.left),
    )
