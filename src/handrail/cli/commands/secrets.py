"""`handrail servers secret`: the secrets of MCP servers: list their names, store one, remove one.

The daemon stores the values. None is taken from the command line, where every process could see it, and none is printed.
"""

from __future__ import annotations

import getpass
import os
import re
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from handrail.cli.client import Link, reach
from handrail.cli.command_help import add_command, plain_app
from handrail.cli.failure import Failure
from handrail.cli.render.output import Piece, note, print_json, print_table, say
from handrail.paths import Places

if TYPE_CHECKING:
    from handrail.cli.wire import SecretView

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
SecretName = Annotated[str, typer.Argument(metavar="NAME", help="Name of a secret, such as GITHUB_TOKEN.")]
VALUE_MAX = 65_536
"""Characters that are read: rejects a file that was piped in by mistake."""


def add_to(app: typer.Typer) -> None:
    group = plain_app(
        invoke_without_command=True,
        epilog="handrail servers secret\nhandrail servers secret set GITHUB_TOKEN",
    )
    group.callback()(secret)
    add_command(group, "list", "handrail servers secret list")(list_)
    add_command(
        group,
        "set",
        "handrail servers secret set GITHUB_TOKEN",
        "handrail servers secret set GITHUB_TOKEN < token.txt",
    )(set_)
    add_command(group, "remove", "handrail servers secret remove GITHUB_TOKEN")(remove)
    app.add_typer(group, name="secret")


def secret(context: typer.Context, as_json_: AsJson = False) -> None:
    """List, set or remove secrets of servers. Their values are never shown."""
    if context.invoked_subcommand is None:
        list_(as_json_)


def list_(as_json_: AsJson = False) -> None:
    """List the secrets by name. Says where each value is kept, and which servers need it."""
    with reach("read") as link:
        rows = link.get("secrets")
    if as_json_:
        print_json(rows)
        return
    if not rows:
        note("No secret is stored. `handrail servers secret set NAME` stores one.")
        return
    cells = [(row["name"], _describe_place(row), ", ".join(row["servers"])) for row in rows]
    print_table(("NAME", "VALUE", "SERVERS"), cells)
    for row in rows:
        if row["kept"] == "nowhere":
            note(
                (
                    f"{row['name']} is missing: `handrail servers secret set {row['name']}` stores it.",
                    "yellow",
                )
            )


def _describe_place(row: SecretView) -> Piece:
    match row["kept"]:
        case "keyring":
            return "in the keyring"
        case "file":
            return "in a file of yours"
        case "nowhere":
            return "! missing", "yellow"


def set_(name: SecretName) -> None:
    """Store a secret. Type the value at the prompt (not shown), or pipe it in.

    It goes to the system's keyring; on a system without one, to a file that only your user can read.
    """
    if not re.fullmatch(r"[A-Za-z_]\w{0,99}", name, re.ASCII):
        raise Failure(
            f"{name!r} is no name of a secret: it takes letters, digits and _, such as GITHUB_TOKEN."
        )
    value = _read_value(name)
    with reach("person") as link:
        link.put("secrets", name, body={"value": value})
        row = _find(link, name)
    if row["kept"] == "keyring":
        say(("✓ stored  ", "green"), f"{name} is in the system's keyring.")
    else:
        path = Places.find(os.environ).secrets
        say(
            ("✓ stored  ", "green"),
            f"{name} is in {path}, which only your user can read: this system has no keyring.",
        )
    if row["servers"]:
        names = ", ".join(row["servers"])
        say(
            f"{names} gets it from the next start. `handrail servers restart {row['servers'][0]}` ends what runs."
        )
    else:
        note(
            f"No server needs it yet. `handrail servers add NAME --secret {name} -- COMMAND` passes it to one."
        )


def _find(link: Link, name: str) -> SecretView:
    return next(row for row in link.get("secrets") if row["name"] == name)


def _read_value(name: str) -> str:
    is_typed = sys.stdin.isatty()
    value = getpass.getpass(f"{name} (not shown): ") if is_typed else sys.stdin.read(VALUE_MAX + 2)
    value = value.rstrip("\r\n")
    if not value:
        raise Failure("No value was given. Nothing was stored.")
    return value


def remove(name: SecretName) -> None:
    """Delete a stored secret. A server that needs it is not started any more."""
    with reach("person") as link:
        rows = {row["name"]: row for row in link.get("secrets")}
        link.delete("secrets", name)
    say(f"Deleted {name}.")
    if name in rows and rows[name]["servers"]:
        note((f"{', '.join(rows[name]['servers'])} still needs it, and is not started without it.", "yellow"))
