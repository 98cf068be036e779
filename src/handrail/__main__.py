"""The program `handrail`: to a door or to our own agent at once when one is launched, else to the commands for people.

Owns that choice alone. Imports nothing before it is made, because what a program launches must be up in a moment.
"""

import sys


def main() -> int:
    """Run what the first argument names; returns the exit status."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["mcp"]:
        from handrail.door import mcp_stdio  # noqa: PLC0415

        return mcp_stdio.main(arguments[1:])
    if arguments[:1] == ["agent"]:
        from handrail.own_agent import __main__  # noqa: PLC0415

        return __main__.main(arguments[1:])
    if arguments[:1] == ["shell"]:
        from handrail.door import shell  # noqa: PLC0415

        status = shell.main(arguments[1:])
        if status is not None:
            return status
    from handrail.hardening import hide_memory  # noqa: PLC0415

    hide_memory()
    from handrail.cli.command_line import run  # noqa: PLC0415

    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
