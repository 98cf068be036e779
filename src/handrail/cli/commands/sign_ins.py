"""`handrail sign-ins`: list the browsers and devices that are signed in, and sign one out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from handrail.cli.client import reach
from handrail.cli.command_help import add_command, plain_app
from handrail.cli.render.formats import find_by_prefix, format_minute
from handrail.cli.render.output import note, print_json, print_table, say

if TYPE_CHECKING:
    from handrail.cli.wire import SignInView


def add_to(app: typer.Typer) -> None:
    group = plain_app(invoke_without_command=True, epilog="handrail sign-ins\nhandrail sign-ins revoke s3f")
    group.callback()(sign_ins)
    add_command(group, "revoke", "handrail sign-ins revoke s3f")(revoke)
    app.add_typer(group, name="sign-ins")


def sign_ins(
    context: typer.Context, as_json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False
) -> None:
    """List signed-in browsers and devices, or sign one out."""
    if context.invoked_subcommand is not None:
        return
    with reach("read") as link:
        rows = link.get("sign-ins")
    if as_json_:
        print_json(rows)
    elif rows:
        cells = [
            (row["id"], _describe(row), format_minute(row["at"]), format_minute(row["seen_at"]))
            for row in rows
        ]
        print_table(("ID", "BROWSER", "SIGNED IN", "LAST SEEN"), cells)
    else:
        note("No browser is signed in. `handrail open` signs one in.")


def _describe(row: SignInView) -> str:
    return f"{row['name'] or 'a browser'}{' (paired)' if row['device'] else ''}"


def revoke(
    id: Annotated[str, typer.Argument(metavar="ID", help="Id of a sign-in, or its first letters.")],
) -> None:
    """Sign a browser or device out immediately. It needs a new link from `handrail open`, or `handrail pair`."""
    with reach("person") as link:
        ids = (row["id"] for row in link.get("sign-ins"))
        sign_in_id = find_by_prefix(id, ids, "sign-in")
        link.delete("sign-ins", sign_in_id)
    say(f"Signed out {sign_in_id}.")
