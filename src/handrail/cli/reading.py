"""`handrail terminal read`: what a terminal printed, as text, as its screen, or as the bytes themselves.

Owns the command and how it follows what is still printed. What a program wrote reaches the person's own terminal only
as text, with everything that could drive it spelled out; `--raw` alone passes it on as it is.
"""

import base64
import sys
import time
from typing import Annotated, Literal

import typer

from handrail.cli.failure import Code, Failure
from handrail.cli.link import Link, reach
from handrail.cli.show import as_json, note, raw_bytes, text
from handrail.cli.terminals import which
from handrail.cli.words import Row

Mode = Literal["text", "raw", "screen"]
TerminalId = Annotated[
    str, typer.Argument(metavar="ID", help="A terminal's id, its first letters, or its name.")
]

LOOK_SECONDS = 0.2
"""Between two looks at a terminal that is followed."""

GONE_SECONDS = 60.0
"""For a daemon to come back; a restart takes one."""


def read(
    terminal: TerminalId,
    lines: Annotated[
        int | None, typer.Option("--lines", "-n", min=1, max=100_000, help="Only the last so many lines.")
    ] = None,
    after: Annotated[int | None, typer.Option(min=0, help="Only what comes after this offset.")] = None,
    screen: Annotated[bool, typer.Option("--screen", help="As it looks now.")] = False,
    raw: Annotated[
        bool, typer.Option("--raw", help="The bytes as they came; they may do anything to your terminal.")
    ] = False,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until it ends; Ctrl-C leaves it running.")
    ] = False,
    as_json_: Annotated[
        bool, typer.Option("--json", help="For programs; one piece, with its offsets.")
    ] = False,
) -> None:
    """Show what a terminal printed: all that is kept of it, unless told otherwise."""
    if screen and (raw or follow or lines or after is not None):
        raise typer.BadParameter("--screen shows the screen as it is now; leave the other options out.")
    if lines and after is not None:
        raise typer.BadParameter("Either --lines or --after: both say where to begin.")
    mode: Mode = "screen" if screen else "raw" if raw else "text"
    with reach("person") as link:
        found = which(link, terminal)
        piece: Row = link.get("terminals", found, "output", mode=mode, lines=lines, after=after)
        _show(piece, mode, as_json_, is_stream=follow)
        if as_json_ and not follow:
            return
        at = _rest(link, found, mode, piece, as_json_)
    if follow:
        _follow(found, mode, at, as_json_)
    if mode == "text" and not as_json_ and sys.stdout.isatty():
        text("\n")


def _rest(link: Link, terminal: str, mode: Mode, piece: Row, for_programs: bool) -> int:
    """Show what was there when it was asked for first; the offset after it."""
    end: int = piece["end"]
    while mode != "screen" and piece["next"] < end:
        more: Row = link.get("terminals", terminal, "output", mode=mode, after=piece["next"])
        if more["next"] == piece["next"]:
            break  # the rest is the beginning of something unfinished
        _show(more, mode, for_programs, is_stream=True)
        piece = more
    return piece["next"]


def _follow(terminal: str, mode: Mode, at: int, for_programs: bool) -> None:
    """Show what comes until the terminal has ended, whatever becomes of the daemon meanwhile."""
    until = time.monotonic() + GONE_SECONDS
    while True:
        try:
            with reach("person") as link:
                _watch(link, terminal, mode, at, for_programs)
                return
        except _Gone as gone:
            at, until = gone.at, max(until, gone.seen + GONE_SECONDS)
        except Failure as failure:
            if failure.code is not Code.NO_DAEMON or time.monotonic() > until:
                raise
        time.sleep(LOOK_SECONDS)


class _Gone(Exception):
    """The daemon went away while a terminal was followed."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at
        self.seen = time.monotonic()


def _watch(link: Link, terminal: str, mode: Mode, at: int, for_programs: bool) -> None:
    """The same, for as long as this daemon lives."""
    while True:
        try:
            running: bool = link.get("terminals", terminal)["running"]
            piece: Row = link.get("terminals", terminal, "output", mode=mode, after=at)
        except Failure as failure:
            if failure.code is Code.NO_DAEMON:
                raise _Gone(at) from None
            raise
        if piece["next"] > at:
            _show(piece, mode, for_programs, is_stream=True)
            at = piece["next"]
        elif not running:
            return
        else:
            time.sleep(LOOK_SECONDS)


def _show(piece: Row, mode: Mode, for_programs: bool, *, is_stream: bool) -> None:
    if for_programs:
        as_json(piece, line=is_stream)
        return
    if piece["left_out"]:
        note((f"{piece['left_out']:,} bytes before this are no longer kept.", "yellow"))
    if mode == "raw":
        raw_bytes(base64.b64decode(piece["base64"]))
    else:
        text(piece["text"] + ("\n" if mode == "screen" else ""))
