"""`handrail threads`, `thread …`, `export`, `import` and `search`: stored conversations.

A thread is named by its id or the first letters of it. `search` also finds the input and results of calls.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from handrail.cli.client import Link, reach
from handrail.cli.command_help import add_command, plain_app
from handrail.cli.commands.transcripts import find_transcript
from handrail.cli.exact import escape_line_breaks, exact_line
from handrail.cli.failure import Failure
from handrail.cli.folder import project
from handrail.cli.interactive.keyboard import confirm
from handrail.cli.render.formats import find_by_prefix, format_ago, format_count
from handrail.cli.render.output import Piece, note, print_json, print_table, say, write_bytes, write_text

if TYPE_CHECKING:
    from handrail.cli.wire import SearchHit, ThreadView

MOST = 1000
"""Maximum conversations in one list; `handrail search` finds older ones."""

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ThreadId = Annotated[str, typer.Argument(metavar="THREAD", help="Id of a thread, or its first letters.")]
ExportId = Annotated[
    str, typer.Argument(metavar="THREAD", help="Id of a thread, or CLIENT:SESSION of a client's transcript.")
]


def add_to(app: typer.Typer) -> None:
    add_command(app, "threads", "handrail threads", "handrail threads --here", "handrail threads --json")(
        threads
    )
    group = plain_app(
        epilog="handrail thread rename h3f 'The login page'\nhandrail thread fork h3f\nhandrail thread delete h3f",
        no_args_is_help=True,
        help="Rename, fork or delete a conversation.",
    )
    add_command(group, "rename", "handrail thread rename h3f 'The login page'")(rename)
    add_command(
        group,
        "fork",
        "handrail thread fork h3f",
        "handrail thread fork h3f --title 'With another library'",
    )(fork)
    add_command(group, "delete", "handrail thread delete h3f")(delete)
    app.add_typer(group, name="thread")
    add_command(
        app,
        "export",
        "handrail export h3f",
        "handrail export h3f --json > talk.json",
        "handrail export h3f -o talk.md",
        "handrail export claude:d5bb",
    )(export)
    add_command(app, "import", "handrail import talk.json")(import_)


def threads(
    here: Annotated[bool, typer.Option("--here", help="Only conversations in this project.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=MOST, help="Maximum number of conversations.")] = 100,
    as_json_: AsJson = False,
) -> None:
    """List conversations with agents, the most recent first."""
    workspace = str(project(None)) if here else None
    with reach("person") as link:
        rows = link.get("threads", workspace=workspace, limit=limit)
    used = [row for row in rows if not _is_untouched(row)]
    if as_json_:
        print_json(rows)
    elif used:
        print_table(
            ("ID", "STATE", "UPDATED", "AGENT", "MESSAGES", "FOLDER", "TITLE"), [_cells(row) for row in used]
        )
    else:
        note("No conversations yet. `handrail chat` begins one.")


def _is_untouched(row: ThreadView) -> bool:
    """Whether it is the thread that the first start creates, and it has no messages of a person."""
    return row["title"] == "Default" and row["workspace"] is None and row["messages"] == 0


def rename(
    thread: ThreadId, title: Annotated[str, typer.Argument(metavar="TITLE", help="The new title.")]
) -> None:
    """Rename a conversation."""
    with reach("person") as link:
        renamed = link.patch("threads", find_thread(link, thread), body={"title": title})
    say(f"{renamed['id']} is now “{exact_line(renamed['title'])}”.")


def fork(
    thread: ThreadId,
    title: Annotated[str, typer.Option("--title", help="The title of the copy; default: the same.")] = "",
    as_json_: AsJson = False,
) -> None:
    """Copy a conversation, to go on in two ways.

    The agent's session is copied, too, if the agent can do that.
    """
    with reach("person") as link:
        row = link.post("threads", find_thread(link, thread), "fork", body={"title": title})
        show_new_thread(link, row, as_json_)


def show_new_thread(link: Link, row: ThreadView, as_json_: bool) -> None:
    """Print a thread that was just made, how its agent got its messages, and how to go on."""
    origin = link.get("threads", row["id"], limit=1)["state"].get("origin", {})
    if as_json_:
        print_json({**row, "origin": origin})
        return
    say(f"{row['id']}  {exact_line(row['title'])}, {format_count(row['messages'], 'message')}")
    if sentence := origin.get("sentence"):
        note(exact_line(str(sentence)))
    note((f"handrail chat --thread {row['id']}", "bold"), " goes on with it.")


def delete(
    thread: ThreadId,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
) -> None:
    """Delete a conversation and its messages. Its calls stay in the history."""
    with reach("person") as link:
        thread_id = find_thread(link, thread)
        row = link.get("threads", thread_id, limit=1)
        description = f"“{exact_line(row['title'])}”, {format_count(row['messages'], 'message')}"
        if not yes and not confirm(f"Delete {thread_id}, {description}? It cannot be undone."):
            raise Failure("Nothing was deleted.")
        link.delete("threads", thread_id)
    say(f"Deleted {thread_id}.")


def export(
    thread: ExportId,
    as_json_: Annotated[bool, typer.Option("--json", help="Export JSON, for `handrail import`.")] = False,
    markdown: Annotated[bool, typer.Option("--md", help="Export Markdown (the default).")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write to this new file instead of stdout.")
    ] = None,
) -> None:
    """Export a conversation as Markdown or JSON."""
    if as_json_ and markdown:
        raise typer.BadParameter("Give --md or --json, not both.")
    with reach("person") as link:
        path = _find_export(link, thread)
        data = link.fetch(*path, "export", format="json" if as_json_ else "md")
    if output is None:
        write_bytes(data) if as_json_ else write_text(data.decode())
        return
    try:
        with output.open("xb") as file:
            file.write(data)
    except OSError as error:
        raise Failure(f"{output} could not be written: {error.strerror}. Name another file.") from None
    note(f"Written to {output}.")


def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file written by `handrail export --json`.")],
) -> None:
    """Import a conversation from an exported file, as a new one."""
    try:
        data = json.loads(file.read_bytes())
    except (OSError, ValueError) as error:
        raise Failure(
            f"{file} cannot be read as JSON: {error}. Give what `handrail export --json` wrote."
        ) from None
    with reach("person") as link:
        row = link.post("threads", "import", body=data)
    say(f"{row['id']}  {exact_line(row['title'])}, {format_count(row['messages'], 'message')}")


def _find_export(link: Link, typed: str) -> tuple[str, ...]:
    """The path of a thread or, for CLIENT:SESSION, of a transcript. Raises Failure."""
    if ":" in typed:
        return ("transcripts", *find_transcript(link, typed))
    return "threads", find_thread(link, typed)


def find_thread(link: Link, typed: str) -> str:
    """Find a thread by id or prefix. Raises Failure."""
    return find_by_prefix(typed, [row["id"] for row in link.get("threads", limit=MOST)], "thread")


def _cells(row: ThreadView) -> tuple[Piece, ...]:
    folder = (row["workspace"] or "").rstrip("/").rpartition("/")[2]
    updated = format_ago(row["updated_at"], int(time.time() * 1000))
    agent = row["agent"] + (f", {words}" if (words := describe_asks(row)) else "")
    return row["id"], _thread_state(row), updated, agent, str(row["messages"]), folder, row["title"]


def describe_asks(row: ThreadView) -> str:
    """What the agent does without asking in its present mode; empty if it asks about everything, or it is not known."""
    return {"nobody": "asks nobody", "commands": "asks about commands only"}.get(row.get("asks") or "", "")


_ENDS = {
    "failed": ("✗ failed", "red"),
    "interrupted": ("◌ interrupted", "magenta"),
    "cancelled": ("⊗ cancelled", "dim"),
    "refusal": ("⊘ refused", "red"),
}


def _thread_state(row: ThreadView) -> Piece:
    if row["operation"]:
        return "◐ speaking", "blue"
    if row["queued"]:
        return f"● {format_count(row['queued'], 'prompt')} queued", "yellow"
    return _ENDS.get(row["stop"] or "", ("✓", "green"))


def add_search_to(app: typer.Typer) -> None:
    add_command(
        app,
        "search",
        "handrail search 'flaky test'",
        "handrail search 'in:output \"no module\" since:yesterday'",
        "handrail search --here deploy --json",
    )(search)


def search(
    words: Annotated[
        list[str], typer.Argument(metavar="TEXT", help='Words, key:value, -not, "a phrase"; all must match.')
    ],
    here: Annotated[bool, typer.Option("--here", help="Only in this project.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=200, help="Maximum number of hits.")] = 30,
    as_json_: AsJson = False,
) -> None:
    """Search conversations, terminals and calls."""
    workspace = str(project(None)) if here else None
    with reach("person") as link:
        result = link.get("search", q=" ".join(words), workspace=workspace, limit=limit)
    if as_json_:
        print_json(result["hits"])
        return
    for hit in result["hits"]:
        _show_hit(hit)
    if not result["hits"]:
        note("Nothing was found. Try fewer words, or the beginning of one.")
    elif result["more"]:
        note(f"There are more hits; `--limit {limit * 2}` shows them.")


def _show_hit(hit: SearchHit) -> None:
    where = hit["thread"] if hit["message"] or hit["kind"] == "title" else hit["call"] or hit["terminal"]
    when = format_ago(hit["at"], int(time.time() * 1000))
    say(
        (where or hit["call"] or "", "bold"),
        f"  {escape_line_breaks(hit['title'])}  ",
        (f"{hit['kind']}, {when}", "dim"),
    )
    say("    ", *_highlight(hit["snippet"], hit["marks"]))


def _highlight(snippet: str, marks: list[tuple[int, int]]) -> list[Piece]:
    snippet = snippet.replace("\n", " ")
    pieces: list[Piece] = []
    end = 0
    for begin, stop in marks:
        pieces += [
            escape_line_breaks(snippet[end:begin]),
            (escape_line_breaks(snippet[begin:stop]), "bold yellow"),
        ]
        end = stop
    return [*pieces, escape_line_breaks(snippet[end:])]
