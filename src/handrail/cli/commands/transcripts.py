"""`handrail transcripts`: conversations in the clients' own files, which Handrail only reads."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from handrail.cli.client import Link, reach
from handrail.cli.command_help import add_command
from handrail.cli.folder import project
from handrail.cli.render.formats import find_by_prefix, format_ago
from handrail.cli.render.output import Piece, note, print_json, print_table

if TYPE_CHECKING:
    from handrail.cli.wire import TranscriptView

MOST = 500
"""Maximum transcripts in one list."""


def add_to(app: typer.Typer) -> None:
    add_command(
        app,
        "transcripts",
        "handrail transcripts",
        "handrail transcripts --here --json",
        "handrail export claude:d5bb",
    )(transcripts)


def transcripts(
    here: Annotated[bool, typer.Option("--here", help="Only conversations in this project.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=MOST, help="Maximum number of conversations.")] = 50,
    as_json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List conversations in other clients' own files."""
    folder = str(project(None)) if here else None
    with reach("person") as link:
        rows = link.get("transcripts", folder=folder, limit=limit)
    if as_json_:
        print_json(rows)
    elif rows:
        print_table(("ID", "UPDATED", "FOLDER", "TITLE"), [_cells(row) for row in rows])
    else:
        note(
            "No client has a conversation here. Handrail reads those of Claude Code, Codex, Gemini CLI and opencode."
        )


def find_transcript(link: Link, typed: str) -> tuple[str, str]:
    """The client and the session of a transcript, by CLIENT:SESSION or a prefix. Raises Failure."""
    ids = [_identify(row) for row in link.get("transcripts", limit=MOST)]
    client, _, session = find_by_prefix(typed, ids, "transcript").partition(":")
    return client, session


def _identify(row: TranscriptView) -> str:
    return f"{row['client']}:{row['session']}"


def _cells(row: TranscriptView) -> tuple[Piece, ...]:
    folder = row["folder"].rstrip("/").rpartition("/")[2]
    return _identify(row), format_ago(row["updated_at"], int(time.time() * 1000)), folder, row["title"]
