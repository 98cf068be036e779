"""`handrail chat`: talk with an agent in the terminal, or send one prompt and print updates as JSON.

Selects the thread and the agent; `chat_session` runs the conversation. Our own agent gets the provider variables (API keys,
base URLs, model) of this command's environment.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from handrail.cli.chat_session import ChatSession, Recipient
from handrail.cli.client import Link, Live
from handrail.cli.command_help import add_command
from handrail.cli.commands.threads import describe_asks, find_thread
from handrail.cli.exact import exact_line
from handrail.cli.failure import Code, Failure
from handrail.cli.folder import workspace
from handrail.cli.interactive.keyboard import TypedLines
from handrail.cli.render.chat_output import AnswerPrinter, StatusLine, show_stop_reason
from handrail.cli.render.formats import format_clock
from handrail.cli.render.output import note, print_json, say
from handrail.config import OWN_AGENT, PROVIDER_VARIABLES

if TYPE_CHECKING:
    from handrail.cli.wire import ActivityEnded, ActivityStarted, ThreadFlow, ThreadView

DEMO = "demo"
"""The scripted demo agent; a conversation with it does not make it the default agent."""
AsJson = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON object per update; the last has stop_reason and thread."),
]


def add_to(app: typer.Typer) -> None:
    add_command(
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
        list[str] | None,
        typer.Argument(metavar="PROMPT", help="The prompt; without it, you type in the terminal."),
    ] = None,
    agent: Annotated[
        str | None, typer.Option("--agent", help="Which agent; `handrail agents` lists them.")
    ] = None,
    thread: Annotated[str | None, typer.Option("--thread", help="Continue this conversation.")] = None,
    new: Annotated[
        bool, typer.Option("--new", help="Start a new conversation instead of continuing the last.")
    ] = False,
    folder: Annotated[
        Path | None, typer.Option("--workspace", help="The project; default: the current one.")
    ] = None,
    thoughts: Annotated[bool, typer.Option("--thoughts", help="Also show the agent's thoughts.")] = False,
    as_json_: AsJson = False,
) -> None:
    """Talk with an agent. Give one prompt, or none to chat until Ctrl-D."""

    text = " ".join(prompt or ()) or _read_piped_prompt()
    if as_json_ and not text:
        raise typer.BadParameter("Give a prompt, or pipe one in: --json is for programs.")
    status = StatusLine()
    status.show("Connecting to Handrail…")
    with _clear_at_end(status), Live("person") as live:
        row = _select_thread(live.link, thread, new, agent, folder)
        name = agent or row["agent"]
        recipient = Recipient(agent, provider_variables_for(name, os.environ))
        status.clear()
        if as_json_:
            stop = prompt_as_json(live, row["id"], text, recipient)
        elif text:
            if sys.stderr.isatty():
                note((f"{name} · {exact_line(row['title']) or 'a new conversation'} ({row['id']})", "dim"))
            stop = TerminalView(live, row["id"], thoughts, name).prompt(text, recipient)
        else:
            _show_greeting(row, name)
            stop = converse(TerminalView(live, row["id"], thoughts, name, TypedLines()), recipient)
    if stop != "end_turn":
        raise typer.Exit(Code.FAILED)


@contextmanager
def _clear_at_end(status: StatusLine) -> Generator[None]:
    try:
        yield
    finally:
        status.clear()


def _select_thread(
    link: Link, thread: str | None, new: bool, agent: str | None, folder: Path | None
) -> ThreadView:
    if thread is not None:
        if new:
            raise typer.BadParameter("Give --thread or --new, not both.")
        return link.get("threads", find_thread(link, thread), limit=1)
    where, name = workspace(folder), agent or _default_agent(link)
    place = str(where) if where else None
    if new:
        return link.post("threads", body={"workspace": place, "agent": name})
    return link.post("threads", "default", body={"workspace": place, "agent": name})


def _default_agent(link: Link) -> str | None:
    """Our own agent on first use, if this environment has a provider variable; else None: the daemon chooses."""

    if not provider_variables(os.environ):
        return None
    last = link.get("threads", limit=1)
    return None if any(row["messages"] and row["agent"] != DEMO for row in last) else OWN_AGENT


def _read_piped_prompt() -> str:
    return "" if sys.stdin.isatty() else sys.stdin.read().strip()


def _show_greeting(row: ThreadView, agent: str) -> None:
    title = exact_line(row["title"]) or "a new conversation"
    note((f"{agent} · {title} ({row['id']})", "bold"))
    if agent == row["agent"] and (words := describe_asks(row)):
        note((f"{agent} {words} in its present mode. The page offers the mode that asks.", "yellow"))
    note(("Enter sends, also while the agent works. Ctrl-C stops the agent, Ctrl-D leaves.", "dim"))


LEAVE = ("/quit", "/exit", "/q")


class TerminalView:
    """Shows a conversation on the terminal."""

    def __init__(
        self, live: Live, thread: str, thoughts: bool, agent: str, typed: TypedLines | None = None
    ) -> None:
        self._agent = agent
        self._since = time.monotonic()
        """When the prompt was sent, or its answer last grew."""
        self._has_answered = False
        self._printer = AnswerPrinter(thoughts=thoughts)
        self._status = StatusLine()
        self._session = ChatSession(live, thread, self, typed)

    def prompt(self, text: str, recipient: Recipient) -> str:
        self._since = time.monotonic()
        self.tick("")
        try:
            stop = self._session.prompt(text, recipient)
        finally:
            self.end_line()
        show_stop_reason(stop)
        return stop

    def show_parts(self, flow: ThreadFlow) -> None:
        if flow["parts"]:
            self._status.clear()
            self._since, self._has_answered = time.monotonic(), True
        for part in flow["parts"]:
            self._printer.show(part)

    def show_activity(self, activity: ActivityStarted | ActivityEnded) -> None:
        """Write nothing: the status line shows activities."""

    def tick(self, activity: str) -> None:
        if not self._printer.has_open_line:  # streaming text already shows progress
            self._status.show(activity or self._describe_wait())

    def _describe_wait(self) -> str:
        what = f"{self._agent} is at work" if self._has_answered else f"starting {self._agent}"
        return f"{what} · {format_clock(time.monotonic() - self._since)}"

    def end_line(self) -> None:
        self._status.clear()
        self._printer.end_line()


class JsonView:
    """Prints each update as a JSON line."""

    def show_parts(self, flow: ThreadFlow) -> None:
        for part in flow["parts"]:
            print_json({"update": part["kind"], **part}, line=True)

    def show_activity(self, activity: ActivityStarted | ActivityEnded) -> None:
        print_json({"update": "activity", **activity}, line=True)

    def tick(self, activity: str) -> None: ...

    def end_line(self) -> None: ...


def converse(view: TerminalView, recipient: Recipient) -> str:
    """Prompt for lines until the person leaves. Always `end_turn`: leaving is a success."""
    while (line := _read_line()) is not None:
        try:
            view.prompt(line, recipient)
        except Failure as problem:
            if problem.code is Code.NO_DAEMON:
                raise
            note((str(problem), "red"))
    return "end_turn"


def prompt_as_json(live: Live, thread: str, text: str, recipient: Recipient) -> str:
    """Send one prompt, print updates as JSON lines, and return the stop reason."""
    stop = ChatSession(live, thread, JsonView()).prompt(text, recipient)
    print_json({"stop_reason": stop, "thread": thread}, line=True)
    return stop


def _read_line() -> str | None:
    """The next line typed; None when the person leaves."""
    with suppress(ImportError):
        import_module("readline")  # enables line editing in `input`
    while True:
        try:
            line = input("> ").strip()
        except EOFError:
            say("")
            return None
        except KeyboardInterrupt:
            say("")
            continue
        if line in LEAVE:
            return None
        if line:
            return line


def provider_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The provider variables that are set."""
    return {name: environ[name] for name in PROVIDER_VARIABLES if environ.get(name, "").strip()}


def provider_variables_for(agent: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The provider variables for this agent; empty unless it is our own."""
    return provider_variables(environ) if agent == OWN_AGENT else {}
