"""Which caller has seen which input request, so that each is reported once.

Requests are detected in terminal/wait/. No answer is typed here.
"""

import time
from collections import OrderedDict

from handrail.gate.tool import CallReport
from handrail.store.values import Json
from handrail.terminal.terminal import InputRequest, Terminal
from handrail.terminal.wait.wait import LIKELY_SECONDS

MOST = 1000
"""Requests remembered; an older one may be reported a second time."""


class SeenInputRequests:
    """The last input request each caller has seen, by terminal."""

    def __init__(self) -> None:
        self._told: OrderedDict[tuple[str, str], float] = OrderedDict()

    def find_new(self, terminal: Terminal, who: str) -> InputRequest | None:
        """The terminal's input request, if it is new to `who`.

        A probable request must have lasted LIKELY_SECONDS. A request from before the last input has been
        answered, even if the terminal still shows it.
        """
        asks = terminal.asks
        if asks is None or self._told.get((terminal.id, who)) == asks.since:
            return None
        if asks.since < (terminal.last_input_at or 0.0):
            return None
        return asks if asks.sure == "certain" or time.time() - asks.since >= LIKELY_SECONDS else None

    def heed(self, terminal: Terminal, call: CallReport) -> None:
        """Hand the call back if its command has a new input request, so that the caller can answer."""
        is_waited_for = not call.handed_back and call.ended_by is None
        if is_waited_for and self.find_new(terminal, call.caller.key) is not None:
            self.mark_seen(terminal, call.caller.key)
            call.hand_back()

    def mark_seen(self, terminal: Terminal, who: str) -> None:
        """Mark the terminal's input request as seen by `who`."""
        if terminal.asks is None:
            return
        self._told[terminal.id, who] = terminal.asks.since
        self._told.move_to_end((terminal.id, who))
        while len(self._told) > MOST:
            self._told.popitem(last=False)


def advice(asks: InputRequest, terminal: str, then: str) -> str:
    """Advice for a model on how to answer. `then` is the advice on how to resume waiting."""
    prompt = f" Its prompt: {asks.prompt}" if asks.prompt else ""
    if asks.secret:
        return (
            f"It waits for a secret, which only a person may type; they see the question in terminal {terminal}.{prompt}\n"
            f"Tell them, then {then}."
        )
    sure = "It waits for input." if asks.sure == "certain" else "It probably waits for input."
    return f'{sure}{prompt}\nAnswer with send_to_terminal (terminalId "{terminal}"), then {then}.'


def question_of(asks: InputRequest, terminal: str, then: str) -> Json:
    """An input request as JSON."""
    return {
        "prompt": asks.prompt,
        "sure": asks.sure,
        "secret": asks.secret,
        "advice": advice(asks, terminal, then),
    }
