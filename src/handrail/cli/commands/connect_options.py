"""The options of `handrail connect`, and which of them a client can have."""

from typing import Annotated, Literal

import typer

from handrail.cli.failure import Failure
from handrail.clients.client_facts import Client
from handrail.lazy_dataclass import dataclass

Servers = Literal["ask", "move", "keep"]
"""What becomes of the other MCP servers in the client's configuration."""
Locked = Annotated[
    bool, typer.Option("--locked", help="Hooks that no project switches off (Claude Code; needs root).")
]
SingleQuestion = Annotated[
    bool,
    typer.Option(
        "--single-question",
        help="Keep the client from asking after an allow (Gemini CLI). Where its hooks are off, nobody is asked then.",
    ),
]
HookTimeout = Annotated[
    int,
    typer.Option(
        "--hook-timeout",
        metavar="SECONDS",
        min=0,
        help="How long a tool call waits for you; then the agent is told to repeat it. 0: as long as the client can.",
    ),
]
ServersOption = Annotated[
    Servers,
    typer.Option(
        help="The client's other MCP servers: move them behind Handrail, keep them there, or ask (on a terminal)."
    ),
]
Proves = Annotated[
    bool,
    typer.Option("--prove", help="Write nothing; run the client once to see that its calls arrive here."),
]
SHORTEST_TIMEOUT = 15
"""Seconds. A hook on a busy machine takes some of them to start and to answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The options of `connect` that decide what is written."""

    scope: Literal["user", "project"]
    has_mcp: bool
    has_hooks: bool
    is_locked: bool
    is_single_question: bool
    hook_timeout: int
    servers: Servers
    is_forced: bool
    launcher: str
    starts_daemon: bool


def check_wish(client: Client, wish: Wish) -> None:
    """Raises Failure if the client cannot have what is wished."""
    if wish.is_locked and client.name != "claude":
        raise Failure(f"--locked works with Claude Code only; {client.title} has no such settings.")
    if wish.is_locked and wish.scope == "project":
        raise Failure("--locked is for the whole machine; leave out --scope.")
    if wish.scope == "project" and not client.has_project_scope:
        raise Failure(f"{client.title} takes hooks from your own configuration only; leave out --scope.")
    if 0 < wish.hook_timeout < SHORTEST_TIMEOUT:
        raise Failure(
            f"--hook-timeout is at least {SHORTEST_TIMEOUT} seconds: Handrail must answer before the client's limit."
        )
    if wish.is_single_question:
        _check_single_question(client, wish)
    if not wish.has_mcp and not (wish.has_hooks and client.has_hooks):
        raise Failure(f"There is nothing to write: {client.title} {client.promises}.")


def _check_single_question(client: Client, wish: Wish) -> None:
    if not client.has_single_question:
        raise Failure(
            f"--single-question works with Gemini CLI only; {client.title} has no file that would keep it from asking."
        )
    if wish.scope == "project":
        raise Failure("--single-question is for your own configuration only; leave out --scope.")
    if not wish.has_hooks:
        raise Failure(
            "--single-question without hooks would let every tool run unasked; leave out --no-hooks."
        )
