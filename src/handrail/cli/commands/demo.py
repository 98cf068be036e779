"""`handrail demo`: open the page, then run the scripted agent of `handrail.demo`."""

from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from handrail.cli.client import Link, reach
from handrail.cli.command_help import add_command
from handrail.cli.commands.lifecycle import show_page
from handrail.cli.failure import Failure
from handrail.cli.render.output import note, say


def add_to(app: typer.Typer) -> None:
    add_command(app, "demo", "handrail demo", "handrail demo --minutes 2 --no-open")(demo)


def demo(
    minutes: Annotated[float, typer.Option(min=0.05, max=60, help="Stop after this many minutes.")] = 10.0,
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open the page.")] = False,
    folder: Annotated[Path | None, typer.Option(hidden=True)] = None,
) -> None:
    """Run a scripted agent that shows what Handrail does. It hangs, asks, edits, floods and shares a terminal."""
    from handrail.demo.story import run_story  # noqa: PLC0415

    with reach("read", start=True) as link:
        say(f"Handrail runs at {link.url}.")
    if folder is not None:  # started by the page, which trusted the folder and cleans up
        run_story(minutes * 60, say, lambda _: True, folder)
        return
    with ExitStack() as stack:
        # Before the demo agent connects: a process that has launched an agent is no longer accepted as a person.
        try:
            person = stack.enter_context(reach("person"))
            show_page(person, browse=not no_open)
        except Failure as refused:
            person = None
            note(str(refused))
        folders: list[str] = []
        open_calls = run_story(minutes * 60, say, partial(_trust_folder, person, folders))
        if person is not None:
            _cancel_calls(person, open_calls)
            _distrust_folders(person, folders)


def _trust_folder(person: Link | None, folders: list[str], folder: Path) -> bool:
    """Trust the demo's own folder, as `handrail trust` does, and remember it; without a person it stays untrusted."""
    if person is None:
        return False
    try:
        person.post("folders", "trust", body={"folder": str(folder), "config": None})
    except Failure as refused:
        note(str(refused))
        return False
    folders.append(str(folder))
    return True


def _distrust_folders(person: Link, folders: list[str]) -> None:
    for folder in folders:
        with suppress(Failure):
            person.post("folders", "distrust", body={"folder": folder})


def _cancel_calls(person: Link, calls: list[str]) -> None:
    """Cancel the calls that the demo left open, so that their approvals leave the inbox."""
    for call in calls:
        with suppress(Failure):
            person.post("calls", call, "cancel")
