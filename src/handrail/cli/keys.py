"""`handrail keys`: keys of models' providers for our own agent, in the system's keyring.

Owns those commands, and that no value is ever shown. Where the keyring is, and how it is locked, is the system's; what
a key is for, our own agent's.
"""

import getpass
import os
import sys
from typing import Annotated

import typer

from handrail.cli.failure import Failure
from handrail.cli.help import plain, verb
from handrail.cli.show import Piece, as_json, note, say, table
from handrail.places import Places

PROVIDERS = {
    "anthropic": "ANTHROPIC_API_KEY",
    "openai": "OPENAI_API_KEY",
    "google": "GOOGLE_API_KEY",
    "gemini": "GEMINI_API_KEY",
    "ollama": "OLLAMA_API_KEY",
}
"""As people call them, with the key each is meant by."""
LONGEST = 4096
"""Characters of a key; what is longer is something else."""

AsJson = Annotated[bool, typer.Option("--json", help="For programs.")]
Which = Annotated[
    str, typer.Argument(metavar="PROVIDER|NAME", help="anthropic, openai, google, or a variable's name.")
]


def add_to(app: typer.Typer) -> None:
    group = plain(
        invoke_without_command=True,
        epilog="handrail keys\nhandrail keys set anthropic\nhandrail keys remove anthropic",
    )
    group.callback()(keys)
    verb(
        group,
        "set",
        "handrail keys set anthropic",
        "handrail keys set OPENAI_API_KEY < key.txt",
    )(set_)
    verb(group, "remove", "handrail keys remove anthropic")(remove)
    app.add_typer(group, name="keys")


def keys(context: typer.Context, as_json_: AsJson = False) -> None:
    """Which keys of models our own agent finds, and where; keep one in the system's keyring, or remove it."""
    if context.invoked_subcommand is not None:
        return
    from handrail.doctor.own_agent import SECRETS, sources  # noqa: PLC0415 - brings the settings and the keyring

    found = sources(Places.find(os.environ), os.environ)
    if as_json_:
        as_json([{"name": name, "found": where} for name, where in found.items()])
        return
    shown = {name: where for name, where in found.items() if where or name in SECRETS}
    table(("NAME", "FOUND IN"), [(name, _where(where)) for name, where in shown.items()])
    note(("The daemon's own environment may have others. `handrail keys set anthropic` keeps one.", "dim"))


def set_(which: Which) -> None:
    """Keep a key in the system's keyring: typed here without being shown, or read from standard input."""
    from handrail.keys import NoKeyring, keep  # noqa: PLC0415

    name = _named(which)
    value = _given(name)
    try:
        keep(name, value)
    except NoKeyring as problem:
        raise Failure(f"{problem} Nothing was kept.") from None
    say(f"{name} is in the system's keyring. Our own agent finds it there when it is started next.")


def remove(which: Which) -> None:
    """Remove a key from the system's keyring."""
    from handrail.keys import NoKeyring, forget  # noqa: PLC0415

    name = _named(which)
    try:
        was_there = forget(name)
    except NoKeyring as problem:
        raise Failure(str(problem)) from None
    if not was_there:
        raise Failure(f"There is no {name} in the system's keyring. `handrail keys` shows what there is.")
    say(f"{name} is no longer in the system's keyring.")


def _named(which: str) -> str:
    from handrail.doctor.own_agent import SECRETS  # noqa: PLC0415

    name = PROVIDERS.get(which.lower(), which)
    if name not in SECRETS:
        known = ", ".join([*PROVIDERS, *SECRETS])
        raise typer.BadParameter(f"{which} is no provider and no key of one. Known: {known}.")
    return name


def _given(name: str) -> str:
    typed = getpass.getpass(f"{name} (not shown): ") if sys.stdin.isatty() else sys.stdin.read(LONGEST + 2)
    value = typed.strip()
    if not value:
        raise Failure("Nothing was given, so nothing was kept.")
    if len(value) > LONGEST or not value.isprintable() or " " in value:
        raise Failure("That is no key: a key is one word on one line. Nothing was kept.")
    return value


def _where(where: tuple[str, ...]) -> Piece:
    return (f"✓ {', '.join(where)}", "green") if where else ("nowhere", "dim")
