"""The commands for people: what runs, what waits, and a person's verbs about it.

Owns the names, options, tables and exit codes of `handrail …`. It speaks to the daemon like any other client and
knows nothing of what is behind its routes. Nothing here is imported by a door.
"""

import sys


def main() -> int:
    """Run the command that the arguments name; the exit status: 0 ok, 1 failed, 2 usage, 3 no daemon."""
    from handrail.hardening import hide_memory  # noqa: PLC0415

    hide_memory()
    from handrail.cli.app import run  # noqa: PLC0415

    return run(sys.argv[1:])
