"""Denials with a reason that a hosted agent does not know yet: the answer to ACP's permission request has no place for it.

Derived from the stored messages and calls, so that a restart loses none. An agent gets them with its next prompt; a prompt
that it did not read, because it failed before any output, does not count.
"""

from collections.abc import Iterator, Sequence

from handrail.config import OWN_AGENT
from handrail.lazy_dataclass import dataclass
from handrail.store.actor import Actor, actor_from_text
from handrail.store.calls import CallRecord
from handrail.store.records import Records
from handrail.store.threads.thread_records import MessageRecord
from handrail.store.threads.threads import Threads
from handrail.store.values import Stop

TOLD = "Handrail tells you this, because the answer to a permission request has no place for a reason:"
MOST_REASON = 2000
"""Characters of a reason that is told with a prompt."""
MOST_DENIALS = 20
"""Denials told with one prompt; bounds what an agent that asks on and on adds to it."""
MOST_MESSAGES = 50
"""Messages searched for the last one that the agent read; bounds the search after many failed prompts."""
ASKING_TOOL = "agent_work"
NOT_READ: tuple[Stop | None, ...] = ("failed", "interrupted", None)
OUTPUT = ("text", "thought", "call")
NEWEST = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Denial:
    """Work of the agent's own that was denied with a reason."""

    title: str
    by: Actor
    reason: str

    def __str__(self) -> str:
        return f"“{self.title}” was denied by {self.by}: {self.reason}"


class Denials:
    """Finds the denials that an agent does not know yet."""

    def __init__(self, threads: Threads, records: Records) -> None:
        self._threads = threads
        self._records = records

    async def untold(self, thread: str, agent: str, before: int = NEWEST) -> list[Denial]:
        """The denials before a message's position, oldest first. Our own agent reads a reason in the answer itself."""
        if agent == OWN_AGENT:
            return []
        await self._threads.written()
        page = await self._threads.page(thread, before, MOST_MESSAGES)
        found: list[Denial] = []
        for operation in _unread_operations(page.messages, agent):
            found = [*_denials_in(await self._records.calls.of_operation(operation), agent), *found]
        return found[:MOST_DENIALS]


def format_denials(denials: Sequence[Denial]) -> str:
    """The denials as text for a prompt; empty if there are none."""
    return "\n".join([TOLD, *(f"- {denial}" for denial in denials)]) if denials else ""


def _unread_operations(messages: Sequence[MessageRecord], agent: str) -> Iterator[str]:
    """The agent's operations whose denials it does not know yet, newest first: back to the last that read its prompt."""
    before: str | None = None
    for message in reversed(messages):
        if message.role != "assistant" or message.agent != agent:
            continue
        if message.operation is not None and message.operation != before:
            yield message.operation
        before = message.operation
        if message.stop not in NOT_READ or any(part.kind in OUTPUT for part in message.parts):
            return


def _denials_in(calls: Sequence[CallRecord], agent: str) -> Iterator[Denial]:
    for call in calls:
        reason = " ".join((call.message or "").split())[:MOST_REASON]
        is_asked = call.tool == ASKING_TOOL and call.caller.client == agent
        if is_asked and call.ending == "denied" and reason:
            yield Denial(call.title, actor_from_text(call.settled_by or ""), reason)
