"""The calls that a message shows: what its agent tells of them, and which of them are ours.

Owns which part each call has, and what joins an agent's words to our call. It never awaits. It does not know what is
said beside them (recorder.py), nor what the data of a call means (telling.py).
"""

from collections.abc import Callable
from typing import cast

from handrail.agents.talk import telling
from handrail.agents.talk.telling import Keep, Ours
from handrail.store.part import CallData
from handrail.store.thread.message import Part
from handrail.store.value import Ending, Json, Stop

MOST_CALLS = 5_000
"""Calls that one message shows; nobody reads more."""
MOST_HEARD = 32 * 1024 * 1024
"""Characters that are kept of what is told of the calls of one message, about; of what is told beyond, only the rest."""


class Shown:
    """One call, and the part it has."""

    def __init__(self, part: Part | None, data: CallData) -> None:
        self._part = part
        """None of a call that an agent speaks of before anybody prompted it, and of one too many."""
        self.data = data
        self.ours: Ours | None = None
        self.said: Json = {}
        """The agent's own words."""
        self.heard = 0
        """The most characters it was told in at once."""
        self._left = False
        """Its agent stopped without a word on how it ended."""
        self._ending: Ending | None = None
        """How our call for it ended."""

    @property
    def bound(self) -> bool:
        """It is a call of ours that does the work itself; not merely one that allowed it."""
        return self.ours is not None and self.ours.tool not in telling.ADVISORY

    @property
    def open(self) -> bool:
        return self.data["status"] in ("pending", "in_progress")

    def hear(self, update: Json, keep: Keep) -> None:
        """The agent says more of it."""
        self.said |= {key: update[key] for key in telling.SAID if update.get(key) is not None}
        self.put(telling.told(self.data, update, keep))

    def stop(self, stop: Stop) -> None:
        """Its agent has stopped, and says no more of it."""
        self._left = self._left or self.open
        self.put(telling.stopped(self.data, stop))
        self._judge()

    def end(self, ending: Ending) -> None:
        """Our call for it has its outcome; the agent may still tell what it made of that."""
        self._ending = ending
        self._judge()

    def _judge(self) -> None:
        """What was not allowed was not done, where nobody says otherwise."""
        if self._left and self._ending in ("denied", "failed", "cancelled", "interrupted"):
            self.put({**self.data, "status": telling.ENDED[self._ending]})

    def put(self, data: CallData) -> None:
        if data != self.data:
            self.data = data
            if self._part is not None:
                self._part.put(cast("Json", data))


class Calls:
    """The calls of the message that is being said, and of the one before."""

    def __init__(self, add: Callable[[Json], Part | None], keep: Keep) -> None:
        """`add` makes a new part of the message."""
        self._add = add
        self._keep = keep
        self._over = False
        self._heard = 0
        """Characters of what is kept of this message's calls, about."""
        self._told: dict[str, Shown] = {}
        """By the agent's ids, of this message."""
        self._before: dict[str, Shown] = {}
        """The same of the message before: what was begun there may end here."""
        self._untold: list[Shown] = []
        """Calls of ours in this message of which its agent has not spoken."""
        self._ours: dict[str, Shown] = {}
        """By our ids, those without an outcome, of any message."""

    def begin(self) -> None:
        """The next message begins."""
        self._over = False
        self._heard = 0
        self._before, self._told = self._told, {}
        self._untold = []

    def end(self, stop: Stop) -> None:
        """The agent has stopped: what it left open ended with it, but for calls of ours that go on."""
        self._over = True
        for shown in self._told.values():
            if not (shown.bound and shown in self._ours.values()):
                shown.stop(stop)

    def told(self, id: str, update: Json, *, begins: bool) -> None:
        """An agent tells of the call that it knows by this id. One that begins is of this message."""
        shown = self._told.get(id)
        if shown is None and not begins:
            shown = self._before.get(id)
        heard = self._heard
        update = self._bounded(shown, update)
        if shown is None:
            data = telling.told(telling.untold(id), update, self._keep)
            shown = self._adopt(data) or self._show(data)
        shown.heard += self._heard - heard
        shown.hear(update, self._keep)

    def _bounded(self, shown: Shown | None, update: Json) -> Json:
        """All of it; or where too much was told of the calls of one message, what it is and how it went."""
        more = max(0, telling.size(update) - (0 if shown is None else shown.heard))
        if self._heard + more > MOST_HEARD:
            return {
                key: value
                for key, value in update.items()
                if key in telling.BRIEF and telling.size(value) < 2000
            }
        self._heard += more
        return update

    def said(self, id: str) -> Json:
        """What the agent has said of a call of its own, in its own words."""
        shown = self._told.get(id) or self._before.get(id)
        return {} if shown is None else shown.said

    def link(self, id: str, ours: Ours) -> None:
        """Link a call of ours to the agent's call `id`, or to one it did not name."""
        shown = self._told.get(id) if id else self._spoken(ours)
        if shown is None or shown.bound:  # of several things that one call does, the first stands for it
            shown = self._show(telling.untold(id) if id and shown is None else telling.own(ours))
        shown.ours = ours
        shown.put(telling.linked(shown.data, ours))
        self._ours[ours.id] = shown

    def settled(self, call: str, ending: Ending) -> None:
        """A call of ours has its outcome."""
        shown = self._ours.pop(call, None)
        if shown is None:
            return
        shown.end(ending)
        under_way = shown.data["id"] in self._told and not self._over
        if not shown.data["id"] or (shown.bound and not under_way):  # else its agent says how it ends
            shown.put(telling.settled(shown.data, ending))

    def _adopt(self, data: CallData) -> Shown | None:
        """The call of ours that is shown already and that the agent now speaks of."""
        for shown in self._untold:
            if shown.ours is not None and telling.speaks_of(data, shown.ours):
                self._untold.remove(shown)
                self._told[data["id"]] = shown
                shown.put(telling.linked(data, shown.ours))
                return shown
        return None

    def _spoken(self, ours: Ours) -> Shown | None:
        """The call that an agent spoke of and that is this one of ours; the first one still open."""
        for shown in self._told.values():
            if shown.open and not shown.bound and telling.speaks_of(shown.data, ours):
                return shown
        return None

    def _show(self, data: CallData) -> Shown:
        room = len(self._told) + len(self._untold) < MOST_CALLS
        shown = Shown(self._add(cast("Json", data)) if room else None, data)
        if len(self._told) + len(self._untold) >= 2 * MOST_CALLS:
            return shown  # nobody asks for it again
        if data["id"]:
            self._told[data["id"]] = shown
        else:
            self._untold.append(shown)
        return shown
