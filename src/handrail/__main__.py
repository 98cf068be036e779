"""The program `handrail`: to the door at once when a client launches one, else to the commands for people.

Owns that choice alone. Imports nothing before it is made, because a door must be up in a moment.
"""

import sys


def main() -> int:
    """Run what the first argument names; returns the exit status."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["mcp"]:
        from handrail.door import stdio  # noqa: PLC0415

        return stdio.main(arguments[1:])
    from handrail import cli  # noqa: PLC0415

    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
