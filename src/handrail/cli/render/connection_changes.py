"""Text of the changes that `handrail connect` and `disconnect` would make to files."""

from collections.abc import Iterator
from difflib import unified_diff

from handrail.cli.render.output import note, say
from handrail.clients.connection_plan import ConfigChange, ConnectionPlan


def show_plan(plan: ConnectionPlan) -> None:
    """Print the changes of a plan, and what the person should know about them."""
    show_changes(plan)
    for remark in plan.notes:
        note((remark, "yellow"))


def show_changes(plan: ConnectionPlan) -> None:
    if not plan.is_change:
        say(f"{plan.client.title}: nothing to change.")
        return
    say((plan.client.title, "bold"))
    for change in plan.changes:
        for line in _diff(change):
            say((line, {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")))
        for command in change.commands if change.is_change else ():
            say((f"  by `{' '.join(command)}`", "dim"))


def _diff(change: ConfigChange) -> Iterator[str]:
    if not change.is_change:
        return
    before, after = (
        (data or b"").decode(errors="replace").splitlines() for data in (change.before, change.after)
    )
    old = str(change.path) if change.before is not None else "/dev/null"
    new = str(change.path) if change.after is not None else "/dev/null"
    yield from unified_diff(before, after, old, new, lineterm="", n=2)
