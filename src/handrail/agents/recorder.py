"""The recorder: takes down what an agent says, update by update, as parts of the message it is saying.

Owns which part each update belongs to. It never awaits, so that no update overtakes another. It does not know where
parts are kept (store/threads), how an agent is reached, or what its calls do.
"""

from collections import deque
from collections.abc import Callable
from typing import cast

from handrail.agents import telling
from handrail.agents.failure import AgentError
from handrail.agents.loose import bounded, cut, name, record, text
from handrail.agents.state import NAMES, plan, stated
from handrail.agents.telling import Keep, Ours
from handrail.store.part import CallData
from handrail.store.thread.message import Message, Part
from handrail.store.value import Ending, Json, PartKind, Stop

MOST_TEXT = 16 * 1024 * 1024
"""Characters of one message; what floods beyond is not kept."""
MOST_RAW = 200
"""Updates of kinds we do not know that are kept of one message."""
MOST_CALLS = 5_000
"""Calls that one message shows; nobody reads more."""
MOST_KNOWN = 500
"""Calls whose second announcement is awaited at the same time; it comes within a commit of the journal."""


class _Shown:
    """A call part, and what it holds."""

    def __init__(self, part: Part | None, data: CallData) -> None:
        self.part = part
        """None of a call that an agent speaks of before anybody prompted it, and of one too many."""
        self.data = data
        self.ours: Ours | None = None
        self.said: Json = {}
        """The agent's own words."""

    @property
    def bound(self) -> bool:
        """It is a call of ours that does the work itself; not merely one that allowed it."""
        return self.ours is not None and self.ours.tool not in telling.ADVISORY

    def hear(self, update: Json, keep: Keep) -> None:
        """The agent says more of it."""
        self.said |= {key: update[key] for key in telling.SAID if update.get(key) is not None}
        self.put(telling.told(self.data, update, keep))

    def put(self, data: CallData) -> None:
        if data != self.data:
            self.data = data
            if self.part is not None:
                self.part.put(_json(data))


class Recorder:
    """Writes down one agent's side of one conversation."""

    def __init__(
        self, put_state: Callable[[str, Json], None], keep: Keep, retitle: Callable[[str], None]
    ) -> None:
        self.state: dict[str, Json] = {}
        """What this agent said of the conversation as a whole."""
        self._put_state = put_state
        self._keep = keep
        self._retitle = retitle
        self._message: Message | None = None
        self._ended: Stop | None = None
        self._calls: dict[str, _Shown] = {}
        """By the agent's ids, of this message."""
        self._before: dict[str, _Shown] = {}
        """The same of the message before: what was begun there may end here."""
        self._ours: dict[str, _Shown] = {}
        """By our ids, those without an outcome."""
        self._known: deque[str] = deque(maxlen=MOST_KNOWN)
        """Our ids that were linked lately: we hear of each call twice, and may hear late."""
        self._fresh()

    def _fresh(self) -> None:
        self._growing: tuple[PartKind, str, Part] | None = None
        self._plan: Part | None = None
        self._texts = 0
        self._raws = 0

    def begin(self, message: Message) -> None:
        """From now on it is this message that is being said."""
        self._message, self._ended = message, None
        self._before, self._calls = self._calls, {}
        self._fresh()

    def end(self, stop: Stop) -> None:
        """Nothing more is expected; what comes all the same is still added."""
        self._ended = stop
        for shown in self._calls.values():
            if not (shown.bound and shown.ours is not None and shown.ours.id in self._ours):
                shown.put(telling.stopped(shown.data, stop))

    def show_state(self) -> None:
        """Say again what this agent said of the conversation: another one may have spoken in between."""
        for each in NAMES:
            self._put_state(each, self.state.get(each, {}))

    def update(self, update: Json) -> None:
        """Take one update down."""
        kind = text(update.get("sessionUpdate"))
        if (found := stated(update, self.state)) is not None:
            self.state[found[0]] = found[1]
            self._put_state(*found)
        match kind:
            case "agent_message_chunk":
                self._chunk("text", update)
            case "agent_thought_chunk":
                self._chunk("thought", update)
            case "tool_call" | "tool_call_update":
                self._told(kind, update)
            case "plan" | "plan_update":
                self._planned(update)
            case "session_info_update":
                if title := text(update.get("title")).strip():
                    self._retitle(title)
            case "user_message_chunk":
                return  # what the person said is known here, and better
            case _ if found is None:
                self._raw(update)
            case _:
                return

    def linked(self, id: str, ours: Ours) -> bool:
        """A call of ours exists, made for the agent's call `id`, or for one it did not name; False when that is known."""
        if ours.id in self._known or self._message is None:
            return False
        self._known.append(ours.id)
        shown = self._calls.get(id) if id else self._spoken(ours)
        if shown is None:
            shown = self._show(telling.untold(id) if id else telling.own(ours))
        if shown.bound:  # it does several things; the first stands for it
            shown = self._show(telling.own(ours))
        shown.ours = ours
        shown.put(telling.linked(shown.data, ours))
        self._ours[ours.id] = shown
        return True

    def settled(self, call: str, ending: Ending) -> None:
        """A call of ours has its outcome."""
        shown = self._ours.pop(call, None)
        if shown is None:
            return
        under_way = shown.data["id"] in self._calls and self._ended is None
        if not shown.data["id"] or (shown.bound and not under_way):  # else its agent says how it ends
            shown.put(telling.settled(shown.data, ending))

    def known(self, id: str) -> Json:
        """What the agent has said of a call of its own, in its own words."""
        shown = self._calls.get(id) or self._before.get(id)
        return {} if shown is None else shown.said

    def note(self, words: str) -> None:
        """Say something of our own, to both."""
        self._add("note", words)

    def fail(self, problem: AgentError) -> None:
        """Say why the agent cannot go on."""
        logins = [
            {"id": each.id, "name": each.name, "description": each.description, "command": each.command or ""}
            for each in problem.logins
        ]
        self._add("error", problem.sentence, _json({"said": list(problem.said), "logins": logins}))

    def _chunk(self, kind: PartKind, update: Json) -> None:
        block = record(update.get("content"))
        match block.get("type"):
            case "text":
                self._say(kind, text(block.get("text")), name(update.get("messageId")))
            case "image" if (shown := telling.picture(block, self._keep)) is not None:
                self._add("image", data={"image": shown[0], "mime": shown[1]})
            case "resource_link":
                uri = text(block.get("uri"))
                self._add("file", data={"uri": uri, "name": text(block.get("name")) or uri})
            case "resource":
                inner = record(block.get("resource"))
                uri = text(inner.get("uri"))
                self._add("file", cut(text(inner.get("text"))), {"uri": uri, "name": uri.rsplit("/", 1)[-1]})
            case _:
                self._raw(update)

    def _say(self, kind: PartKind, words: str, message_id: str) -> None:
        """Words of one kind and of one message of the agent's grow one part."""
        if not words or self._texts > MOST_TEXT:
            return
        self._texts += len(words)
        if self._texts > MOST_TEXT:
            self.note(f"More than {MOST_TEXT:,} characters were said here; the rest is not kept.")
        elif self._growing is not None and self._growing[:2] == (kind, message_id):
            self._growing[2].grow(words)
        elif (part := self._add(kind, words)) is not None:
            self._growing = (kind, message_id, part)

    def _told(self, kind: str, update: Json) -> None:
        known = name(update.get("toolCallId"))
        shown = self._calls.get(known)
        if shown is None and kind == "tool_call_update":
            shown = self._before.get(known)
        if not known:
            self._raw(update)
        elif shown is not None:
            shown.hear(update, self._keep)
        else:
            data = telling.told(telling.untold(known), update, self._keep)
            (self._adopt(data) or self._show(data)).hear(update, self._keep)

    def _adopt(self, data: CallData) -> _Shown | None:
        """The call of ours that is shown already and that the agent now speaks of."""
        for shown in self._ours.values():
            if not shown.data["id"] and shown.ours is not None and telling.speaks_of(data, shown.ours):
                self._calls[data["id"]] = shown
                shown.put(telling.linked(data, shown.ours))
                return shown
        return None

    def _spoken(self, ours: Ours) -> _Shown | None:
        """The call that an agent spoke of and that is this one of ours; the first one still open."""
        for shown in self._calls.values():
            unmade = shown.data["status"] in ("pending", "in_progress") and not shown.bound
            if unmade and telling.speaks_of(shown.data, ours):
                return shown
        return None

    def _planned(self, update: Json) -> None:
        data = _json(plan(update))
        if self._plan is None:
            self._plan = self._add("plan", data=data)
        else:
            self._plan.put(data)

    def _raw(self, update: Json) -> None:
        self._raws += 1
        if self._raws <= MOST_RAW:
            self._add("raw", data={"update": bounded(update)})
        elif self._raws == MOST_RAW + 1:
            self.note(f"The agent sent more than {MOST_RAW} things here that Handrail does not know.")

    def _show(self, data: CallData) -> _Shown:
        room = len(self._calls) < MOST_CALLS
        shown = _Shown(self._add("call", data=_json(data)) if room else None, data)
        if data["id"]:
            self._calls[data["id"]] = shown
        return shown

    def _add(self, kind: PartKind, words: str = "", data: Json | None = None) -> Part | None:
        """A new part; nothing that is said before the first prompt has a place."""
        self._growing = None
        return None if self._message is None else self._message.add(kind, words, data)


def _json(data: object) -> Json:
    """As the store takes it: the shapes of part.py are JSON, which types cannot say."""
    return cast("Json", data)
