"""The history that an agent replays while it loads one of its sessions, recorded as the messages of a thread.

The protocol sends no times and no ends: a prompt ends where the answer begins, and an answer where the next prompt
begins. It does not know how a session is loaded (`agent_sessions.py`).
"""

from handrail.agents.conversation.recorder import Recorder
from handrail.agents.conversation.tool_calls import StoreImage
from handrail.agents.lenient_json import name, text
from handrail.store.threads.message import Message
from handrail.store.threads.threads import Threads
from handrail.store.values import Json, Role

MOST_MESSAGES = 10_000
"""Messages kept of one session; bounds what an agent can add to the database by loading one."""
ANSWERS = frozenset({"agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan"})
"""Updates that belong to an answer; others set the state of the session."""


class SessionHistory:
    """Records one replay into an empty thread."""

    def __init__(
        self,
        threads: Threads,
        thread: str,
        agent: str,
        answers: Recorder,
        store_image: StoreImage,
        said_at: int | None,
    ) -> None:
        """`said_at` is when the session was last used: nothing in it is newer. None if unknown."""
        self.messages = 0
        self._threads, self._thread, self._agent = threads, thread, agent
        self._answers = answers
        self._prompts = Recorder(_ignore_state, store_image, _ignore_title)
        self._said_at = said_at
        self._open: Message | None = None
        self._prompt_id = ""

    def update(self, update: Json) -> None:
        """Record one update of the replay."""
        kind = text(update.get("sessionUpdate"))
        if kind == "user_message_chunk":
            self._record_prompt(update)
        elif kind not in ANSWERS or self._begin("assistant"):
            self._answers.update(update)

    def end(self) -> None:
        """The session is loaded."""
        if self._open is not None:
            if self._open.role == "assistant":
                self._answers.end("end_turn")
            self._open.end("end_turn", self._said_at)
            self._open = None

    def _record_prompt(self, update: Json) -> None:
        prompt_id = name(update.get("messageId"))
        is_next = bool(prompt_id and self._prompt_id and prompt_id != self._prompt_id)
        if is_next and self._open is not None and self._open.role == "user":
            self.end()
        self._prompt_id = prompt_id
        if self._begin("user"):
            self._prompts.update({**update, "sessionUpdate": "agent_message_chunk"})

    def _begin(self, role: Role) -> bool:
        """Make sure that a message of this role is open; False above the limit."""
        if self._open is not None and self._open.role == role:
            return True
        self.end()
        if self.messages >= MOST_MESSAGES:
            return False
        self.messages += 1
        self._open = self._threads.open_message(self._thread, role, agent=self._agent, said_at=self._said_at)
        (self._answers if role == "assistant" else self._prompts).begin(self._open)
        return True


def _ignore_state(_name: str, _data: Json) -> None: ...


def _ignore_title(_title: str) -> None: ...
