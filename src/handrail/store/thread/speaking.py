"""Speaking in conversations: messages that begin, wait for their turn, and end.

Owns the conversations in memory, and the facts about their messages. Nothing here waits: what is said is seen at once by
whoever reads or follows. It does not know how conversations begin and end (threads.py).
"""

import secrets

from handrail.store.actor import Actor
from handrail.store.event import MessageEnded, MessageOpened, PromptDropped, PromptSent
from handrail.store.thread.clean import clean_json
from handrail.store.thread.message import Message
from handrail.store.thread.record import MessageRecord
from handrail.store.thread.thread import Thread
from handrail.store.thread.writing import Writing
from handrail.store.value import Json, Role


class Speaking:
    """The conversations in memory."""

    def __init__(self, writing: Writing) -> None:
        self._writing = writing
        self._threads: dict[str, Thread] = {}

    def open_message(
        self,
        thread: str,
        role: Role,
        *,
        agent: str = "",
        operation: str | None = None,
        queued: bool = False,
        said_at: int | None = None,
    ) -> Message:
        """Somebody begins to speak. `said_at` is when they did, where it is told again (fork, import)."""
        kept = self._thread(thread)
        kept.last += 1
        message = Message(
            self._touched,
            self._ended,
            id=f"m{secrets.token_hex(6)}",
            thread=thread,
            n=kept.last,
            role=role,
            agent=agent,
            operation=operation,
            queued=queued,
            opened_at=said_at,
        )
        self._writing.tell(
            MessageOpened(
                thread=thread,
                message=message.id,
                n=message.n,
                role=role,
                agent=agent,
                operation=operation,
                queued=queued,
                said_at=said_at,
            )
        )
        message.changed()
        return message

    def queued(self, thread: str) -> list[Message]:
        """Prompts that wait for their turn, in their order."""
        waiting = [message for message in self._thread(thread).messages.values() if message.queued]
        return sorted(waiting, key=lambda message: message.n)

    def sent(self, message: str, operation: str) -> Message:
        """A queued prompt's turn has come: from now on it stands behind all that was said while it waited.

        Raises `LookupError` when it is not queued, or no longer.
        """
        thread, prompt = self._queued(message)
        thread.last += 1
        prompt.queued, prompt.operation, prompt.n = False, operation, thread.last
        self._writing.tell(PromptSent(thread=thread.id, message=message, operation=operation, n=prompt.n))
        prompt.changed()
        return prompt

    def dropped(self, message: str, by: Actor) -> None:
        """A queued prompt is taken back. Raises `LookupError` as `sent` does."""
        thread, prompt = self._queued(message)
        self._writing.tell(PromptDropped(thread=thread.id, message=message, by=str(by)))
        thread.drop(prompt)

    def put_state(self, thread: str, name: str, data: Json) -> None:
        """What an agent says of the conversation as a whole; the newest of each name holds."""
        kept = self._thread(thread)
        kept.put_state(name, clean_json(data))
        self._writing.flows(kept)

    def _restored(self, found: MessageRecord) -> Message:
        """A message that was open when the daemon ended."""
        return Message.restored(self._touched, self._ended, found)

    def _thread(self, id: str) -> Thread:
        try:
            return self._threads[id]
        except KeyError:
            raise LookupError(f"There is no thread {id}.") from None

    def _queued(self, message: str) -> tuple[Thread, Message]:
        for thread in self._threads.values():
            found = thread.messages.get(message)
            if found is not None and found.queued:
                return thread, found
        raise LookupError(f"The prompt {message} is not waiting any more.")

    def _touched(self, message: Message) -> int:
        thread = self._threads.get(message.thread)
        if thread is None or message.id in thread.dropped:  # gone while somebody still spoke
            return message.rev + 1
        self._writing.flows(thread)
        return thread.touch(message)

    def _ended(self, message: Message) -> None:
        if message.thread in self._threads and message.stop is not None:
            self._writing.tell(
                MessageEnded(
                    thread=message.thread, message=message.id, stop=message.stop, said_at=message.said_at
                )
            )
