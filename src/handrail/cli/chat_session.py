"""One prompt from the command line: sent, followed to its end, with whatever needs the person asked in between.

Owns the two flows (what is said, what is asked and done) and what Ctrl-C means. Does not know how either is shown
(conversing.py, question.py), nor what the agent does.
"""

import json
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection

from handrail.cli.client import Live, listen
from handrail.cli.exact import exact_line
from handrail.cli.failure import Code, Failure
from handrail.cli.interactive.keyboard import Hand, Inbox, Keyboard
from handrail.cli.interactive.question import Question
from handrail.cli.render.chat_output import Busy
from handrail.cli.render.formats import Row
from handrail.cli.render.output import note

TICK = 0.05
"""Seconds between two looks at what is asked, while nothing is said."""
BURST = 100
"""Batches of facts between two looks at what is said, at most: there is always more where many are at work."""
LAST_FACTS = 2.0
"""Seconds for the facts to come to the end that the answer has come to: they are on their way."""


@dataclass(frozen=True, slots=True)
class Whom:
    """Whom a prompt is for; the thread's own agent unless named."""

    agent: str | None = None
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Our own agent's way to a model, from this command's environment: for this thread alone, and kept nowhere."""


class Ear(Protocol):
    """Whoever is told what becomes of a prompt."""

    def said(self, flow: Row) -> None:
        """What the agent said."""
        ...

    def began_or_ended(self, activity: Row) -> None:
        """A fact about what the agent does."""
        ...

    def passes(self, doing: str) -> None:
        """Time; with what, in a few words, if anything."""
        ...

    def rest(self) -> None:
        """Something else is about to be written."""
        ...


class Talk:
    """A person and an agent, on one thread."""

    def __init__(self, live: Live, thread: str, ear: Ear) -> None:
        self._live = live
        self._thread = thread
        self._ear = ear
        self._inbox = Inbox([row["id"] for row in live.state["approvals"]], self._hear)
        self._busy = Busy(thread)
        self._elsewhere: set[str] = set()

    def prompt(self, words: str, whom: Whom, *, queue: bool = False) -> str:
        """Say something, and follow the answer; how it ended."""
        link = self._live.link
        rev: int = link.get("threads", self._thread, limit=1)["rev"]
        body: Row = {"text": words, "agent": whom.agent, "queue": queue}
        if whom.env:
            body["env"] = dict(whom.env)
        with listen(link, f"threads/{self._thread}/live?after={rev}") as flow:
            prompted: Row = link.post("threads", self._thread, "prompt", body=body)
            return self._follow(flow, prompted)

    def _follow(self, flow: ClientConnection, prompted: Row) -> str:
        answer = _Answer(prompted)
        while answer.stop is None:
            try:
                message: Any = _heard(flow)
                if message is not None:
                    self._ear.said(answer.of(message))
                self._ask()
                self._ear.passes(self._busy.line(time.monotonic()))
            except KeyboardInterrupt:
                self._stop(answer)
        self._hear_out(answer.operation)
        return answer.stop

    def _stop(self, answer: "_Answer") -> None:
        """Ctrl-C stops the agent; a second one, before it has stopped, leaves."""
        if answer.operation is None or answer.stopping:
            raise KeyboardInterrupt
        answer.stopping = True
        self._ear.rest()
        note(("Stopping; Ctrl-C again leaves without waiting.", "dim"))
        with suppress(Failure):  # it has ended by itself
            self._live.link.post("operations", answer.operation, "cancel")

    def _hear(self, entries: list[Row]) -> None:
        for activity in self._busy.hear(entries, time.monotonic()):
            self._ear.began_or_ended(activity)

    def _hear_out(self, operation: str | None) -> None:
        """What was still told of it: the facts come another way than what is said, and may be behind."""
        until = time.monotonic() + LAST_FACTS
        while operation and not self._busy.is_over(operation) and time.monotonic() < until:
            self._inbox.hear(self._live.wait(max(0.0, until - time.monotonic())))

    def _ask(self) -> None:
        """Whatever needs the person because of this conversation."""
        for _ in range(BURST):
            if not (facts := self._live.wait(0)):
                break
            self._inbox.hear(facts)
        waiting = self._inbox.first()
        if waiting is None or waiting in self._elsewhere:
            return
        try:
            asked: Row = self._live.link.get("approvals", waiting)
        except Failure as problem:
            if problem.code is Code.NO_DAEMON:
                raise
            self._inbox.drop(waiting)
            return
        if asked["caller"].get("thread") != self._thread:
            self._inbox.drop(waiting)  # of another: it waits where everything does
        elif sys.stdin.isatty() and sys.stdout.isatty():
            self._ear.rest()
            with Keyboard() as keyboard:
                Question(Hand(self._live, keyboard, self._inbox, asked), asked).put()
        else:
            self._elsewhere.add(waiting)
            self._ear.passes("")
            note((f"Needs you: {exact_line(asked['title'])}", "yellow"), f"   handrail approve {waiting}")


class _Answer:
    """What is known of the answer so far."""

    def __init__(self, prompted: Row) -> None:
        self.operation: str | None = prompted["operation"]
        self.stop: str | None = None
        self.stopping = False
        self._prompt: str = prompted["message"]
        self._roles: dict[str, str] = {}

    def of(self, flow: Row) -> Row:
        """The flow without what people said; notes how the answer ends."""
        for message in flow["messages"]:
            self._roles[message["id"]] = message["role"]
            if message["id"] == self._prompt:
                self.operation = message["operation"] or self.operation
            elif message["role"] == "assistant" and message["operation"] == self.operation:
                self.stop = message["stop"] if message["ended_at"] is not None else self.stop
        parts = [part for part in flow["parts"] if self._roles.get(part["message"]) != "user"]
        return {**flow, "parts": parts}


def _heard(flow: ClientConnection) -> Any:
    try:
        return json.loads(flow.recv(timeout=TICK))
    except TimeoutError:
        return None
    except (WebSocketException, OSError):
        raise Failure(
            "The daemon went away in the middle of the answer. What was said is kept; `handrail threads` shows it.",
            Code.NO_DAEMON,
        ) from None
