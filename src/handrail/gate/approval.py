"""An approval: an open question to a person about one call, and its single answer.

The first answer wins; without one the approval expires or is withdrawn. It does not know how the answer arrives (page,
command line, a new rule) or how the call uses it.
"""

import anyio

from handrail.errors import Unwritable
from handrail.gate.draft import Draft
from handrail.gate.tool import Plan
from handrail.lazy_dataclass import dataclass
from handrail.store.actor import Actor
from handrail.store.events import ApprovalAnswered, ApprovalExpired, ApprovalOpened, ApprovalWithdrawn
from handrail.store.journal import Journal
from handrail.store.values import AnswerKind, Comment, Json, Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The decision about a call, with its reason, edits and new rules."""

    kind: AnswerKind
    by: Actor
    reason: str = ""
    input: Json | None = None
    """Edited input, which replaces the input of the call."""
    content: str | None = None
    """Edited file content, which replaces the proposed content."""
    comments: tuple[Comment, ...] = ()
    rules: tuple[Rule, ...] = ()
    """Rules to add with this answer."""
    request_id: str = ""
    """The id that the page gave its answer; empty without one."""


class Approval:
    """A question that closes once: answered, expired or withdrawn."""

    def __init__(
        self,
        journal: Journal,
        asked: ApprovalOpened,
        asked_seq: int = 0,
        draft: Draft | None = None,
        waited_ms: int = 0,
    ) -> None:
        """`waited_ms` is how long the approval was already open under an earlier daemon."""
        self.id = asked.approval
        self.call = asked.call
        self.digest = asked.digest
        """Identifies the question; an answer must quote it."""
        self.asked = asked
        """The question as shown now: a rule change can update its `why` and verdicts."""
        self.asked_seq = asked_seq
        self.since = anyio.current_time() - waited_ms / 1000
        self.draft: Draft | None = None
        """The draft that would run; None after a restart, until it is recomputed."""
        self.footings: set[str] = set()
        """Digests of the base plans shown so far; a review must start from one of them."""
        if draft is not None:
            self.show(draft)
        self.allowed = ""
        """The digest of the draft that may run; set by the answer."""
        self.answered: Answer | None = None
        self.answered_seq = 0
        self.expired_ms: int | None = None
        """How long it was open when it expired."""
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

    def restore_answer(self, answer: Answer, allowed: str, answered_ms: int) -> None:
        """Set the answer that an earlier daemon recorded, `answered_ms` ago."""
        self.answered, self.allowed = answer, allowed
        self._closed_at = anyio.current_time() - answered_ms / 1000
        self._decided.set()

    @property
    def closed_ms(self) -> int:
        """How long ago it was closed."""
        return _ms_since(self._closed_at)

    def show(self, draft: Draft) -> None:
        """Set the draft that would run and that people see."""
        self.draft = draft
        self.footings.add(draft.planned.footing)

    def answer(self, answer: Answer, allowed: str = "") -> int | None:
        """Record the answer and return its sequence number; None if the approval is already closed.

        `allowed` is the digest of the draft that may run.
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
            request_id=answer.request_id,
        )
        self.answered_seq = self._journal.append(fact)
        self.answered = answer
        self.allowed = allowed
        self._closed_at = anyio.current_time()
        self._decided.set()
        return self.answered_seq

    def expire(self) -> None:
        """Close as expired. No effect if already closed."""
        if self.open:
            self.expired_ms = _ms_since(self.since)
            self._closed_at = anyio.current_time()
            fact = ApprovalExpired(approval=self.id, call=self.call, after_ms=self.expired_ms)
            self._journal.append(fact, completes=self.asked_seq)

    def withdraw(self, why: str) -> None:
        """Close without an answer, because the call no longer needs one. No effect if already closed."""
        if self.open:
            self.withdrawn = why
            self._closed_at = anyio.current_time()
            fact = ApprovalWithdrawn(approval=self.id, call=self.call, why=why)
            self._journal.append(fact, completes=self.asked_seq)

    async def wait(self, seconds: float | None = None) -> Answer | None:
        """Wait for the answer and return it once it is durable: no effect may follow an answer that a crash could lose.

        Expires the approval and returns None if it has been open for `seconds` without an answer, also under earlier
        daemons. Raises Unwritable.
        """
        left = None if seconds is None else max(0.0, self.since + seconds - anyio.current_time())
        with anyio.move_on_after(left):
            await self._decided.wait()
        self.expire()
        answer = self.answered
        if answer is None:
            return None
        try:
            await self._journal.committed(self.answered_seq)
        except Unwritable:
            self.answered = None  # not recorded, and not reported to the client
            raise
        return answer

    def closed(self) -> str:
        """Sentence about how the approval was closed, for a late answer."""
        past = f"{format_age(self.closed_ms)} ago"
        if self.answered is not None:
            word = "allowed" if self.answered.kind == "allow" else "denied"
            return f"Already {word} by {self.answered.by}, {past}."
        if self.expired_ms is not None:
            return f"Already expired, {past}: nobody answered within {format_age(self.expired_ms)}."
        return f"Already withdrawn, {past}: {self.withdrawn or 'its call has ended'}."


def _ms_since(moment: float) -> int:
    return int((anyio.current_time() - moment) * 1000)


def format_age(ms: int) -> str:
    """Format a duration: 12 s · 7 min · 3 h · 2 d."""
    seconds = ms // 1000
    for least, size, unit in ((172_800, 86_400, "d"), (7200, 3600, "h"), (120, 60, "min")):
        if seconds >= least:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
