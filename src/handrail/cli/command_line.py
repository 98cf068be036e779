"""The `handrail` command: all subcommands, and the one place that turns a Failure into a message and an exit code."""

import os
import sys
from typing import Annotated, Any, ClassVar, TextIO, cast

import typer

from handrail import __version__
from handrail.cli.command_help import GroupWithHeadings, plain_app
from handrail.cli.commands import (
    agents,
    approvals,
    calls,
    chat,
    credentials,
    demo,
    lifecycle,
    rules,
    shell_profile,
    status,
    terminals,
    threads,
    trust,
    undo,
)
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
handrail demo                       try everything with a scripted agent
claude mcp add handrail -- handrail mcp"""


class HandrailHelp(GroupWithHeadings):
    """The overview that `handrail --help` prints."""

    headings: ClassVar = {
        "Run": ("up", "open", "status", "restart", "down", "demo"),
        "Decide": ("calls", "cancel", "complete", "approvals", "approve", "deny", "undo"),
        "Terminals": ("terminals", "terminal", "shell"),
        "Agents": (
            *("agents", "agent", "keys", "chat"),
            *("threads", "thread", "export", "import", "search"),
        ),
        "Rules": ("rules", "trust"),
        "Clients": ("mcp", "credential", "credentials"),
        "Diagnose": ("doctor", "config"),
    }


app = plain_app(HandrailHelp, epilog=EXAMPLES, no_args_is_help=True, invoke_without_command=True)
COMMANDS = (
    lifecycle.add_to,
    status.add_to,
    calls.add_to,
    approvals.add_to,
    approvals.add_answers_to,
    rules.add_to,
    trust.add_to,
    undo.add_to,
    terminals.add_list_to,
    terminals.add_to,
    shell_profile.add_to,
    agents.add_to,
    chat.add_to,
    agents.add_keys_to,
    threads.add_to,
    threads.add_search_to,
    credentials.add_to,
    demo.add_to,
)
for add_to in COMMANDS:
    add_to(app)


@app.callback()
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
        app(arguments, prog_name="handrail")
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
