"""`handrail terminals` and `terminal …`: list terminals, read one, type into it, search it, close it.

`terminal read` prints output as text, as the current screen, or as raw bytes, and can follow it over daemon restarts.
"""

from __future__ import annotations

import base64
import sys
import time
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from handrail.cli.client import Link, reach
from handrail.cli.command_help import add_command, plain_app
from handrail.cli.failure import Code, Failure
from handrail.cli.render.formats import find_by_prefix, format_elapsed
from handrail.cli.render.output import Piece, note, print_json, print_table, say, write_bytes, write_text

if TYPE_CHECKING:
    from handrail.cli.wire import FoundView, OutputView, TerminalView

Mode = Literal["text", "raw", "screen"]
TerminalId = Annotated[
    str, typer.Argument(metavar="ID", help="Id of a terminal, its first letters, or its name.")
]

POLL_SECONDS = 0.2
"""Poll interval while following a terminal."""

GONE_SECONDS = 60.0
"""How long to wait for a lost daemon; a restart takes about a second."""


def read(
    terminal: TerminalId,
    lines: Annotated[
        int | None, typer.Option("--lines", "-n", min=1, max=100_000, help="Only the last N lines.")
    ] = None,
    after: Annotated[int | None, typer.Option(min=0, help="Only output after this byte offset.")] = None,
    screen: Annotated[bool, typer.Option("--screen", help="The screen as it is now.")] = False,
    raw: Annotated[
        bool, typer.Option("--raw", help="The raw bytes. Escape sequences in them reach your terminal.")
    ] = False,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow", "-f", help="Keep printing until the terminal ends; Ctrl-C only stops following."
        ),
    ] = False,
    as_json_: Annotated[bool, typer.Option("--json", help="Print JSON: one chunk with its offsets.")] = False,
) -> None:
    """Print the output of a terminal, by default all that is stored."""
    if screen and (raw or follow or lines or after is not None):
        raise typer.BadParameter("--screen cannot be combined with --raw, --follow, --lines or --after.")
    if lines and after is not None:
        raise typer.BadParameter("Give --lines or --after, not both.")
    mode: Mode = "screen" if screen else "raw" if raw else "text"
    with reach("person") as link:
        terminal_id = find_terminal(link, terminal)
        piece = link.get("terminals", terminal_id, "output", mode=mode, lines=lines, after=after)
        _show_output(piece, mode, as_json_, is_stream=follow)
        if as_json_ and not follow:
            return
        at = _print_rest(link, terminal_id, mode, piece, as_json_)
    if follow:
        _follow(terminal_id, mode, at, as_json_)
    if mode == "text" and not as_json_ and sys.stdout.isatty():
        write_text("\n")


def _print_rest(link: Link, terminal: str, mode: Mode, piece: OutputView, for_programs: bool) -> int:
    """Print the output that existed at the first request; return the next offset."""
    end = piece["end"]
    while mode != "screen" and piece["next"] < end:
        more = link.get("terminals", terminal, "output", mode=mode, after=piece["next"])
        if more["next"] == piece["next"]:
            break  # the rest is an incomplete character or escape sequence
        _show_output(more, mode, for_programs, is_stream=True)
        piece = more
    return piece["next"]


def _follow(terminal: str, mode: Mode, at: int, for_programs: bool) -> None:
    """Print new output until the terminal ends; reconnect if the daemon restarts."""
    until = time.monotonic() + GONE_SECONDS
    while True:
        try:
            with reach("person") as link:
                _follow_until_end(link, terminal, mode, at, for_programs)
                return
        except _DaemonGone as gone:
            at, until = gone.at, max(until, gone.seen + GONE_SECONDS)
        except Failure as failure:
            if failure.code is not Code.NO_DAEMON or time.monotonic() > until:
                raise
        time.sleep(POLL_SECONDS)


class _DaemonGone(Exception):
    """The daemon went away while a terminal was followed; has the offset reached."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at
        self.seen = time.monotonic()


def _follow_until_end(link: Link, terminal: str, mode: Mode, at: int, for_programs: bool) -> None:
    """Print new output until the terminal ends. Raises _DaemonGone if the daemon goes away."""
    while True:
        try:
            running = link.get("terminals", terminal)["running"]
            piece = link.get("terminals", terminal, "output", mode=mode, after=at)
        except Failure as failure:
            if failure.code is Code.NO_DAEMON:
                raise _DaemonGone(at) from None
            raise
        if piece["next"] > at:
            _show_output(piece, mode, for_programs, is_stream=True)
            at = piece["next"]
        elif not running:
            return
        else:
            time.sleep(POLL_SECONDS)


def _show_output(piece: OutputView, mode: Mode, for_programs: bool, *, is_stream: bool) -> None:
    if for_programs:
        print_json(piece, line=is_stream)
        return
    if piece["left_out"]:
        note((f"{piece['left_out']:,} bytes before this are no longer kept.", "yellow"))
    if mode == "raw":
        write_bytes(base64.b64decode(piece["base64"]))
    else:
        write_text(piece["text"] + ("\n" if mode == "screen" else ""))


EXAMPLES = """\
handrail terminal read t3f
handrail terminal send t3f 'make test'
handrail terminal search t3f 'error|warning'
handrail terminal close t3f"""

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def add_to(app: typer.Typer) -> None:
    group = plain_app(
        epilog=EXAMPLES, no_args_is_help=True, help="Read, type into, search or close a terminal."
    )
    add_command(
        group,
        "read",
        "handrail terminal read t3f",
        "handrail terminal read t3f --lines 50",
        "handrail terminal read t3f --follow",
        "handrail terminal read t3f --screen",
        "handrail terminal read t3f --raw > session.raw",
    )(read)
    add_command(
        group,
        "send",
        "handrail terminal send t3f 'make test'",
        "handrail terminal send t3f --key ctrl-c",
        "handrail terminal send t3f y --no-newline",
        "handrail terminal send t3f - < answer.txt",
    )(send)
    add_command(
        group,
        "search",
        "handrail terminal search t3f 'error|warning'",
        "handrail terminal search t3f -i -C 2 traceback",
    )(search)
    add_command(group, "close", "handrail terminal close t3f")(close)
    app.add_typer(group, name="terminal")


def send(
    terminal: TerminalId,
    text: Annotated[
        str | None,
        typer.Argument(help="Text to type; - reads it from stdin (for secrets)."),
    ] = None,
    no_newline: Annotated[
        bool, typer.Option("--no-newline", help="Do not press Enter after the text.")
    ] = False,
    key: Annotated[
        list[str] | None, typer.Option(help="Then press this key: ctrl-c, enter, up, f1, … Repeatable.")
    ] = None,
    as_json_: AsJson = False,
) -> None:
    """Type into a terminal."""
    if text is None and not key:
        raise typer.BadParameter("Give a text or --key.")
    typed = sys.stdin.read().removesuffix("\n") if text == "-" else text
    with reach("person") as link:
        terminal_id = find_terminal(link, terminal)
        row = link.post(
            "terminals",
            terminal_id,
            "input",
            body={"text": typed, "newline": not no_newline, "keys": key or []},
        )
    if as_json_:
        print_json(row)
    else:
        say(f"Typed into terminal {row['id']} ", (row["name"], "bold"), ".")


def search(
    terminal: TerminalId,
    pattern: Annotated[str, typer.Argument(help="A regular expression.")],
    context: Annotated[
        int, typer.Option("--context", "-C", min=0, max=100, help="Lines of context around each match.")
    ] = 0,
    ignore_case: Annotated[bool, typer.Option("--ignore-case", "-i", help="Ignore case.")] = False,
    raw: Annotated[
        bool, typer.Option("--raw", help="Search the raw bytes, including escape sequences.")
    ] = False,
    most: Annotated[int, typer.Option("--max", min=1, max=1000, help="Maximum number of matches.")] = 100,
    as_json_: AsJson = False,
) -> None:
    """Search the stored output of a terminal. Exit status 1 if nothing matches."""
    with reach("person") as link:
        result = link.get(
            "terminals",
            find_terminal(link, terminal),
            "search",
            pattern=pattern,
            context=context,
            max_results=most,
            case_insensitive=ignore_case,
            raw=raw,
        )
    if as_json_:
        print_json(result)
    elif result["matches"]:
        _show_matches(result, context)
    else:
        note("Nothing matches.")
    raise typer.Exit(Code.OK if result["matches"] else Code.FAILED)


def close(terminal: TerminalId, as_json_: AsJson = False) -> None:
    """Stop all processes of a terminal. Its output is kept."""
    with reach("person") as link:
        closed = link.post("terminals", find_terminal(link, terminal), "close")
    if as_json_:
        print_json(closed)
    else:
        say(f"Terminal {closed['id']} ", (closed["name"], "bold"), f" is closed. {closed['message']}")
    if closed["left"]:
        raise Failure("Some processes could not be ended. `handrail doctor` may show why.")


def _show_matches(result: FoundView, context: int) -> None:
    """Print matches like `grep -n`: a colon after the line number of a match, a dash after that of context."""
    last_line = 0
    for match in result["matches"]:
        number = match["line_number"]
        around = [
            *(
                (number - len(match["before"]) + index, "-", line)
                for index, line in enumerate(match["before"])
            ),
            (number, ":", match["text"]),
            *((number + 1 + index, "-", line) for index, line in enumerate(match["after"])),
        ]
        if context and last_line and around[0][0] > last_line + 1:
            say(("--", "dim"))
        for line_number, mark, line in around:
            if line_number > last_line:
                say((f"{line_number}{mark}", "green" if mark == ":" else "dim"), line)
        last_line = around[-1][0]
    if result["more"]:
        note("There are more matches; raise --max to see them.")


MOST = 1000
"""Maximum terminals in one list; older ones are reachable through their calls."""


def add_list_to(app: typer.Typer) -> None:
    add_command(
        app, "terminals", "handrail terminals", "handrail terminals --all", "handrail terminals --all --json"
    )(terminals)


def terminals(
    every: Annotated[bool, typer.Option("--all", help="Include terminals that have ended.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=MOST, help="Maximum number of terminals.")] = 200,
    as_json_: AsJson = False,
) -> None:
    """List running terminals, newest first."""
    with reach("read") as link:
        rows = link.get("terminals", running=not every, limit=limit)
    if as_json_:
        print_json(rows)
    elif rows:
        print_table(("ID", "STATE", "SINCE", "OF", "NAME", "PID", "CWD"), [_cells(row) for row in rows])
        if any(row.get("agent_gone") for row in rows):
            note(
                "agent gone: runs on, though its agent ended with the daemon. `handrail terminal close ID` stops it."
            )
    elif every:
        note("No terminals. `handrail shell` opens one.")
    else:
        note(
            "No terminal runs. `handrail shell` opens one; `handrail terminals --all` also lists ended ones."
        )


def find_terminal(link: Link, typed: str) -> str:
    """Find a terminal by id, prefix or name; running terminals take precedence. Raises Failure."""
    running = link.get("terminals", running=True, limit=MOST)
    if any(_is_match(row, typed) for row in running):
        return _find_in(typed, running)
    return _find_in(typed, link.get("terminals", limit=MOST))


def _find_in(typed: str, rows: list[TerminalView]) -> str:
    ids = [row["id"] for row in rows]
    ids_by_name = [row["id"] for row in rows if row["name"] == typed]
    if len(ids_by_name) == 1 and not any(each.startswith(typed) for each in ids):
        return ids_by_name[0]
    return find_by_prefix(typed, ids, "terminal")


def _is_match(row: TerminalView, typed: str) -> bool:
    return row["id"].startswith(typed) or row["name"] == typed


def _cells(row: TerminalView) -> tuple[Piece, ...]:
    since = format_elapsed(max(0, int(time.time() * 1000) - (row["ended_at"] or row["started_at"])))
    return row["id"], terminal_state(row), since, _format_owner(row), row["name"], str(row["pid"]), row["cwd"]


def terminal_state(row: TerminalView) -> Piece:
    """The current activity of a terminal, or how it ended."""
    if not row["running"]:
        return _exit_state(row)
    if row["asks"]:
        return ("● asks for a secret" if row["asks"]["secret"] else "● asks", "yellow")
    if row["taken"]:
        return "◐ taken over", "yellow"
    if row.get("agent_gone"):
        return "◐ agent gone", "yellow"
    return (f"◐ {row['foreground'] or 'busy'}", "blue") if row["busy"] else ("◐ running", "blue")


def _exit_state(row: TerminalView) -> Piece:
    if row["signal"]:
        return f"✗ {row['signal']}", "red"
    if row["exit_code"] is None:
        return "◌ lost", "magenta"
    return ("✓ exit 0", "green") if row["exit_code"] == 0 else (f"✗ exit {row['exit_code']}", "red")


def _format_owner(row: TerminalView) -> str:
    """Kind and owner: `shell`, or `command of claude`."""
    owner = row["owner"]
    return row["of"] if owner is None or owner["person"] else f"{row['of']} of {owner['name']}"
