"""`handrail chat`: talk with an agent in the terminal, with what needs the person asked inline.

Owns its options, which conversation is meant, and with whom. The conversation itself is in conversing.py.
"""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from handrail.cli.exact import exact_line
from handrail.cli.failure import Code
from handrail.cli.folder import workspace
from handrail.cli.help import verb
from handrail.cli.link import Link
from handrail.cli.show import note
from handrail.cli.threads import which
from handrail.cli.words import Row

DEMO = "demo"
"""Whom one tries things out with: nobody to go on with by default."""
AsJson = Annotated[
    bool, typer.Option("--json", help="One JSON object for each update; the last has stop_reason and thread.")
]


def add_to(app: typer.Typer) -> None:
    verb(
        app,
        "chat",
        "handrail chat",
        "handrail chat 'What does this project do?'",
        "ANTHROPIC_API_KEY=… handrail chat --agent handrail 'Make the failing test pass'",
        "handrail chat --agent claude --new",
        "handrail chat --thread h3f 'And now run the tests'",
        "handrail chat --agent demo --json 'edit'",
    )(chat)


def chat(
    prompt: Annotated[
        list[str] | None, typer.Argument(metavar="PROMPT", help="What to say; asked for here unless given.")
    ] = None,
    agent: Annotated[str | None, typer.Option("--agent", help="Whom; `handrail agents` lists them.")] = None,
    thread: Annotated[str | None, typer.Option("--thread", help="Go on with this conversation.")] = None,
    new: Annotated[
        bool, typer.Option("--new", help="Begin another, instead of going on with the last.")
    ] = False,
    folder: Annotated[
        Path | None, typer.Option("--workspace", help="The project; the current one unless given.")
    ] = None,
    thoughts: Annotated[bool, typer.Option("--thoughts", help="Also show what the agent thinks.")] = False,
    as_json_: AsJson = False,
) -> None:
    """Talk with an agent: one prompt, or a conversation until Ctrl-D."""
    from handrail.cli import conversing, provided  # noqa: PLC0415 - bring the live socket, and the settings

    words = " ".join(prompt or ()) or _piped()
    if as_json_ and not words:
        raise typer.BadParameter("Give a prompt, or pipe one in: --json is for programs.")
    with conversing.Live("person") as live:
        found = _which(live.link, thread, new, agent, folder)
        name = agent or found["agent"]
        whom = conversing.Whom(agent, provided.provided_for(name, os.environ))
        if as_json_:
            stop = conversing.for_programs(live, found["id"], words, whom)
        elif words:
            stop = conversing.Voice(live, found["id"], thoughts).prompt(words, whom)
        else:
            _greet(found, name)
            stop = conversing.converse(conversing.Voice(live, found["id"], thoughts), whom)
    if stop != "end_turn":
        raise typer.Exit(Code.FAILED)


def _which(link: Link, thread: str | None, new: bool, agent: str | None, folder: Path | None) -> Row:
    if thread is not None:
        if new:
            raise typer.BadParameter("Give --thread or --new, not both.")
        return link.get("threads", which(link, thread), limit=1)
    where = workspace(folder)
    body = {"workspace": str(where) if where else None, "agent": agent or _usual(link)}
    return link.post("threads", body=body) if new else link.post("threads", "default", body=body)


def _usual(link: Link) -> str | None:
    """Our own agent where this environment has a model for it and nobody was talked to yet; else who usually answers."""
    from handrail.cli import provided  # noqa: PLC0415

    if not provided.provided(os.environ):
        return None
    last: list[Row] = link.get("threads", limit=1)
    return None if any(row["messages"] and row["agent"] != DEMO for row in last) else provided.OWN_AGENT


def _piped() -> str:
    return "" if sys.stdin.isatty() else sys.stdin.read().strip()


def _greet(found: Row, agent: str) -> None:
    title = exact_line(found["title"]) or "a new conversation"
    note((f"{agent} · {title} ({found['id']})", "bold"))
    note(("Enter sends, Ctrl-C stops the agent, Ctrl-D leaves.", "dim"))
