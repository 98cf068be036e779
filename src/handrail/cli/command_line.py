"""The `handrail` command: all subcommands, and the one place that turns a Failure into a message and an exit code."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any, ClassVar, TextIO, cast

import typer

from handrail import __version__
from handrail.cli.command_help import GroupWithHeadings, plain_app
from handrail.cli.failure import Failure
from handrail.cli.render.output import note, say

EXAMPLES = """\
handrail up                         start Handrail and open its page
handrail calls -f                   watch calls as they happen
handrail approvals -f               answer approvals in this terminal
handrail cancel c3f                 stop a call; its output is kept
handrail complete c3f               give the agent the output so far
handrail rules test 'git push -f'   show which rule decides, and why
handrail undo c3f                   restore the files that a call changed
handrail shell                      open a shell that agents can read
handrail chat                       talk with an agent
handrail keys set anthropic         store an API key for Handrail's agent
handrail search 'flaky test'        search conversations and calls
handrail pair                       answer from your phone
handrail demo                       try everything with a scripted agent
handrail connect claude             let Handrail decide about its tools"""


class HandrailHelp(GroupWithHeadings):
    """The overview that `handrail --help` prints."""

    headings: ClassVar = {
        "Run": ("up", "open", "pair", "sign-ins", "status", "restart", "down", "demo"),
        "Decide": ("calls", "cancel", "complete", "approvals", "approve", "deny", "pause", "resume", "undo"),
        "Terminals": ("terminals", "terminal", "shell"),
        "Agents": (
            *("agents", "agent", "keys", "chat"),
            *("threads", "thread", "transcripts", "export", "import", "search"),
        ),
        "Rules": ("rules", "trust"),
        "Servers": ("servers",),
        "Clients": ("connect", "disconnect", "clients", "editors", "mcp", "credential", "credentials"),
        "Diagnose": ("doctor", "config"),
    }


COMMANDS: Sequence[tuple[str, str, tuple[str, ...]]] = (
    ("handrail.cli.commands.lifecycle", "add_to", ("up", "down", "restart", "open")),
    ("handrail.cli.commands.status", "add_to", ("status", "doctor", "config", "mcp")),
    ("handrail.cli.commands.calls", "add_to", ("calls", "cancel", "complete")),
    ("handrail.cli.commands.approvals", "add_to", ("approvals",)),
    ("handrail.cli.commands.approvals", "add_answers_to", ("approve", "deny")),
    ("handrail.cli.commands.pause", "add_to", ("pause", "resume")),
    ("handrail.cli.commands.rules", "add_to", ("rules",)),
    ("handrail.cli.commands.servers", "add_to", ("servers",)),
    ("handrail.cli.commands.trust", "add_to", ("trust",)),
    ("handrail.cli.commands.undo", "add_to", ("undo",)),
    ("handrail.cli.commands.terminals", "add_list_to", ("terminals",)),
    ("handrail.cli.commands.terminals", "add_to", ("terminal",)),
    ("handrail.cli.commands.shell", "add_to", ("shell",)),
    ("handrail.cli.commands.agents", "add_to", ("agents", "agent")),
    ("handrail.cli.commands.chat", "add_to", ("chat",)),
    ("handrail.cli.commands.agents", "add_keys_to", ("keys",)),
    ("handrail.cli.commands.threads", "add_to", ("threads", "thread", "export", "import")),
    ("handrail.cli.commands.transcripts", "add_to", ("transcripts",)),
    ("handrail.cli.commands.clients", "add_to", ("clients",)),
    ("handrail.cli.commands.editors", "add_to", ("editors",)),
    ("handrail.cli.commands.threads", "add_search_to", ("search",)),
    ("handrail.cli.commands.connect", "add_to", ("connect", "disconnect")),
    ("handrail.cli.commands.credentials", "add_to", ("credential", "credentials")),
    ("handrail.cli.commands.sign_ins", "add_to", ("sign-ins",)),
    ("handrail.cli.commands.pair", "add_to", ("pair",)),
    ("handrail.cli.commands.demo", "add_to", ("demo",)),
)
"""The module, the function that adds its commands, and their names."""


def build_app(only: str = "") -> typer.Typer:
    """Build the app with all commands; with the name of one in `only`, without the others.

    Importing the modules of all commands takes longer than most commands run.
    """
    app = plain_app(HandrailHelp, epilog=EXAMPLES, no_args_is_help=True, invoke_without_command=True)
    chosen = [row for row in COMMANDS if only in row[2]]
    for module, function, _ in chosen or COMMANDS:
        getattr(import_module(module), function)(app)
    app.callback()(handrail)
    return app


def handrail(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """See, approve, cancel and complete every tool call your coding agents make."""
    if version:
        say(__version__)
        raise typer.Exit


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        cast("Any", stream).reconfigure(errors="backslashreplace")
    try:
        build_app(*arguments[:1])(arguments, prog_name="handrail")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except Failure as failure:
        note(str(failure))
        return failure.code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        _discard(sys.stdout)
        return 1
    return 0


def _discard(stream: TextIO) -> None:
    """Point a closed pipe at /dev/null: flushing its buffer at exit would raise a second BrokenPipeError."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
