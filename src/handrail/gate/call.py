"""A call: one use of a tool, from the moment it is opened until its work has really ended.

Owns the facts of one call and derives its status from them. It does not decide whether the call may act
(gate.py), and does not know what the tool does.
"""

import secrets
from dataclasses import dataclass, fields, replace
from typing import assert_never

import anyio

from handrail.errors import Unwritable
from handrail.gate.approval import Approval
from handrail.gate.feedback import with_words
from handrail.gate.tool import Plan, ReceiptFacts
from handrail.store.actor import Actor
from handrail.store.calls import Status
from handrail.store.events import CallHandedBack, CallOpened, CallSettled, CallStarted, CallStopped
from handrail.store.journal import Journal
from handrail.store.values import Assurance, Caller, Ending, Json, Receipt, Result


def new_id(letter: str) -> str:
    """A short name for a new thing; random, so that one lost in a crash is never given out twice."""
    return f"{letter}{secrets.token_hex(5)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a call ended, and by whom."""

    ending: Ending
    by: Actor
    message: str = ""
    result: Result | None = None


class Call:
    """One use of a tool; its outcome is set once."""

    def __init__(
        self,
        journal: Journal,
        tool: str,
        title: str,
        input: Json,
        caller: Caller,
        id: str,
        assurance: Assurance = "bound",
    ) -> None:
        self.id = id
        self.tool = tool
        self.title = title
        self.input = input
        self.caller = caller
        self.assurance: Assurance = assurance
        self.scope = anyio.CancelScope()
        self.due = anyio.Event()
        """Set when the client is due an answer: the call is settled, or is handed back."""
        self._settled = anyio.Event()
        self.since = anyio.current_time()
        self.plan: Plan | None = None
        """What the tool does; None until it is run."""
        self.approval: Approval | None = None
        self.edited: Json | None = None
        """The input as a person changed it; None until it is run so."""
        self.said = ""
        """What a person told the agent as they allowed it."""
        self.terminal: str | None = None
        self.unwinding = False
        """The result is known, but something the work left behind is still being ended."""
        self.handed_back = False
        self.client_gone = False
        self.outcome: Outcome | None = None
        self.receipt = Receipt(ended_by="", stopped=False)
        self.opened_seq = 0
        self.handed_back_seq = 0
        self.settled_seq = 0
        self.unrecorded: Unwritable | None = None
        """Why the outcome could not be written down; then it is not told either."""
        self.journal = journal

    @classmethod
    def open(
        cls,
        journal: Journal,
        tool: str,
        title: str,
        input: Json,
        caller: Caller,
        assurance: Assurance = "bound",
    ) -> "Call":
        """A new call, journaled."""
        call = cls(journal, tool, title, input, caller, new_id("c"), assurance)
        opened = CallOpened(
            call=call.id, tool=tool, title=title, input=input, caller=caller, assurance=assurance
        )
        call.opened_seq = journal.append(opened)
        return call

    @property
    def status(self) -> Status:
        if self.outcome is not None:
            return self.outcome.ending
        return "waiting" if self.approval is not None and self.approval.open else "running"

    @property
    def ended_by(self) -> Actor | None:
        return None if self.outcome is None else self.outcome.by

    @property
    def elapsed_ms(self) -> int:
        return int((anyio.current_time() - self.since) * 1000)

    async def settled(self) -> None:
        """Return when the outcome is fixed and durable; raise Unwritable when it cannot be recorded."""
        await self._settled.wait()
        await self.recorded()

    async def recorded(self) -> None:
        """Return when all that a settled call's record needs is durable."""
        if self.unrecorded is not None:
            raise self.unrecorded
        await self.journal.committed(self.settled_seq)
        await self.journal.committed(self.opened_seq)

    def start(self, plan: Plan, allowed_by: Actor, rules: tuple[str, ...] = ()) -> int:
        """The call may act from now on; returns the sequence number to await before an effect."""
        started = CallStarted(
            call=self.id, claims=plan.claims, allowed_by=str(allowed_by), rules=rules, files=plan.files
        )
        return self.journal.append(started)

    def use_terminal(self, id: str) -> None:
        self.terminal = id

    def add_receipt(self, facts: ReceiptFacts) -> None:
        known = {field.name: getattr(facts, field.name) for field in fields(facts)}
        self.receipt = replace(self.receipt, **{k: value for k, value in known.items() if value is not None})

    def keep_unwinding(self) -> None:
        self.unwinding = True

    def hand_back(self) -> int:
        """The client is told to ask later, once; returns the fact's sequence number."""
        if self.outcome is None and not self.handed_back:
            self.handed_back = True
            self.due.set()
            self.handed_back_seq = self.journal.append(CallHandedBack(call=self.id))
        return self.handed_back_seq

    def settle(self, outcome: Outcome, *, stopped: bool = False) -> bool:
        """Fix the outcome; False when it was fixed before, and then nothing changes."""
        if self.outcome is not None:
            return False
        told = with_words(outcome.result, self.input, self.edited, self.said)
        outcome = self.outcome = replace(outcome, result=told)
        self.receipt = replace(self.receipt, ended_by=str(outcome.by), stopped=stopped)
        self.due.set()
        self._settled.set()
        if self.approval is not None:
            self.approval.withdraw(_moot(outcome))
        event = CallSettled(
            call=self.id,
            ending=outcome.ending,
            by=str(outcome.by),
            message=outcome.message,
            result=outcome.result,
            receipt=self.receipt,
        )
        self.settled_seq = self.journal.append(event)
        return True

    def stop(self) -> None:
        """Nothing more is done about the work: it has really ended, or the receipt names what is left of it.

        For a call that was settled before, that is a fact of its own.
        """
        if self.outcome is None or self.receipt.stopped:
            return
        self.receipt = replace(self.receipt, stopped=not self.receipt.processes_left)
        self.journal.append(CallStopped(call=self.id, receipt=self.receipt))


def _moot(outcome: Outcome) -> str:
    match outcome.ending:
        case "cancelled" | "completed":
            return f"the call was {outcome.ending} by {outcome.by}"
        case "done" | "failed" | "denied" | "interrupted":
            return f"the call is {outcome.ending}"
        case _:
            assert_never(outcome.ending)
