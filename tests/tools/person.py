"""A person who allows whatever they are asked."""

from collections.abc import Sequence

from tests.actors import PAGE

from handrail.gate import person_actions
from handrail.gate.approval import Answer
from handrail.gate.gate import Gate
from handrail.store.events import ApprovalOpened, Entry


async def allow_all(gate: Gate) -> None:
    """Answer every question of this gate as soon as it is asked; never returns."""

    async def look(entries: Sequence[Entry]) -> None:
        for entry in entries:
            call = gate.open.get(entry.event.call) if isinstance(entry.event, ApprovalOpened) else None
            if call is not None and call.approval is not None and call.approval.open:
                await person_actions.answer(
                    gate, call.approval, Answer(kind="allow", by=PAGE), call.approval.digest
                )

    await gate.journal.follow(0, look)
