"""`handrail search`: words in all that was said, asked for or printed. Finding is the daemon's; here it is shown."""

import time
from typing import Annotated

import typer

from handrail.cli.exact import flat
from handrail.cli.folder import project
from handrail.cli.help import verb
from handrail.cli.link import reach
from handrail.cli.show import Piece, as_json, note, say
from handrail.cli.words import Row, ago

AsJson = Annotated[bool, typer.Option("--json", help="For programs.")]


def add_to(app: typer.Typer) -> None:
    verb(app, "search", "handrail search 'flaky test'", "handrail search --here deploy --json")(search)


def search(
    words: Annotated[list[str], typer.Argument(metavar="TEXT", help="Words that all stand there.")],
    here: Annotated[bool, typer.Option("--here", help="Only in this project.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=200, help="At most so many.")] = 30,
    as_json_: AsJson = False,
) -> None:
    """Search conversations, and what calls were asked for and gave back."""
    workspace = str(project(None)) if here else None
    with reach("person") as link:
        found: Row = link.get("search", q=" ".join(words), workspace=workspace, limit=limit)
    if as_json_:
        as_json(found["hits"])
        return
    for hit in found["hits"]:
        _show(hit)
    if not found["hits"]:
        note("Nothing was found. Try fewer words, or the beginning of one.")
    elif found["more"]:
        note(f"There is more; `--limit {limit * 2}` shows it.")


def _show(hit: Row) -> None:
    where = hit["thread"] if hit["message"] or hit["kind"] == "title" else hit["call"]
    when = ago(hit["at"], int(time.time() * 1000))
    say((where or hit["call"] or "", "bold"), f"  {flat(hit['title'])}  ", (f"{hit['kind']}, {when}", "dim"))
    say("    ", *_marked(hit["snippet"], hit["marks"]))


def _marked(snippet: str, marks: list[list[int]]) -> list[Piece]:
    snippet = snippet.replace("\n", " ")
    pieces: list[Piece] = []
    end = 0
    for begin, stop in marks:
        pieces += [flat(snippet[end:begin]), (flat(snippet[begin:stop]), "bold yellow")]
        end = stop
    return [*pieces, flat(snippet[end:])]
