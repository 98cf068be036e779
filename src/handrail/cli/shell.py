"""`handrail shell` for those who ask how it is used, or for its profile; what opens a shell is the door's.

Owns the options as they are described. Does not know terminals.
"""

from pathlib import Path
from typing import Annotated, NoReturn

import typer

from handrail.cli.help import verb
from handrail.cli.settings_file import Editor


def add_to(app: typer.Typer) -> None:
    verb(
        app,
        "shell",
        "handrail shell",
        "handrail shell -- make watch",
        "handrail shell --keep --name server -- npm run dev",
        "handrail shell --install-profile vscode",
        "handrail shell --install-profile vscode --undo",
        context_settings={"allow_interspersed_args": False},
    )(shell)


def shell(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="-- CMD", help="Run this instead of your shell.")
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Go on when this window is closed, instead of ending.")
    ] = False,
    name: Annotated[str, typer.Option(help="What it is called in lists.")] = "",
    or_plain: Annotated[
        bool, typer.Option("--or-plain", help="Be the plain shell when Handrail cannot keep it.")
    ] = False,
    install_profile: Annotated[
        Editor | None, typer.Option(help="Make it the default terminal of this editor instead.")
    ] = None,
    undo: Annotated[bool, typer.Option("--undo", help="With --install-profile: take that back.")] = False,
    only_print: Annotated[
        bool, typer.Option("--print", help="With --install-profile: only show the change.")
    ] = False,
    settings: Annotated[
        Path | None, typer.Option(help="With --install-profile: the editor's settings.json.")
    ] = None,
) -> None:
    """Your own shell in a terminal that Handrail keeps: agents may read it, and it survives the daemon.

    Everything is as without it: size, colours, keys, environment. It ends with the exit status of the shell, or by the
    signal that ended it; 3 says that Handrail could not be started, 127 that there is no such command.
    """
    if install_profile is None:
        if undo or only_print or settings:
            raise typer.BadParameter("--undo, --print and --settings belong to --install-profile.")
        _open(command or [], keep, name, or_plain)
    from handrail.cli import profile  # noqa: PLC0415

    if command or keep or name or or_plain:
        raise typer.BadParameter("--install-profile opens no shell; leave the other options out.")
    act = profile.undo if undo else profile.install
    act(install_profile, settings, only_print=only_print)


def _open(command: list[str], keep: bool, name: str, or_plain: bool) -> NoReturn:
    from handrail.door import shell as door  # noqa: PLC0415

    raise typer.Exit(door.run(door.Wish(keep=keep, name=name, or_plain=or_plain, command=command)))
