"""An approval: an open question to a person about one call, and its single answer.

Owns the question, its digest and who won. It does not know how the answer arrives (page, command line)
or what the call does with it.
"""

from dataclasses import dataclass

import anyio

from handrail.errors import Unwritable
from handrail.store.event import ApprovalAnswered, ApprovalOpened, ApprovalWithdrawn
from handrail.store.journal import Journal
from handrail.store.value import AnswerKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a person decided."""

    kind: AnswerKind
    by: str
    reason: str = ""


class Approval:
    """A question that is answered once, or becomes moot."""

    def __init__(self, journal: Journal, asked: ApprovalOpened, asked_seq: int = 0) -> None:
        self.id = asked.approval
        self.call = asked.call
        self.digest = asked.digest
        self.asked = asked
        self.asked_seq = asked_seq
        self.answered: Answer | None = None
        self.answered_seq = 0
        self.withdrawn: str | None = None
        self._decided = anyio.Event()
        self._journal = journal

    @property
    def open(self) -> bool:
        return self.answered is None and self.withdrawn is None

    def answer(self, answer: Answer) -> int | None:
        """Decide; the journal's number of the decision, or None when somebody was first."""
        if not self.open:
            return None
        fact = ApprovalAnswered(
            approval=self.id, call=self.call, answer=answer.kind, reason=answer.reason, by=answer.by
        )
        self.answered_seq = self._journal.append(fact)
        self.answered = answer
        self._decided.set()
        return self.answered_seq

    def withdraw(self, why: str) -> None:
        """The question is moot; an answered one stays answered."""
        if self.open:
            self.withdrawn = why
            self._journal.append(ApprovalWithdrawn(approval=self.id, call=self.call, why=why))

    async def wait(self) -> Answer:
        """The answer, once it is durable: no effect may follow one that could be forgotten."""
        await self._decided.wait()
        answer = self.answered
        assert answer is not None
        try:
            await self._journal.committed(self.answered_seq)
        except Unwritable:
            self.answered = None  # nobody was told that it counts, and no record will say so
            raise
        return answer
