"""`handrail credential` and `credentials`: create, list and revoke credentials for MCP clients over HTTP.

A bearer token is printed once and never stored by this command.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from handrail.cli.client import reach
from handrail.cli.command_help import add_command, plain_app
from handrail.cli.folder import project
from handrail.cli.render.formats import find_by_prefix, format_minute
from handrail.cli.render.output import note, print_json, print_table, say

if TYPE_CHECKING:
    from handrail.cli.wire import CredentialBody

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def add_to(app: typer.Typer) -> None:
    add_command(
        app,
        "credential",
        "handrail credential",
        "handrail credential --workspace ~/code/api --name cursor",
    )(credential)
    group = plain_app(
        invoke_without_command=True, epilog="handrail credentials\nhandrail credentials revoke k20"
    )
    group.callback()(credentials)
    add_command(group, "revoke", "handrail credentials revoke k20")(revoke)
    app.add_typer(group, name="credentials")


def credential(
    workspace: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The folder it is for; default: the current project."),
    ] = None,
    name: Annotated[str, typer.Option(help="Name of the client in lists.")] = "http client",
    as_json_: AsJson = False,
) -> None:
    """Create a credential for an HTTP client, for one workspace. Its bearer token is shown only once."""
    body: CredentialBody = {"name": name, "workspace": str(project(workspace))}
    with reach("person") as link:
        row = link.post("credentials", body=body)
    if as_json_:
        print_json(row)
        return
    say(f"URL        {row['url']}")
    say(f"Bearer     {row['bearer']}")
    say(f"Workspace  {row['workspace']}   (credential {row['id']})")
    note("The bearer is not shown again. Give it to one client, for example:")
    note(
        f"  claude mcp add --transport http handrail {row['url']} "
        f'--header "Authorization: Bearer {row["bearer"]}"'
    )


def credentials(context: typer.Context, as_json_: AsJson = False) -> None:
    """List or revoke the credentials of HTTP clients."""
    if context.invoked_subcommand is not None:
        return
    with reach("read") as link:
        rows = link.get("credentials")
    if as_json_:
        print_json(rows)
    elif rows:
        cells = [(row["id"], row["name"], format_minute(row["issued_at"]), row["workspace"]) for row in rows]
        print_table(("ID", "NAME", "SINCE", "WORKSPACE"), cells)
    else:
        note("No credentials. `handrail credential` creates one.")


def revoke(
    id: Annotated[str, typer.Argument(metavar="ID", help="Id of a credential, or its first letters.")],
) -> None:
    """Revoke a credential. Its client can no longer make calls."""
    with reach("person") as link:
        ids = (row["id"] for row in link.get("credentials"))
        credential_id = find_by_prefix(id, ids, "credential")
        link.delete("credentials", credential_id)
    say(f"Revoked {credential_id}.")
