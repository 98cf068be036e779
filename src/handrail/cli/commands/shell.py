"""`handrail shell`: its options. `door.shell` opens the shell."""

from typing import Annotated

import typer

from handrail.cli.command_help import add_command


def add_to(app: typer.Typer) -> None:
    add_command(
        app,
        "shell",
        "handrail shell",
        "handrail shell -- make watch",
        "handrail shell --keep --name server -- npm run dev",
        context_settings={"allow_interspersed_args": False},
    )(shell)


def shell(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="-- CMD", help="Run this command instead of your shell.")
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep running after this window is closed.")] = False,
    name: Annotated[str, typer.Option(help="Name shown in lists.")] = "",
    or_plain: Annotated[
        bool, typer.Option("--or-plain", help="Start a plain shell if Handrail is not available.")
    ] = False,
) -> None:
    """Open your shell in a terminal that agents can read. It survives restarts of the daemon.

    Size, colours, keys and environment are those of your own terminal. The exit status is that of the shell, or it ends
    with the same signal. 3: Handrail could not be started. 127: the command was not found.
    """
    from handrail.door import shell as door  # noqa: PLC0415

    raise typer.Exit(
        door.run(door.ShellRequest(keep=keep, name=name, or_plain=or_plain, command=command or []))
    )
