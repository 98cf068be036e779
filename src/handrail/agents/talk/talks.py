"""All talks: which agents take part in which conversations, and what the conversations show of them.

Owns the talks, whose our calls are, which agent's state a thread shows, and its title as far as no person gave it one.
It does not know whose turn it is (floor.py), nor how an agent is asked (asking.py).
"""

import hashlib
import logging
from collections.abc import Awaitable, Callable, Sequence

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from handrail.agents.hands.hands import Hands
from handrail.agents.loose import text
from handrail.agents.talk.activities import Activities
from handrail.agents.talk.recorder import Recorder
from handrail.agents.talk.state import NAMES
from handrail.agents.talk.talk import Talk
from handrail.agents.talk.telling import Ours
from handrail.config import OWN_AGENT, AgentSection
from handrail.store.actor import HANDRAIL, actor_from_text, agent_actor
from handrail.store.blobs import Blobs, NotKept
from handrail.store.event import CallOpened, CallSettled, Entry
from handrail.store.journal import Journal
from handrail.store.query import Records
from handrail.store.threads import Threads
from handrail.store.value import Caller, Json

log = logging.getLogger(__name__)

LONGEST_TITLE = 60
"""Of one made of a prompt."""
LONGEST_GIVEN = 200
"""Of one that an agent gives."""
MOST_UNKEPT = 64 * 1024 * 1024
"""Bytes of pictures that may wait for the disk; what an agent shows beyond is not kept."""
DEFAULT = "Default"
"""The title of a thread that nobody began; it stays."""


class Talks:
    """Who takes part in what."""

    def __init__(
        self,
        journal: Journal,
        threads: Threads,
        records: Records,
        hands: Hands,
        specs: Callable[[str], AgentSection | None],
        images: Blobs,
    ) -> None:
        self.group: TaskGroup | None = None
        """Where what cannot be done at once is done; None while nothing can."""
        self._journal = journal
        self._threads = threads
        self._records = records
        self._hands = hands
        self._specs = specs
        self._images = images
        self._talks: dict[tuple[str, str], Talk] = {}
        self._speakers: dict[str, str] = {}
        """The agent whose state each thread shows, as far as that is known."""
        self._calls: dict[str, Talk] = {}
        """Whose our open calls are."""
        self._titles: dict[tuple[str, str], str] = {}
        """That agents gave, and that are not yet taken."""
        self._unkept = 0
        """Bytes of pictures that are on their way to disk."""

    def get(self, caller: Caller) -> Talk:
        """The talk of this agent on this thread."""
        thread, agent = caller.key, caller.client
        talk = self._talks.get((thread, agent))
        if talk is None:
            recorder = Recorder(
                lambda name, data: self._put_state(thread, agent, name, data),
                self._keep,
                lambda title: self._titled(thread, agent, title),
                notes=agent == OWN_AGENT,
            )
            activities = Activities(self._journal, thread)
            talk = Talk(caller, self._specs(agent), self._hands, recorder, activities)
            self._talks[thread, agent] = talk
        return talk

    def working_for(self, operation: str) -> Talk | None:
        """Who does the work of an operation that has not ended."""
        return next((talk for talk in self._talks.values() if talk.works_for(operation)), None)

    async def speaker(self, thread: str) -> str:
        """The agent whose state the thread shows; empty where none has spoken yet."""
        if thread not in self._speakers:
            state = (await self._threads.snapshot(thread, 1)).state
            self._speakers.setdefault(thread, text(state.get("agent", {}).get("name")))
        return self._speakers[thread]

    async def introduce(self, talk: Talk) -> None:
        """From now on the thread shows what this agent says of it as a whole."""
        before = await self.speaker(talk.thread)
        if before == talk.agent and not talk.recorder.state:  # it spoke here before the daemon began
            state = (await self._threads.snapshot(talk.thread, 1)).state
            talk.recorder.state.update({name: state[name] for name in NAMES if state.get(name)})
        elif before != talk.agent:
            self._speakers[talk.thread] = talk.agent
            self._threads.put_state(talk.thread, "agent", {"name": talk.agent})
            if before:
                talk.recorder.show_state()

    def part(self, thread: str) -> list[Talk]:
        """Nobody speaks on this thread any more; who did."""
        self._speakers.pop(thread, None)
        return [self._talks.pop(key) for key in list(self._talks) if key[0] == thread]

    async def hear(self, entries: Sequence[Entry]) -> None:
        """Link the calls in the journal to the conversations whose agents made them, over MCP or ACP."""
        for entry in entries:
            match entry.event:
                case CallOpened() as opened:
                    talk = self._talks.get((opened.caller.thread or "", opened.caller.client))
                    ours = Ours(opened.call, opened.tool, opened.title, opened.input)
                    if talk is not None and talk.link(ours):
                        self._calls[ours.id] = talk
                case CallSettled(call=call, ending=ending):
                    talk = self._calls.pop(call, None)
                    if talk is not None:
                        talk.recorder.settled(call, ending)
                case _:
                    continue

    async def look(self, sha: str) -> bytes | None:
        """A picture that is kept."""
        try:
            return await anyio.to_thread.run_sync(self._images.get, sha)
        except NotKept:
            return None

    def title(self, thread: str, words: str) -> None:
        """Name a thread that has no name yet by what was said in it first."""
        short = words if len(words) <= LONGEST_TITLE else f"{words[: LONGEST_TITLE - 1].rstrip()}…"
        self._threads.rename(thread, short, HANDRAIL)

    def _titled(self, thread: str, agent: str, title: str) -> None:
        """An agent gives the thread a title; of many, the newest counts."""
        begun = (thread, agent) in self._titles
        self._titles[thread, agent] = title
        if not begun:
            self._soon(self._retitle, thread, agent)

    async def _retitle(self, thread: str, agent: str) -> None:
        """Take an agent's own title, unless a person gave it one."""
        await self._threads.written()
        title = self._titles.pop((thread, agent))
        record = await self._records.thread(thread)
        if record is None or record.title in (title, DEFAULT):
            return
        if not record.title or actor_from_text(record.titled_by).kind in ("handrail", "agent"):
            self._threads.rename(thread, title[:LONGEST_GIVEN], agent_actor(agent))

    def _put_state(self, thread: str, agent: str, name: str, data: Json) -> None:
        if self._speakers.get(thread) == agent:  # else it is shown when this agent speaks again
            self._threads.put_state(thread, name, data)

    def _keep(self, content: bytes) -> str | None:
        if self._unkept + len(content) > MOST_UNKEPT:
            return None
        self._unkept += len(content)
        self._soon(self._put, content)
        return hashlib.sha256(content).hexdigest()

    async def _put(self, content: bytes) -> None:
        try:
            await anyio.to_thread.run_sync(self._images.put, content)
        finally:
            self._unkept -= len(content)

    def _soon(self, work: Callable[..., Awaitable[object]], *arguments: object) -> None:
        if self.group is not None:
            self.group.start_soon(_alone, work, *arguments)


async def _alone(work: Callable[..., Awaitable[object]], *arguments: object) -> None:
    """What goes wrong here takes nothing else along."""
    try:
        await work(*arguments)
    except Exception:
        log.exception("something an agent said could not be kept")
