"""What ending processes really did, in the words of a receipt."""

from dataclasses import replace

from handrail.store.value import ProcessSeen, Receipt, SignalSent
from handrail.terminal.terminal import Report


def with_report(receipt: Receipt, report: Report) -> Receipt:
    """A receipt that also says how a tree was ended."""
    return replace(
        receipt,
        signals=tuple(SignalSent(signal=item.signal, after_ms=int(item.at_ms)) for item in report.signals),
        processes_stopped=tuple(ProcessSeen(pid=item.pid, name=item.name) for item in report.stopped),
        processes_left=tuple(ProcessSeen(pid=item.pid, name=item.name) for item in report.left),
    )
