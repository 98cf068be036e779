"""Entry point of `handrail`: dispatch to a door, to our own agent, to the daemon, or to the command line.

Imports nothing before the dispatch: clients launch `mcp`, `hook`, `agent` and `shell`, doors launch the daemon, and all wait for the start.
"""

import sys


def main() -> int:
    """Run the subcommand in the first argument and return the exit status."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["mcp"]:
        from handrail.door import mcp_stdio  # noqa: PLC0415

        return mcp_stdio.main(arguments[1:])
    if arguments[:1] == ["hook"]:
        from handrail.door import hook  # noqa: PLC0415

        return hook.main(arguments[1:])
    if arguments[:1] == ["agent"]:
        from handrail.own_agent import __main__  # noqa: PLC0415

        return __main__.main(arguments[1:])
    if arguments[:1] == ["shell"]:
        from handrail.door import shell  # noqa: PLC0415

        status = shell.main(arguments[1:])
        if status is not None:
            return status
    if arguments[:2] == ["up", "--foreground"]:
        from handrail.daemon import start  # noqa: PLC0415

        status = start.main(arguments)
        if status is not None:
            return status
    from handrail.hardening import hide_memory, ignore_plugins  # noqa: PLC0415

    hide_memory()
    ignore_plugins()
    from handrail.cli.command_line import run  # noqa: PLC0415

    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
