"""All commands put together, and the one place where a failure becomes a sentence and an exit status.

Does not know what any command does.
"""

import os
import sys
from typing import Annotated, Any, TextIO, cast

import typer

from handrail import __version__
from handrail.cli.command_help import plain
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
handrail calls -f                   watch every call as it happens
handrail approvals -f               be asked here, in the terminal
handrail cancel c3f                 stop a call; what it printed is kept
handrail complete c3f               give the agent the output so far, and let it go on
handrail rules test 'git push -f'   which rule decides, and why
handrail undo c3f                   put back the files that a call changed
handrail shell                      your own shell, in a terminal that agents may read
handrail terminals                  the terminals that run; handrail terminal read ID shows one
handrail chat                       talk with an agent; handrail agents says which there are
handrail keys set anthropic         all that our own agent needs; handrail agent is it, for an editor
handrail search 'flaky test'        find what was said, asked for or printed
handrail demo                       see all of it at work, without an agent
claude mcp add handrail -- handrail mcp"""

app = plain(epilog=EXAMPLES, no_args_is_help=True, invoke_without_command=True)
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
    """Run one command; the exit status."""
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
        _forget(sys.stdout)
        return 1
    return 0


def _forget(stream: TextIO) -> None:
    """Whoever read us has left; what is still held must not be written at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
