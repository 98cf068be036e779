"""The recorder: takes down what an agent says, update by update, as parts of the message it is saying.

Owns which part each update belongs to; calls have theirs in shown.py. It never awaits, so that no update overtakes
another. It does not know where parts are kept (store/threads), how an agent is reached, or what its calls do.

What an operation is busy with, as an agent that can tells it, taken down as facts.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast, get_args

from handrail.agents.acp.agent_errors import AgentError
from handrail.agents.conversation import tool_calls
from handrail.agents.conversation.session_state import NAMES, plan, stated
from handrail.agents.conversation.tool_calls import Calls, Keep, Ours
from handrail.agents.lenient_json import bounded, cut, name, record, text
from handrail.errors import Conflict, Unwritable
from handrail.gate.operation import Operation
from handrail.store.actor import Actor
from handrail.store.events import ActivityEnded, ActivityStarted
from handrail.store.journal import Journal
from handrail.store.threads.message import Message, Part
from handrail.store.values import ActivityEnding, ActivitySort, Ending, Json, PartKind, Stop

MOST_TEXT = 16 * 1024 * 1024
"""Characters of one message; what floods beyond is not kept."""
MOST_PARTS = 10_000
"""Of one message: words and thoughts that take turns make one each."""
MOST_NAME = 4096
"""Characters of an address."""
MOST_RAW = 200
"""Updates of kinds we do not know that are kept of one message."""


class Recorder:
    """Writes down one agent's side of one conversation."""

    def __init__(
        self,
        put_state: Callable[[str, Json], None],
        keep: Keep,
        retitle: Callable[[str], None],
        *,
        notes: bool = False,
    ) -> None:
        """With `notes`, the agent may say some of our own: it is ours."""
        self.state: dict[str, Json] = {}
        """What this agent said of the conversation as a whole."""
        self._put_state = put_state
        self._keep = keep
        self._retitle = retitle
        self._notes = notes
        self._message: Message | None = None
        self._calls = Calls(lambda data: self._add("call", data=data), keep)
        self._fresh()

    def _fresh(self) -> None:
        self._growing: tuple[PartKind, str, Part] | None = None
        self._plan: Part | None = None
        self._texts = 0
        self._parts = 0
        self._raws = 0

    def begin(self, message: Message) -> None:
        """From now on it is this message that is being said."""
        self._message = message
        self._calls.begin()
        self._fresh()

    def end(self, stop: Stop) -> None:
        """Nothing more is expected; what comes all the same is still added."""
        self._calls.end(stop)

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
            case "tool_call" | "tool_call_update" if known := name(update.get("toolCallId")):
                self._calls.told(known, update, begins=kind == "tool_call")
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

    def link(self, id: str, ours: Ours) -> bool:
        """Link a call of ours to the agent's call `id`, or to one it did not name; False without a message."""
        if self._message is None:
            return False
        self._calls.link(id, ours)
        return True

    def settled(self, call: str, ending: Ending) -> None:
        """A call of ours has its outcome."""
        self._calls.settled(call, ending)

    def known(self, id: str) -> Json:
        """What the agent has said of a call of its own, in its own words."""
        return self._calls.said(id)

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
            case "text" if self._notes and _is_note(update):
                self._noted(text(block.get("text")))
            case "text":
                self._say(kind, text(block.get("text")), name(update.get("messageId")))
            case "image" if (shown := tool_calls.picture(block, self._keep)) is not None:
                self._add("image", data={"image": shown[0], "mime": shown[1]})
            case "resource_link":
                uri, called = text(block.get("uri"))[:MOST_NAME], text(block.get("name"))[:MOST_NAME]
                self._add("file", data={"uri": uri, "name": called or uri})
            case "resource":
                inner = record(block.get("resource"))
                uri, words = text(inner.get("uri"))[:MOST_NAME], cut(text(inner.get("text")))
                if self._takes(len(words)):
                    self._add("file", words, {"uri": uri, "name": uri.rsplit("/", 1)[-1]})
            case _:
                self._raw(update)

    def _say(self, kind: PartKind, words: str, message_id: str) -> None:
        """Words of one kind and of one message of the agent's grow one part."""
        if not words or not self._takes(len(words)):
            return
        if self._growing is not None and self._growing[:2] == (kind, message_id):
            self._growing[2].grow(words)
        elif (part := self._add(kind, words)) is not None:
            self._growing = (kind, message_id, part)

    def _noted(self, words: str) -> None:
        """A line of its own. Those are bounded as all that an agent says is, which our own need not be."""
        if words and self._takes(len(words)) and self._has_room():
            self.note(words)

    def _takes(self, size: int) -> bool:
        """Whether so many more characters are kept; the first time that they are not, it is said."""
        before, self._texts = self._texts, self._texts + size
        if before <= MOST_TEXT < self._texts:
            self.note(f"More than {MOST_TEXT:,} characters were said here; the rest is not kept.")
        return self._texts <= MOST_TEXT

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

    def _add(self, kind: PartKind, words: str = "", data: Json | None = None) -> Part | None:
        """A new part; nothing that is said before the first prompt has a place."""
        self._growing = None
        if self._message is None or not (kind in ("note", "error") or self._has_room()):
            return None
        return self._message.add(kind, words, data)

    def _has_room(self) -> bool:
        self._parts += 1
        if self._parts == MOST_PARTS + 1:
            self.note(f"The agent said more than {MOST_PARTS:,} things here; the rest is not kept.")
        return self._parts <= MOST_PARTS


def _is_note(update: Json) -> bool:
    """What the agent itself, not its model, has to say."""
    return record(record(update.get("_meta")).get("handrail")).get("note") is True


def _json(data: object) -> Json:
    """As the store takes it: the shapes of part.py are JSON, which types cannot say."""
    return cast("Json", data)


log = logging.getLogger(__name__)

MOST = 20_000
"""Of one operation; what is told beyond is not kept."""
LONGEST_ID = 64
LONGEST_TITLE = 500
LONGEST_DETAIL = 2000
"""Characters; people see them in a line."""
MOST_WORDS = 100
"""Of what was cancelled with an operation: nobody reads more."""


@dataclass(slots=True)
class _Open:
    """One that is under way."""

    sort: ActivitySort
    title: str
    parent: str | None
    cancelled_by: Actor | None = None


class Activities:
    """Those of one agent on one thread, for the operation that runs."""

    def __init__(self, journal: Journal, thread: str) -> None:
        self._journal, self._thread = journal, thread
        self._operation: Operation | None = None
        self._open: dict[str, _Open] = {}
        self._known: set[str] = set()

    def begin(self, operation: Operation) -> None:
        """From now on they are this operation's."""
        self._operation, self._open, self._known = operation, {}, set()
        operation.busy_with = self._words

    def end(self) -> None:
        """None is told any more."""
        self._operation, self._open, self._known = None, {}, set()

    def hear(self, told: Json) -> None:
        """One began or ended. What is told of no operation, or of one that has ended, is nobody's."""
        told_id, sort = _id(told.get("id")), told.get("sort")
        operation = self._operation
        if operation is None or operation.ended or not told_id or sort not in get_args(ActivitySort):
            return
        if told.get("how") is None:
            self._begun(operation, told_id, cast("ActivitySort", sort), told)
        elif told.get("how") in _ENDINGS and told_id in self._open:
            self._ended(operation, told_id, cast("ActivityEnding", told["how"]), text(told.get("detail")))

    def is_root(self, id: str) -> bool:
        return id in self._open and self._open[id].sort == "operation"

    def note_cancel(self, id: str, by: Actor) -> None:
        """Somebody wants this one cancelled. Raises LookupError, and Conflict where it is over."""
        if id in self._open:
            self._open[id].cancelled_by = by
        elif id in self._known:
            raise Conflict(f"The activity {id} had ended before.")
        else:
            raise LookupError(f"There is no activity {id} in this operation.")

    def _begun(self, operation: Operation, id: str, sort: ActivitySort, told: Json) -> None:
        if id in self._known or len(self._known) >= MOST:
            return
        above = _id(told.get("parent"))
        parent = above if above in self._open else None
        title = text(told.get("title"))[:LONGEST_TITLE]
        self._known.add(id)
        self._open[id] = _Open(sort, title, parent)
        self._note(
            ActivityStarted(
                thread=self._thread,
                operation=operation.id,
                activity=id,
                parent=parent,
                sort=sort,
                title=title,
                tool_call=name(told.get("toolCallId"))[:LONGEST_TITLE],
            )
        )

    def _ended(self, operation: Operation, id: str, how: ActivityEnding, detail: str) -> None:
        by = self._by(id) if how == "cancelled" else None
        gone = self._open.pop(id)
        self._note(
            ActivityEnded(
                thread=self._thread,
                operation=operation.id,
                activity=id,
                sort=gone.sort,
                how=how,
                by="" if by is None else str(by),
                detail=detail[:LONGEST_DETAIL],
            )
        )

    def _by(self, id: str) -> Actor | None:
        """Who cancelled it, or something it is part of."""
        found = self._open.get(id)
        while found is not None and found.cancelled_by is None:
            found = self._open.get(found.parent or "")
        return None if found is None else found.cancelled_by

    def _words(self) -> tuple[str, ...]:
        """What is under way, as people say it; steps and the whole are none of it."""
        busy = [each for each in self._open.values() if each.sort not in ("operation", "step")]
        return tuple(_WORDS.get(each.sort) or each.title for each in busy[:MOST_WORDS])

    def _note(self, event: ActivityStarted | ActivityEnded) -> None:
        try:
            self._journal.append(event)
        except Unwritable as problem:
            log.error("%s could not be recorded: %s", event.kind, problem)


def _id(value: object) -> str:
    """One that is too long is none, rather than another's."""
    found = name(value)
    return found if len(found) <= LONGEST_ID else ""


_ENDINGS = ("done", "failed", "cancelled")
_WORDS: dict[ActivitySort, str] = {
    "model": "asking the model",
    "thinking": "thinking",
    "compaction": "summing up the conversation",
}
