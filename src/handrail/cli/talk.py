"""One prompt from the command line: sent, followed to its end, with whatever needs the person asked in between.

Owns the two flows (what is said, what is asked) and what Ctrl-C means. Does not know how either is shown (speech.py,
question.py), nor what the agent does.
"""

import json
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection

from handrail.cli.exact import exact_line
from handrail.cli.failure import Code, Failure
from handrail.cli.hand import Hand
from handrail.cli.inbox import Inbox
from handrail.cli.keyboard import Keyboard
from handrail.cli.live import Live, listen
from handrail.cli.question import Question
from handrail.cli.show import note
from handrail.cli.words import Row

TICK = 0.05
"""Seconds between two looks at what is asked, while nothing is said."""


class Talk:
    """A person and an agent, on one thread."""

    def __init__(
        self, live: Live, thread: str, said: Callable[[Row], None], rest: Callable[[], None]
    ) -> None:
        """`said` gets every flow of the agent's answers; `rest` is called before anything else is written."""
        self._live = live
        self._thread = thread
        self._said = said
        self._rest = rest
        self._inbox = Inbox([row["id"] for row in live.state["approvals"]])
        self._elsewhere: set[str] = set()

    def prompt(self, words: str, agent: str | None, *, queue: bool = False) -> str:
        """Say something, and follow the answer; how it ended."""
        link = self._live.link
        rev: int = link.get("threads", self._thread, limit=1)["rev"]
        body = {"text": words, "agent": agent, "queue": queue}
        with listen(link, f"threads/{self._thread}/live?after={rev}") as flow:
            prompted: Row = link.post("threads", self._thread, "prompt", body=body)
            return self._follow(flow, prompted)

    def _follow(self, flow: ClientConnection, prompted: Row) -> str:
        answer = _Answer(prompted)
        while answer.stop is None:
            try:
                message: Any = _heard(flow)
                if message is not None:
                    self._said(answer.of(message))
                self._ask()
            except KeyboardInterrupt:
                self._stop(answer)
        return answer.stop

    def _stop(self, answer: "_Answer") -> None:
        """Ctrl-C stops the agent; a second one, before it has stopped, leaves."""
        if answer.operation is None or answer.stopping:
            raise KeyboardInterrupt
        answer.stopping = True
        self._rest()
        note(("Stopping; Ctrl-C again leaves without waiting.", "dim"))
        with suppress(Failure):  # it has ended by itself
            self._live.link.post("operations", answer.operation, "cancel")

    def _ask(self) -> None:
        """Whatever needs the person because of this conversation."""
        self._inbox.hear(self._live.wait(0))
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
            self._rest()
            with Keyboard() as keyboard:
                Question(Hand(self._live, keyboard, self._inbox, asked), asked).put()
        else:
            self._elsewhere.add(waiting)
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
