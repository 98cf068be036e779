"""Chats: each follows one thread, and publishes what changes there as actions of its channel.

A chat runs while a client is subscribed to it or to its session. The questions of its running turn are also listed in
the state of the session.
"""

import anyio

from handrail.server.ahp._chat_actions import ChatActions, empty_chat
from handrail.server.ahp.ahp_sessions import Session
from handrail.server.ahp.ahp_wire import Obj
from handrail.server.ahp.call_cards import CallCards
from handrail.server.ahp.channels import Channels
from handrail.server.ahp.reducers import reduce_chat
from handrail.server.ahp.turns import (
    PendingKind,
    PendingPrompt,
    ThreadCopy,
    Turn,
    build_turn,
    call_ids,
    group_messages,
    pending_prompt,
)
from handrail.store.threads.live_thread import ThreadChanges
from handrail.store.threads.threads import Threads

HISTORY = 400
"""Messages in a snapshot. Bounds its size; the page has all of them."""


class Chat:
    """The chat of one session."""

    def __init__(self, session: Session, threads: Threads, cards: CallCards, channels: Channels) -> None:
        self.session = session
        self.uri = session.chat
        self.lock = anyio.Lock()
        """Held while changes are published, and while a client's prompt or answer is carried out: the client's own action
        is then published before what follows from it."""
        self.pending: dict[str, tuple[str, PendingKind]] = {}
        """Ids and kinds that clients gave to queued prompts, by message."""
        self._threads = threads
        self._cards = cards
        self._channels = channels
        self._copy = ThreadCopy()
        self._rev = 0
        self.is_followed = False
        """Whether its thread is followed; a session without a thread has none."""

    @property
    def state(self) -> Obj:
        return self._channels.state(self.uri)

    async def load(self) -> None:
        """Open the channel with the thread's history."""
        thread = self.session.thread
        if thread is not None:
            snapshot = await self._threads.snapshot(thread, HISTORY)
            self._copy.load(snapshot.messages)
            self._rev = snapshot.rev
        actions = ChatActions(empty_chat(self.uri, self.session.shown_title, self.session.modified_at))
        actions.reach(await self._build_turns(), self._pending(), {})
        self._channels.open(self.uri, actions.state, reduce_chat)

    async def follow(self) -> None:
        """Publish changes until the thread is deleted."""
        if self.session.thread is not None:
            self.is_followed = True
            await self._threads.follow(self.session.thread, self._rev, self._hear)

    async def _hear(self, changes: ThreadChanges) -> None:
        async with self.lock:
            self._copy.apply(changes)
            await self._publish()

    async def sync(self) -> None:
        """Publish what changed about the calls."""
        async with self.lock:
            await self._publish()

    async def _publish(self) -> None:
        turns = await self._build_turns(newest=2)
        if self._channels.get(self.uri) is None:
            return
        actions = ChatActions(self.state)
        actions.reach(
            turns, self._pending(), {message: given for message, (given, _) in self.pending.items()}
        )
        for action in actions.actions:
            self._channels.publish(self.uri, action)
        self.publish_needed()

    async def _build_turns(self, newest: int | None = None) -> list[Turn]:
        """The turns; with `newest`, only the last ones and those that the state does not have."""
        groups = group_messages(self._copy.said)
        if newest is not None:
            groups = groups[-max(newest, len(groups) - len(self.state["turns"])) :]
        facts = await self._cards.load(call_ids(message for group in groups for message in group))
        ids = self.session.turn_ids
        return [build_turn(group, facts, ids.get(group[0].id, group[0].id)) for group in groups]

    def _pending(self) -> list[PendingPrompt]:
        return [
            pending_prompt(message, *self.pending.get(message.id, (message.id, "queued")))
            for message in self._copy.queued
        ]

    def publish_needed(self) -> None:
        """List the open questions of the running turn in the session's state."""
        channel = self._channels.get(self.session.uri)
        if channel is None:
            return
        needed = {request["id"]: request for request in self._needed()}
        listed: dict[str, Obj] = {one["id"]: one for one in channel.state.get("inputNeeded", ())}
        for request in listed.keys() - needed.keys():
            self._channels.publish(self.session.uri, {"type": "session/inputNeededRemoved", "id": request})
        for name, request in needed.items():
            if listed.get(name) != request:
                self._channels.publish(
                    self.session.uri, {"type": "session/inputNeededSet", "request": request}
                )

    def _needed(self) -> list[Obj]:
        turn: Obj = self.state.get("activeTurn") or {"responseParts": []}
        needed: list[Obj] = []
        for part in turn["responseParts"]:
            if part["kind"] == "toolCall" and part["toolCall"]["status"] == "pending-confirmation":
                call: Obj = part["toolCall"]
                fields = {"kind": "toolConfirmation", "turnId": turn["id"], "toolCall": call}
                needed.append({"id": call["toolCallId"], "chat": self.uri, **fields})
            elif part["kind"] == "inputRequest" and "response" not in part:
                request: Obj = part["request"]
                needed.append(
                    {"id": request["id"], "chat": self.uri, "kind": "chatInput", "request": request}
                )
        return needed
