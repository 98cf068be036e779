"""`handrail doctor`: the checks of this installation, in order, with a fix for each problem.

The checks only read. They work with and without a running daemon.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from handrail.doctor._client_checks import check_clients
from handrail.doctor.checks import (
    Finding,
    back_up,
    check_config,
    check_disk,
    check_journal,
    check_own_agent,
    check_page,
    check_permissions,
    check_processes,
    check_ripgrep,
    check_rule_tables,
)
from handrail.doctor.installation import (
    check_installation,
    check_ptrace,
    check_search_path,
    harden_commands,
)
from handrail.paths import Places

__all__ = ["Finding", "back_up", "examine", "harden_commands"]


def examine(places: Places) -> Iterator[Finding]:
    """Run all checks, the most common problems first; yields each finding immediately, because a long journal
    takes time."""
    yield from check_processes(places)
    yield check_config(places)
    yield from check_permissions(places)
    yield check_disk(places)
    yield check_page(Path(__file__).parent.parent)
    yield check_ripgrep()
    yield check_own_agent(places, os.environ)
    yield from check_clients(places)
    yield check_installation()
    yield check_search_path(os.environ)
    yield from check_ptrace()
    yield check_journal(places)
    yield check_rule_tables(places)


EXPORTS = {
    "checks": "Finding check_rules variable_sources",
}
"""Public names by module: other packages import only these. An empty entry exports the module itself."""
