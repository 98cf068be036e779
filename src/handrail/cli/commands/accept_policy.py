"""`handrail rules accept`, and the notices of other commands about a policy that changed without Handrail.

The daemon compares; this module shows the differences and passes on the person's decision.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from handrail.cli.client import Link, reach
from handrail.cli.command_help import add_command
from handrail.cli.exact import escape_line_breaks
from handrail.cli.failure import Code, Failure
from handrail.cli.interactive.keyboard import confirm
from handrail.cli.render.output import note, print_json, say
from handrail.paths import Places

if TYPE_CHECKING:
    from handrail.cli.wire import PolicyChangeView, PolicyView

MOST_SHOWN = 20
"""Differences shown by a command that was not asked for them."""
ADVICE = "`handrail rules accept` shows all of it and takes it up. Undo what you did not change yourself."


def add_to(group: typer.Typer) -> None:
    add_command(group, "accept", "handrail rules accept", "handrail rules accept --yes")(accept)


def accept(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    as_json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Accept what changed in rules, trust and settings.

    These are changes that were made without Handrail. Until you accept them, it asks about everything.
    """
    with reach("person") as link:
        policy = link.get("policy")
        if policy["changes"]:
            _ask(policy, yes, as_json_)
            policy = link.post("policy", "accept", body={"digest": policy["digest"]})
            if not as_json_:
                say(("✓ accepted", "green"), "  Rules, trusted folders and settings are in force again.")
        elif not as_json_:
            say("Nothing changed without Handrail: rules, trusted folders and settings are in force.")
    if as_json_:
        print_json(policy)


def _ask(policy: PolicyView, yes: bool, as_json: bool) -> None:
    if not as_json:
        say(policy["suspended"])
        show_changes(policy["changes"])
    if yes or as_json:
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Failure("Nothing was accepted: add --yes where there is no terminal to ask on.")
    if not confirm("Accept this and take it up?"):
        raise Failure("Nothing was changed.")


def show_changes(changes: list[PolicyChangeView], most: int | None = None) -> None:
    """Print one line per difference."""
    for change in changes[:most]:
        say((escape_line_breaks(f"  {format_change(change)}"), "yellow"))
    if most is not None and len(changes) > most:
        say(f"  and {len(changes) - most} more")


def format_change(change: PolicyChangeView) -> str:
    return f"{change['change']:<8} {change['what']}"


def find_policy(link: Link) -> PolicyView | None:
    """The policy's state; None from an older daemon."""
    state: Mapping[str, Any] = link.get("state")
    return state.get("policy")


def warn_of_changes(policy: PolicyView | None, write: Callable[..., None] = note) -> None:
    """Explain that everything asks, if it does."""
    if policy is None or not policy["changes"]:
        return
    write((f"! {policy['suspended']}", "red"))
    for change in policy["changes"][:MOST_SHOWN]:
        write((escape_line_breaks(f"  {format_change(change)}"), "yellow"))
    write(ADVICE)


def accept_first(link: Link) -> None:
    """Take up what a person's `up` or `restart` started with, if there was nothing to compare it with."""
    policy = find_policy(link)
    if policy is None or policy["known"] or not policy["changes"]:
        warn_of_changes(policy)
        return
    link.post("policy", "accept", body={"digest": policy["digest"]})
    say("Taken up, with nothing to compare it with (`handrail rules` lists all of it):")
    show_changes(policy["changes"], MOST_SHOWN)


def expect_config(link: Link) -> None:
    """Tell a running daemon that the next one may take up config.toml as it is now, because a person restarts it.

    Does nothing while the running daemon holds changes back: those need `handrail rules accept`.
    """
    from handrail.config import load  # noqa: PLC0415 - pydantic
    from handrail.flat_settings import describe_settings, hash_settings  # noqa: PLC0415 - pydantic

    digest = hash_settings(describe_settings(load(Places.find(os.environ).config)))
    try:
        link.post("policy", "expect", body={"config": digest})
    except Failure as refused:  # sealed, suspended, or an older daemon: the next one says what it holds back
        if refused.code is Code.NO_DAEMON:
            raise


def show_taken(policy: PolicyView | None) -> None:
    """Show the settings that this restart took up."""
    if policy is not None and policy["taken"]:
        say("Taken up from config.toml:")
        show_changes(policy["taken"])
