"""`handrail pause` and `handrail resume`: hold the calls of all agents, and let the rules decide again."""

import typer

from handrail.cli.client import reach
from handrail.cli.command_help import add_command
from handrail.cli.render.output import say


def add_to(app: typer.Typer) -> None:
    add_command(app, "pause", "handrail pause")(pause)
    add_command(app, "resume", "handrail resume")(resume)


def pause() -> None:
    """Pause all agents: each new call waits for you."""
    with reach("person") as link:
        won = link.put("pause")["won"]
    say("All agents are paused." if won else "All agents are paused already.")
    say(("New calls wait for you; running calls go on. `handrail resume` ends the pause.", "dim"))


def resume() -> None:
    """End the pause: rules decide again."""
    with reach("person") as link:
        won = link.delete("pause")["won"]
    say("Agents go on. Your rules decide again." if won else "Agents are not paused.")
