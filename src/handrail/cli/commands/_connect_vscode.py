"""`handrail connect vscode`: install the extension in the editors that are found, or remove it.

The extension registers Handrail's MCP server over HTTP. No entry for a server on stdio is written: with it the editor would
launch a door, and its extension host would count as an agent.
"""

from __future__ import annotations

from collections.abc import Sequence

from handrail.cli.client import reach
from handrail.cli.failure import Failure
from handrail.cli.interactive.keyboard import confirm
from handrail.cli.render.output import note, say
from handrail.clients.client_facts import Machine
from handrail.clients.vscode_extension import VSIX, NotInstalled, find_editors, run_editor

NAME = "vscode"


def install_extension(machine: Machine, *, dry_run: bool, yes: bool) -> None:
    """Install the extension wherever an editor's command is found; else print where the file is."""
    if not VSIX.is_file():
        raise Failure(f"The extension is not part of this installation: there is no {VSIX}. Run `make vsix`.")
    commands = [editor.install for editor in find_editors(machine)]
    if commands:
        _run(commands, machine, "Install the extension?", dry_run=dry_run, yes=yes)
        if not dry_run:
            say("Reload the editor's windows, then compare the number: `handrail editors`.")
    else:
        note(
            "No command of an editor is on PATH. In the editor, run `Extensions: Install from VSIX…` with this file:"
        )
        say(str(VSIX))


def remove_extension(machine: Machine, *, dry_run: bool, yes: bool) -> None:
    """Remove the extension from the editors that are found."""
    commands = [editor.remove for editor in find_editors(machine)]
    if not commands:
        raise Failure(
            "No command of an editor is on PATH. Remove the extension `Handrail` in the editor itself."
        )
    _run(commands, machine, "Remove the extension?", dry_run=dry_run, yes=yes)


def _run(
    commands: Sequence[Sequence[str]], machine: Machine, question: str, *, dry_run: bool, yes: bool
) -> None:
    for command in commands:
        say(" ".join(command))
    if dry_run:
        return
    with reach("person", start=True):
        if not yes and not confirm(question):
            raise Failure("Nothing was changed.")
        for command in commands:
            try:
                run_editor(command, machine)
            except NotInstalled as problem:
                raise Failure(str(problem)) from None
            say(("✓", "green"), f" {command[0]}")
