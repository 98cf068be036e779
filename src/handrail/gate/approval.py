"""An approval: an open question to a person about one call, and its single answer.

Owns the question, its digest, how long it may stay open and who won. It does not know how the answer arrives (page,
command line, a rule made since) or what the call does with it.
"""

from dataclasses import dataclass

import anyio

from handrail.errors import Unwritable
from handrail.gate.draft import Draft
from handrail.gate.tool import Plan
from handrail.store.actor import Actor
from handrail.store.events import ApprovalAnswered, ApprovalExpired, ApprovalOpened, ApprovalWithdrawn
from handrail.store.journal import Journal
from handrail.store.values import AnswerKind, Comment, Json, Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What was decided, and what goes with it."""

    kind: AnswerKind
    by: Actor
    reason: str = ""
    input: Json | None = None
    """Run this instead of what was asked."""
    content: str | None = None
    """Write this instead of what was proposed."""
    comments: tuple[Comment, ...] = ()
    rules: tuple[Rule, ...] = ()
    """To hold from now on."""


class Approval:
    """A question that is answered once, expires, or becomes moot."""

    def __init__(
        self,
        journal: Journal,
        asked: ApprovalOpened,
        asked_seq: int = 0,
        draft: Draft | None = None,
        waited_ms: int = 0,
    ) -> None:
        """`waited_ms` is how long it was open already, under another daemon."""
        self.id = asked.approval
        self.call = asked.call
        self.digest = asked.digest
        """Of what was asked; whoever answers must have seen just that."""
        self.asked = asked
        """As it is shown: a rule made since may have changed why."""
        self.asked_seq = asked_seq
        self.since = anyio.current_time() - waited_ms / 1000
        self.draft: Draft | None = None
        """What would run; after a restart None until it is worked out anew."""
        self.footings: set[str] = set()
        """Of the proposals that people were shown: a review starts from one of them."""
        if draft is not None:
            self.show(draft)
        self.allowed = ""
        """The digest of what may run, once it is answered."""
        self.answered: Answer | None = None
        self.answered_seq = 0
        self.expired_ms: int | None = None
        """After how long nobody had answered."""
        self.withdrawn: str | None = None
        self._closed_at = 0.0
        self._decided = anyio.Event()
        self._journal = journal

    @property
    def open(self) -> bool:
        return self.answered is None and self.withdrawn is None and self.expired_ms is None

    @property
    def plan(self) -> Plan | None:
        return self.draft and self.draft.plan

    def show(self, draft: Draft) -> None:
        """This is what would run, and what people see."""
        self.draft = draft
        self.footings.add(draft.deed.footing)

    def answer(self, answer: Answer, allowed: str = "") -> int | None:
        """Decide; the journal's number of the decision, or None when somebody was first.

        `allowed` is the digest of what may run now.
        """
        if not self.open:
            return None
        fact = ApprovalAnswered(
            approval=self.id,
            call=self.call,
            answer=answer.kind,
            reason=answer.reason,
            by=str(answer.by),
            digest=allowed,
            input=answer.input,
            content=answer.content,
            comments=answer.comments,
            rules=tuple(rule.id for rule in answer.rules),
        )
        self.answered_seq = self._journal.append(fact)
        self.answered = answer
        self.allowed = allowed
        self._closed_at = anyio.current_time()
        self._decided.set()
        return self.answered_seq

    def expire(self) -> None:
        """Nobody answered in time; an answered one stays answered."""
        if self.open:
            self.expired_ms = _ms_since(self.since)
            self._closed_at = anyio.current_time()
            fact = ApprovalExpired(approval=self.id, call=self.call, after_ms=self.expired_ms)
            self._journal.append(fact)

    def withdraw(self, why: str) -> None:
        """The question is moot; an answered one stays answered."""
        if self.open:
            self.withdrawn = why
            self._closed_at = anyio.current_time()
            self._journal.append(ApprovalWithdrawn(approval=self.id, call=self.call, why=why))

    async def wait(self, seconds: float | None = None) -> Answer | None:
        """The answer, once it is durable: no effect may follow one that could be forgotten.

        None when nobody gave one within `seconds`, which count from now.
        """
        with anyio.move_on_after(seconds):
            await self._decided.wait()
        self.expire()
        answer = self.answered
        if answer is None:
            return None
        try:
            await self._journal.committed(self.answered_seq)
        except Unwritable:
            self.answered = None  # nobody was told that it counts, and no record will say so
            raise
        return answer

    def closed(self) -> str:
        """How it was closed, in a sentence for whoever comes late."""
        past = f"{ago(_ms_since(self._closed_at))} ago"
        if self.answered is not None:
            word = "allowed" if self.answered.kind == "allow" else "denied"
            return f"Already {word} by {self.answered.by}, {past}."
        if self.expired_ms is not None:
            return f"Already expired, {past}: nobody answered within {ago(self.expired_ms)}."
        return f"Already withdrawn, {past}: {self.withdrawn or 'its call has ended'}."


def _ms_since(moment: float) -> int:
    return int((anyio.current_time() - moment) * 1000)


def ago(ms: int) -> str:
    """12 s · 7 min · 3 h · 2 d."""
    seconds = ms // 1000
    for least, size, unit in ((172_800, 86_400, "d"), (7200, 3600, "h"), (120, 60, "min")):
        if seconds >= least:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
