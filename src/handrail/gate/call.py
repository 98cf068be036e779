"""A call: one use of a tool, from opened to settled and stopped.

Holds the state of one call, journals its events and derives its status. It does not decide whether the call may
run (pipeline.py), and does not know what the tool does.
"""

import math
import secrets
from dataclasses import fields, replace
from typing import assert_never

import anyio

from handrail.errors import Unwritable
from handrail.gate.approval import Approval
from handrail.gate.feedback import add_feedback
from handrail.gate.tool import Image, Plan, ReceiptFacts
from handrail.lazy_dataclass import dataclass
from handrail.store.actor import Actor
from handrail.store.bell import Bell
from handrail.store.calls import Status
from handrail.store.events import CallHandedBack, CallOpened, CallSettled, CallStarted, CallStopped
from handrail.store.journal import Journal
from handrail.store.old_contents import add_contents
from handrail.store.values import Assurance, Caller, Ending, Json, Receipt, Result


def new_id(letter: str) -> str:
    """Generate a short id: a letter and random hex digits, so that an id lost in a crash is never reused."""
    return f"{letter}{secrets.token_hex(5)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a call ended, and by whom."""

    ending: Ending
    by: Actor
    message: str = ""
    result: Result | None = None

    @property
    def sentence(self) -> str:
        """The message with a full stop, for a text that goes on after it."""
        has_end = not self.message or self.message.endswith((".", "!", "?", "…", ":"))
        return self.message if has_end else f"{self.message}."


class Call:
    """One use of a tool. The outcome is set once. Implements `CallReport`."""

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
        """Set when the client must get a reply: the call is settled or handed back."""
        self._settled = Bell()
        self.since = anyio.current_time()
        self.took_ms: int | None = None
        """From its opening to its outcome; None while it has none."""
        self.plan: Plan | None = None
        """The plan that the tool runs; None until then."""
        self.approval: Approval | None = None
        self.edited: Json | None = None
        """The input as a person edited it; None if unedited or not started."""
        self.said = ""
        """The message to the agent from the person who allowed the call."""
        self.terminal: str | None = None
        self.image: Image | None = None
        """The image that is sent with the result."""
        self.relayed: Json | None = None
        """The answer of another server, for the client as it is: `result` or `error`."""
        self.unwinding = False
        """The result is known, but the tool is still cleaning up after the work."""
        self.patience = math.inf
        """Seconds from its opening until its client gets a reply."""
        self.handed_back = False
        self.client_gone = False
        self.outcome: Outcome | None = None
        self.receipt = Receipt(ended_by="", stopped=False)
        self.opened_seq = 0
        self.handed_back_seq = 0
        self.settled_seq = 0
        self.unrecorded: Unwritable | None = None
        """Why the outcome could not be journaled; such an outcome is not reported to the client."""
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
        """Create a call and journal `CallOpened`."""
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
    def only_read(self) -> bool:
        """It ran without effect and without a person's answer: its record need not survive a power loss."""
        return self.plan is not None and not self.plan.acts and self.approval is None

    @property
    def is_allowed_later(self) -> bool:
        """An agent that does its work itself must ask again, and the answer waits for it."""
        answer = None if self.approval is None else self.approval.answered
        is_handed_back = self.handed_back and self.assurance == "advisory" and self.plan is None
        return is_handed_back and answer is not None and answer.kind == "allow" and self.outcome is None

    @property
    def elapsed_ms(self) -> int:
        if self.took_ms is not None:
            return self.took_ms
        return int((anyio.current_time() - self.since) * 1000)

    async def settled(self) -> None:
        """Wait until the outcome is set and durable. Raises Unwritable if it cannot be recorded."""
        while self.outcome is None:
            await self._settled.wait()
        await self.recorded()

    async def recorded(self) -> None:
        """Wait until the events of a settled call are durable. Raises Unwritable."""
        if self.unrecorded is not None:
            raise self.unrecorded
        await self.journal.committed(self.settled_seq, sync=not self.only_read)
        await self.journal.committed(self.opened_seq, sync=not self.only_read)

    def start(self, plan: Plan, allowed_by: Actor, rules: tuple[str, ...] = (), title: str = "") -> int:
        """Journal `CallStarted`, and keep small old contents; returns the sequence number to await before any effect.

        `title` is that of what runs; it differs from the present one if a person edited the input.
        """
        title = "" if title == self.title else title
        self.title = title or self.title
        started = CallStarted(
            call=self.id,
            claims=plan.claims,
            allowed_by=str(allowed_by),
            rules=rules,
            files=plan.files,
            title=title,
        )
        return self.journal.append(started, along=add_contents(plan.old_contents))

    def show_image(self, image: Image) -> None:
        self.image = image

    def relay(self, answer: Json) -> None:
        self.relayed = answer

    def use_terminal(self, id: str) -> None:
        self.terminal = id

    def add_receipt(self, facts: ReceiptFacts) -> None:
        known = {field.name: getattr(facts, field.name) for field in fields(facts)}
        self.receipt = replace(self.receipt, **{k: value for k, value in known.items() if value is not None})

    def keep_unwinding(self) -> None:
        self.unwinding = True

    def hand_back(self) -> int:
        """End the client's request while the call goes on; returns the event's sequence number. Idempotent."""
        if self.outcome is None and not self.handed_back:
            self.handed_back = True
            self.due.set()
            self.handed_back_seq = self.journal.append(CallHandedBack(call=self.id))
        return self.handed_back_seq

    def settle(self, outcome: Outcome, *, stopped: bool = False) -> bool:
        """Set the outcome and journal it. False, without a change, if the call already has an outcome."""
        if self.outcome is not None:
            return False
        result = add_feedback(outcome.result, self.input, self.edited, self.said)
        if result is not outcome.result:
            outcome = replace(outcome, result=result)
        self.outcome, self.took_ms = outcome, self.elapsed_ms
        self.receipt = replace(self.receipt, ended_by=str(outcome.by), stopped=stopped)
        self.due.set()
        self._settled.ring()
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
        self.settled_seq = self.journal.append(event, completes=self.opened_seq)
        if stopped and not self.handed_back and not self.client_gone:
            # The client waits for the commit, and no event follows that could share it.
            self.journal.order_commit(sync=not self.only_read)
        return True

    def stop(self) -> None:
        """Journal that the work of a settled call has ended, or which processes it left (in the receipt).

        No effect on an open call, or if the call was settled as stopped.
        """
        if self.outcome is None or self.receipt.stopped:
            return
        self.receipt = replace(self.receipt, stopped=not self.receipt.processes_left)
        stopped = CallStopped(call=self.id, receipt=self.receipt)
        self.journal.append(stopped, completes=self.opened_seq)


def _moot(outcome: Outcome) -> str:
    match outcome.ending:
        case "cancelled" | "completed":
            return f"the call was {outcome.ending} by {outcome.by}"
        case "done" | "failed" | "denied" | "interrupted":
            return f"the call is {outcome.ending}"
        case _:
            assert_never(outcome.ending)
