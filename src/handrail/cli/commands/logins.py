"""`handrail servers login` and `logout`: sign-ins with OAuth to MCP servers over HTTP.

The browser comes back to the daemon, which gets the tokens and keeps them. No token passes through here.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from handrail.cli.client import Link, reach
from handrail.cli.failure import Failure
from handrail.cli.render.formats import find_by_prefix
from handrail.cli.render.output import say
from handrail.cli.web_browser import has_display, open_in_browser

if TYPE_CHECKING:
    from handrail.cli.wire import ServerLoginView

POLL_SECONDS = 0.5
ServerName = Annotated[
    str, typer.Argument(metavar="NAME", help="A server with a URL, or the first letters of its name.")
]


def login(
    name: ServerName,
    only_print: Annotated[
        bool, typer.Option("--print", help="Print the link instead of opening it.")
    ] = False,
) -> None:
    """Sign in to a server over HTTP, in the browser. Tokens are kept like secrets."""
    with reach("person") as link:
        found = _find_name(link, name)
        opens = not only_print and has_display()
        begun = link.post("logins", found, body={"local": opens})
        if opens and open_in_browser(begun["url"]):
            say(f"Your browser shows the sign-in to {found}. If it does not, open this on this machine:")
        else:
            say(f"Open this in a browser on this machine, to sign in to {found}:")
        say(f"  {begun['url']}")
        say(f"Waiting for up to {begun['seconds'] / 60:.0f} minutes. Ctrl-C ends the wait, not the sign-in.")
        row = _wait(link, found, begun["seconds"])
    if row["state"] != "done":
        raise Failure(
            f"Nobody is signed in to {found}. {row['problem'] or 'The sign-in ended without an answer.'}"
        )
    say(("✓ signed in  ", "green"), f"to {found}. Agents can use it; no agent gets the tokens.")


def _wait(link: Link, name: str, seconds: float) -> ServerLoginView:
    """The state of the sign-in, once it has ended."""
    until = time.monotonic() + seconds + 5
    while True:
        row = next((row for row in link.get("logins") if row["server"] == name), None)
        if row is None:
            raise Failure(f"{name} was removed meanwhile.")
        if row["state"] != "pending" or time.monotonic() > until:
            return row
        time.sleep(POLL_SECONDS)


def logout(name: ServerName) -> None:
    """Delete the tokens of a sign-in, and end the server's sessions."""
    with reach("person") as link:
        found = _find_name(link, name)
        link.delete("logins", found)
    say(f"Signed out of {found}. Its tokens are deleted, and its sessions have ended.")


def _find_name(link: Link, name: str) -> str:
    rows = {row["server"] for row in link.get("logins")}
    others = {row["name"] for row in link.get("servers")} - rows
    if name in others:
        raise Failure(f"{name} has a command and no URL: there is nothing to sign in to.")
    return find_by_prefix(name, rows, "server over HTTP", "servers")
