"""Who was told of which question: a terminal that waits for input is news once.

Owns that memory. It does not notice the waiting (terminal/waiting/knowing.py) and types no answer.
"""

import time
from collections import OrderedDict

from handrail.gate.tool import CallReport
from handrail.store.values import Json
from handrail.terminal.terminal import Asks, Terminal
from handrail.terminal.wait.wait import LIKELY_SECONDS

MOST = 1000
"""Questions remembered; of an older one somebody may be told twice."""


class Askings:
    """The question last told, by terminal and caller."""

    def __init__(self) -> None:
        self._told: OrderedDict[tuple[str, str], float] = OrderedDict()

    def fresh(self, terminal: Terminal, who: str) -> Asks | None:
        """What it asks, when `who` does not know it yet. What is only likely a question must have stood for a while.

        A question from before the last input has its answer, and is not yet known to be gone.
        """
        asks = terminal.asks
        if asks is None or self._told.get((terminal.id, who)) == asks.since:
            return None
        if asks.since < (terminal.last_input_at or 0.0):
            return None
        return asks if asks.sure == "certain" or time.time() - asks.since >= LIKELY_SECONDS else None

    def heed(self, terminal: Terminal, call: CallReport) -> None:
        """A call whose command has a new question is handed back, so that somebody can answer."""
        is_waited_for = not call.handed_back and call.ended_by is None
        if is_waited_for and self.fresh(terminal, call.caller.key) is not None:
            self.tell(terminal, call.caller.key)
            call.hand_back()

    def tell(self, terminal: Terminal, who: str) -> None:
        """`who` now knows what it asks."""
        if terminal.asks is None:
            return
        self._told[terminal.id, who] = terminal.asks.since
        self._told.move_to_end((terminal.id, who))
        while len(self._told) > MOST:
            self._told.popitem(last=False)


def advice(asks: Asks, terminal: str, then: str) -> str:
    """What to do about a question, for a model. `then` says how to go on waiting."""
    prompt = f" Its prompt: {asks.prompt}" if asks.prompt else ""
    if asks.secret:
        return (
            f"It waits for a secret, which only a person may type; they see the question in terminal {terminal}.{prompt}\n"
            f"Tell them, then {then}."
        )
    sure = "It waits for input." if asks.sure == "certain" else "It probably waits for input."
    return f'{sure}{prompt}\nAnswer with send_to_terminal (terminalId "{terminal}"), then {then}.'


def question_of(asks: Asks, terminal: str, then: str) -> Json:
    """A question as data."""
    return {
        "prompt": asks.prompt,
        "sure": asks.sure,
        "secret": asks.secret,
        "advice": advice(asks, terminal, then),
    }
