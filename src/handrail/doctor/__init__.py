"""The doctor: what is wrong with Handrail on this machine, and the command that mends it.

Owns what is examined and in which order. It reads only; it works with and without a daemon, and does not know how
findings are shown.
"""

from pathlib import Path

from handrail.doctor.finding import Finding
from handrail.doctor.journal import back_up as back_up
from handrail.doctor.journal import journal
from handrail.doctor.machine import configuration, disk, page, private, ripgrep
from handrail.doctor.processes import processes
from handrail.places import Places


def examine(places: Places) -> list[Finding]:
    """Everything, from what is most likely to be asked for."""
    return [
        *processes(places),
        configuration(places),
        *private(places),
        journal(places),
        disk(places),
        page(Path(__file__).parent.parent),
        ripgrep(),
    ]
