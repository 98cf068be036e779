"""A desk to try file tools at: a folder as workspace, the real gate, and a real journal."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.actors import PAGE

from handrail.gate import person_actions
from handrail.gate.approval import Answer
from handrail.gate.call import Call, Outcome
from handrail.gate.gate import Gate, Request
from handrail.gate.tool import Refusal
from handrail.store.events import ApprovalOpened, CallSettled, Entry
from handrail.store.values import Caller, Json, Result

BOUND = 20.0
"""Seconds no wait of these tests may exceed."""


@dataclass
class Desk:
    """The gate with the file tools, and the person who sits at it."""

    gate: Gate
    root: Path
    caller: Caller

    async def outcome(self, tool: str, **input: Any) -> Outcome:
        """How a call ends that nobody needs to allow."""
        with anyio.fail_after(BOUND):
            reply = await self.gate.submit(self._request(tool, input, BOUND))
        assert reply.outcome is not None
        return reply.outcome

    async def result(self, tool: str, **input: Any) -> Result:
        return done(await self.outcome(tool, **input))

    async def refusal(self, tool: str, **input: Any) -> str:
        outcome = await self.outcome(tool, **input)
        assert outcome.ending == "failed", outcome
        return outcome.message

    async def waiting(self, tool: str, **input: Any) -> Call:
        """A call that waits for the person."""
        reply = await self.gate.submit(self._request(tool, input, 0))
        await self._fact(reply.call, ApprovalOpened, CallSettled)
        assert reply.call.status == "waiting", reply.call.outcome
        return reply.call

    async def allow(self, call: Call) -> Outcome:
        assert call.approval is not None
        await person_actions.answer(
            self.gate, call.approval, Answer(kind="allow", by=PAGE), call.approval.digest
        )
        return await self.ended(call)

    async def ended(self, call: Call) -> Outcome:
        await self._fact(call, CallSettled)
        assert call.outcome is not None
        return call.outcome

    async def allowed(self, tool: str, **input: Any) -> Outcome:
        """How a call ends that waits for the person, who allows it."""
        return await self.allow(await self.waiting(tool, **input))

    def without_workspace(self) -> "Desk":
        return replace(self, caller=replace(self.caller, workspace=None))

    def call(self, tool: str) -> Call:
        """A call to run a plan in, past the gate."""
        return Call.open(self.gate.journal, tool, tool, {}, self.caller)

    def _request(self, tool: str, input: Json, patience: float) -> Request:
        return Request(tool=tool, input=input, caller=self.caller, patience=patience)

    async def _fact(self, call: Call, *kinds: type[ApprovalOpened] | type[CallSettled]) -> None:
        """Return when a fact of one of these kinds about the call is on disk."""

        async def look(entries: Sequence[Entry]) -> None:
            events = [entry.event for entry in entries]
            if any(isinstance(event, kinds) and event.call == call.id for event in events):
                scope.cancel()

        with anyio.fail_after(BOUND), anyio.CancelScope() as scope:
            await self.gate.journal.follow(0, look)


def done(outcome: Outcome) -> Result:
    assert outcome.ending == "done", outcome.message
    assert outcome.result is not None
    return outcome.result


def refused(action: Callable[[], object]) -> str:
    """The sentence with which an action is refused."""
    with pytest.raises(Refusal) as caught:
        action()
    return caught.value.sentence
