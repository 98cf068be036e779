"""A chat session: send a prompt, follow the answer to its end, and put approvals of this thread to the person.

Reads two streams: the thread's message parts, and the journal (approvals, activities). Also handles Ctrl-C. Rendering is
left to a `ChatView` and to `interactive.question`.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection

from handrail.cli.client import Live, open_websocket
from handrail.cli.exact import exact_line
from handrail.cli.failure import Code, Failure
from handrail.cli.interactive.keyboard import ApprovalKeys, Inbox, Keyboard, TypedLines
from handrail.cli.interactive.question import Question
from handrail.cli.render.chat_output import Activities
from handrail.cli.render.formats import format_count
from handrail.cli.render.output import note

if TYPE_CHECKING:
    from handrail.cli.wire import ActivityEnded, ActivityStarted, Entry, PromptBody, Prompted, ThreadFlow

TICK = 0.05
"""Seconds to wait for message parts before the journal is polled; bounds the delay of an approval."""
BURST = 100
"""Maximum journal batches read in one go: on a busy daemon they would otherwise starve the message stream."""
GOES_ON = ("end_turn", "max_tokens", "max_turn_requests")
"""Stop reasons after which the daemon sends the next queued prompt by itself."""
_BUSY = "This thread is at work, so your prompt waits in its queue. `--new` starts another thread."
LAST_FACTS = 2.0
"""Seconds to wait for the journal to reach the end of the operation after the answer has ended."""


@dataclass(frozen=True, slots=True)
class Recipient:
    """The agent that a prompt is sent to; None means the agent of the thread."""

    agent: str | None = None
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Provider variables for Handrail's own agent, from this command's environment. Used for this thread, never stored."""


class ChatView(Protocol):
    """Displays the progress of a prompt."""

    def show_parts(self, flow: ThreadFlow) -> None:
        """Show new or grown message parts."""
        ...

    def show_activity(self, activity: ActivityStarted | ActivityEnded) -> None:
        """Show that an activity of the agent started or ended."""
        ...

    def tick(self, activity: str) -> None:
        """Called on every tick with a short description of the current activity; empty without one."""
        ...

    def end_line(self) -> None:
        """End the current line: something else is about to be written."""
        ...


class ChatSession:
    """The conversation of one person with one thread."""

    def __init__(self, live: Live, thread: str, view: ChatView, typed: TypedLines | None = None) -> None:
        """`typed` gives the lines that the person types while the agent works."""
        self._live = live
        self._thread = thread
        self._view = view
        self._typed = typed
        self._queued: list[Prompted] = []
        self._inbox = Inbox([row["id"] for row in live.state["approvals"]], self._apply_entries)
        self._activities = Activities(thread)
        self._announced: set[str] = set()

    def prompt(self, text: str, recipient: Recipient) -> str:
        """Send a prompt, follow the answer, and return its stop reason. It never cancels what the thread does. Prompts that were queued meanwhile follow."""
        link = self._live.link
        thread = link.get("threads", self._thread, limit=1)
        rev, is_busy = thread["rev"], thread["operation"] is not None
        with open_websocket(link, f"threads/{self._thread}/live?after={rev}") as flow:
            self._queued = [self._post(text, recipient, queue=True)]
            if is_busy and not self._queued[0]["operation"]:
                note((_BUSY, "yellow"))
            stop = "end_turn"
            while self._queued and stop in GOES_ON:
                stop = self._follow(flow, self._queued.pop(0), recipient)
        if self._queued:
            note(
                (
                    f"Kept in the queue: {format_count(len(self._queued), 'message')}. The page sends them.",
                    "dim",
                )
            )
        return stop

    def _post(self, text: str, recipient: Recipient, *, queue: bool = False, steer: bool = False) -> Prompted:
        body: PromptBody = {"text": text, "agent": recipient.agent, "queue": queue, "steer": steer}
        if recipient.env:
            body["env"] = dict(recipient.env)
        return self._live.link.post("threads", self._thread, "prompt", body=body)

    def _send_typed(self, recipient: Recipient) -> None:
        """Give the agent a line that was typed while it works; queue it if the agent cannot take it."""
        line = self._typed.poll() if self._typed is not None else ""
        if not line:
            return
        self._view.end_line()
        try:
            prompted = self._post(line, recipient, steer=True)
        except Failure as problem:
            if problem.code is Code.NO_DAEMON:
                raise
            note((str(problem), "red"))
            return
        if prompted["steered"]:
            note(("Given to the agent while it works.", "dim"))
        else:
            self._queued.append(prompted)
            note(("Queued: the agent gets it when it has finished this.", "dim"))

    def _follow(self, flow: ClientConnection, prompted: Prompted, recipient: Recipient) -> str:
        answer = _Answer(prompted)
        while answer.stop is None:
            try:
                message = _receive(flow)
                if message is not None:
                    self._view.show_parts(answer.take(message))
                self._ask_first()
                self._send_typed(recipient)
                self._view.tick(self._activities.line(time.monotonic()))
            except KeyboardInterrupt:
                self._stop(answer)
        self._drain_events(answer.operation)
        return answer.stop

    def _stop(self, answer: _Answer) -> None:
        """Ctrl-C stops the agent; a second one, before it has stopped, leaves."""
        if answer.operation is None or answer.stopping:
            raise KeyboardInterrupt
        answer.stopping = True
        self._view.end_line()
        note(("Stopping. Press Ctrl-C again to leave without waiting.", "dim"))
        with suppress(Failure):  # the operation has already ended
            self._live.link.post("operations", answer.operation, "cancel")

    def _apply_entries(self, entries: list[Entry]) -> None:
        for activity in self._activities.apply(entries, time.monotonic()):
            self._view.show_activity(activity)

    def _drain_events(self, operation: str | None) -> None:
        """Read the rest of the operation's events: the journal is a separate stream and may lag behind the answer."""
        until = time.monotonic() + LAST_FACTS
        while operation and not self._activities.is_over(operation) and time.monotonic() < until:
            self._inbox.apply(self._live.wait(max(0.0, until - time.monotonic())))

    def _ask_first(self) -> None:
        """Put the first open approval of this thread to the person, if there is one."""
        for _ in range(BURST):
            if not (entries := self._live.wait(0)):
                break
            self._inbox.apply(entries)
        waiting = self._inbox.first()
        if waiting is None or waiting in self._announced:
            return
        try:
            approval = self._live.link.get("approvals", waiting)
        except Failure as problem:
            if problem.code is Code.NO_DAEMON:
                raise
            self._inbox.drop(waiting)
            return
        if approval["caller"]["thread"] != self._thread:
            self._inbox.drop(waiting)  # of another thread: it stays open, but is not asked here
        elif sys.stdin.isatty() and sys.stdout.isatty():
            self._view.end_line()
            with Keyboard() as keyboard:
                Question(ApprovalKeys(self._live, keyboard, self._inbox, approval), approval).ask()
        else:
            self._announced.add(waiting)
            self._view.tick("")
            note((f"Needs you: {exact_line(approval['title'])}", "yellow"), f"   handrail approve {waiting}")


class _Answer:
    """State of the answer: its operation, and its stop reason once it has ended."""

    def __init__(self, prompted: Prompted) -> None:
        self.operation = prompted["operation"]
        self.stop: str | None = None
        self.stopping = False
        self._prompt = prompted["message"]
        self._roles: dict[str, str] = {}

    def take(self, flow: ThreadFlow) -> ThreadFlow:
        """Take in an update; return it without the parts of user messages."""
        for message in flow["messages"]:
            self._roles[message["id"]] = message["role"]
            if message["id"] == self._prompt:
                self.operation = message["operation"] or self.operation
            elif message["role"] == "assistant" and message["operation"] == self.operation:
                is_over = message["ended_at"] is not None and message["stop"] != "steered"
                self.stop = message["stop"] if is_over else self.stop
        parts = [part for part in flow["parts"] if self._roles.get(part["message"]) != "user"]
        return {**flow, "parts": parts}


def _receive(flow: ClientConnection) -> ThreadFlow | None:
    try:
        return json.loads(flow.recv(timeout=TICK))
    except TimeoutError:
        return None
    except (WebSocketException, OSError):
        raise Failure(
            "The daemon went away during the answer. The conversation is kept; `handrail threads` lists it.",
            Code.NO_DAEMON,
        ) from None
