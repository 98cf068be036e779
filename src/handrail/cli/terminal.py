"""`handrail terminal …`: type into a terminal, search it, close it.

Owns those commands, which are a person's. Reading one is in `reading`. What typing and closing mean is the daemon's.
"""

import sys
from typing import Annotated

import typer

from handrail.cli.failure import Code, Failure
from handrail.cli.help import plain, verb
from handrail.cli.link import reach
from handrail.cli.reading import TerminalId, read
from handrail.cli.show import as_json, note, say
from handrail.cli.terminals import which
from handrail.cli.words import Row

EXAMPLES = """\
handrail terminal read t3f
handrail terminal send t3f 'make test'
handrail terminal search t3f 'error|warning'
handrail terminal close t3f"""

AsJson = Annotated[bool, typer.Option("--json", help="For programs.")]


def add_to(app: typer.Typer) -> None:
    group = plain(
        epilog=EXAMPLES, no_args_is_help=True, help="Read a terminal, type into it, search it, close it."
    )
    verb(
        group,
        "read",
        "handrail terminal read t3f",
        "handrail terminal read t3f --lines 50",
        "handrail terminal read t3f --follow",
        "handrail terminal read t3f --screen",
        "handrail terminal read t3f --raw > session.raw",
    )(read)
    verb(
        group,
        "send",
        "handrail terminal send t3f 'make test'",
        "handrail terminal send t3f --key ctrl-c",
        "handrail terminal send t3f y --no-newline",
        "handrail terminal send t3f - < answer.txt",
    )(send)
    verb(
        group,
        "search",
        "handrail terminal search t3f 'error|warning'",
        "handrail terminal search t3f -i -C 2 traceback",
    )(search)
    verb(group, "close", "handrail terminal close t3f")(close)
    app.add_typer(group, name="terminal")


def send(
    terminal: TerminalId,
    text: Annotated[
        str | None, typer.Argument(help="What to type; - takes it from stdin, where nobody sees it.")
    ] = None,
    no_newline: Annotated[bool, typer.Option("--no-newline", help="Do not press Enter after it.")] = False,
    key: Annotated[
        list[str] | None, typer.Option(help="Then press this key: ctrl-c, enter, up, f1 … May be repeated.")
    ] = None,
    as_json_: AsJson = False,
) -> None:
    """Type into a terminal, as yourself."""
    if text is None and not key:
        raise typer.BadParameter("Say what to type: a text, or --key.")
    typed = sys.stdin.read().removesuffix("\n") if text == "-" else text
    with reach("person") as link:
        found = which(link, terminal)
        row: Row = link.post(
            "terminals", found, "input", body={"text": typed, "newline": not no_newline, "keys": key or []}
        )
    if as_json_:
        as_json(row)
    else:
        say(f"Typed into terminal {row['id']} ", (row["name"], "bold"), ".")


def search(
    terminal: TerminalId,
    pattern: Annotated[str, typer.Argument(help="A regular expression.")],
    context: Annotated[
        int, typer.Option("--context", "-C", min=0, max=100, help="Also so many lines around each.")
    ] = 0,
    ignore_case: Annotated[bool, typer.Option("--ignore-case", "-i", help="Letters in any case.")] = False,
    raw: Annotated[bool, typer.Option("--raw", help="In the bytes as they came, escapes and all.")] = False,
    most: Annotated[int, typer.Option("--max", min=1, max=1000, help="At most so many matches.")] = 100,
    as_json_: AsJson = False,
) -> None:
    """Search all that is kept of a terminal's output. Exit status 1 when nothing matches."""
    with reach("person") as link:
        found: Row = link.get(
            *("terminals", which(link, terminal), "search"),
            pattern=pattern,
            context=context,
            max_results=most,
            case_insensitive=str(ignore_case).lower(),
            raw=str(raw).lower(),
        )
    if as_json_:
        as_json(found)
    elif found["matches"]:
        _show(found, context)
    else:
        note("Nothing matches.")
    raise typer.Exit(Code.OK if found["matches"] else Code.FAILED)


def close(terminal: TerminalId, as_json_: AsJson = False) -> None:
    """End everything that runs in a terminal. What it printed is kept."""
    with reach("person") as link:
        closed: Row = link.post("terminals", which(link, terminal), "close")
    if as_json_:
        as_json(closed)
    else:
        say(f"Terminal {closed['id']} ", (closed["name"], "bold"), f" is closed. {closed['message']}")
    if closed["left"]:
        raise Failure("Not everything could be ended. `handrail doctor` may say more.")


def _show(found: Row, context: int) -> None:
    """As `grep -n` does: a colon after the number of a match, a dash after that of a line around it."""
    shown = 0
    for match in found["matches"]:
        number = match["line_number"]
        around = [
            *(
                (number - len(match["before"]) + index, "-", line)
                for index, line in enumerate(match["before"])
            ),
            (number, ":", match["text"]),
            *((number + 1 + index, "-", line) for index, line in enumerate(match["after"])),
        ]
        if context and shown and around[0][0] > shown + 1:
            say(("--", "dim"))
        for line_number, mark, line in around:
            if line_number > shown:
                say((f"{line_number}{mark}", "green" if mark == ":" else "dim"), line)
        shown = around[-1][0]
    if found["more"]:
        note("There are more; --max shows them.")
