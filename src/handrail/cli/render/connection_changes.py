"""Text of the changes that `handrail connect` and `disconnect` would make to files, and of the client's behaviour afterwards."""

import json
from collections.abc import Iterator
from difflib import unified_diff
from functools import reduce

from handrail.cli.render.output import note, say
from handrail.clients.connection_plan import ConfigChange, ConnectionPlan
from handrail.clients.mcp_secrets import find_credentials, find_file_credentials
from handrail.clients.proof_recipes import RECIPES

MASK_MIN = 4
"""Characters of the shortest value that is hidden: a shorter one is in any line."""


def show_plan(plan: ConnectionPlan, about: str = "") -> None:
    """Print the changes of a plan, and what the person should know about them; `about` says what they are for."""
    show_changes(plan, about)
    for remark in plan.notes:
        note((remark, "yellow"))


def show_changes(plan: ConnectionPlan, about: str = "") -> None:
    if not plan.is_change:
        say(f"{plan.client.title}: nothing to change.")
        return
    say((plan.client.title, "bold"), f": {about}" if about else "")
    hidden = _find_hidden(plan)
    for change in plan.changes:
        for line in _diff(change):
            shown = reduce(lambda text, value: text.replace(value, "[secret]"), hidden, line)
            say((shown, {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")))
        for command in change.commands if change.is_change else ():
            say((f"  with `{' '.join(command)}`", "dim"))


def _find_hidden(plan: ConnectionPlan) -> list[str]:
    """Credentials of the user in the files, and in MCP servers that are put back, as the files have them."""
    taken = (each for file in plan.connection.files for each in file.pieces if each.piece.kind == "absent")
    values = {value for each in taken for value in find_credentials(each.before)}
    for change in plan.changes:
        values |= find_file_credentials(change.path.suffix, (change.before or b"").decode(errors="replace"))
    forms = {form for value in values for form in (value, json.dumps(value)[1:-1])}
    return sorted((form for form in forms if len(form) >= MASK_MIN), key=len, reverse=True)


def _diff(change: ConfigChange) -> Iterator[str]:
    if not change.is_change:
        return
    before, after = (
        (data or b"").decode(errors="replace").splitlines() for data in (change.before, change.after)
    )
    old = str(change.path) if change.before is not None else "/dev/null"
    new = str(change.path) if change.after is not None else "/dev/null"
    yield from unified_diff(before, after, old, new, lineterm="", n=2)


def describe_parts(plan: ConnectionPlan) -> str:
    """The change in words, for the line above it."""
    parts = plan.connection
    hooks = ["hooks, which ask Handrail before each tool call and report its end"] if parts.has_hooks else []
    server = ["the MCP server, which gives it Handrail's tools"] if parts.has_mcp else []
    return "; ".join([*hooks, *server])


def describe_effect(plan: ConnectionPlan) -> str:
    """What the client does from now on, as sentences."""
    client, parts = plan.client, plan.connection
    if not client.has_hooks:
        return f"It {client.promises}."
    hooks = ["a hook asks Handrail before each of its tool calls"] if parts.has_hooks else []
    server = ["it can use Handrail's tools"] if parts.has_mcp else []
    promise = f" It {client.describe_promise(parts.version)}." if parts.has_hooks else ""
    return f"From its next start, {', and '.join([*hooks, *server])}.{promise}"


def say_next(name: str) -> None:
    """Print what the person can do with a connected client; CLIENT stands for several."""
    say("`handrail open` shows the questions, `handrail connect` what is connected.")
    proof = f"`handrail connect {name} --prove` tries it out; " if name in {*RECIPES, "CLIENT"} else ""
    say(f"{proof}`handrail disconnect {name}` removes it again.")
