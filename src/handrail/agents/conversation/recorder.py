"""The recorder: stores an agent's session updates as parts of its message, and its activities as events.

Decides which part each update belongs to; tool calls are in `tool_calls.py`. Nothing here awaits, so updates
keep their order. It does not know how parts are stored (`store/threads`) or how an agent is reached.
"""

import logging
from collections.abc import Callable
from typing import cast, get_args

from handrail.agents.acp.agent_errors import AgentError
from handrail.agents.conversation import tool_calls
from handrail.agents.conversation.session_state import STATE_NAMES, plan_from_update, state_from_update
from handrail.agents.conversation.tool_calls import MessageCalls, OwnCall, ShownCall, StoreImage
from handrail.agents.lenient_json import bounded, cut, name, record, text
from handrail.errors import Conflict, Unwritable
from handrail.gate.operation import Operation
from handrail.lazy_dataclass import dataclass
from handrail.store.actor import Actor
from handrail.store.events import ActivityEnded, ActivityStarted
from handrail.store.journal import Journal
from handrail.store.threads.message import Message, Part
from handrail.store.values import ActivityEnding, ActivityKind, Ending, Json, PartKind, Stop

MOST_TEXT = 16 * 1024 * 1024
"""Characters of one message; bounds storage. The rest is dropped, with a note."""
MOST_PARTS = 10_000
"""Parts of one message: each switch between text and thoughts adds one."""
MOST_NAME = 4096
"""Characters of a URI or file name."""
MOST_RAW = 200
"""Unknown updates stored per message."""


class Recorder:
    """Records one agent's side of one conversation."""

    def __init__(
        self,
        put_state: Callable[[str, Json], None],
        store_image: StoreImage,
        retitle: Callable[[str], None],
        *,
        notes: bool = False,
    ) -> None:
        """With `notes`, the agent may add notes as Handrail does: only for our own agent."""
        self.state: dict[str, Json] = {}
        """The agent's modes, options, commands, usage and plan."""
        self._put_state = put_state
        self._store_image = store_image
        self._retitle = retitle
        self._notes = notes
        self._message: Message | None = None
        self._calls = MessageCalls(lambda data: self._add("call", data=data), store_image)
        self._reset_counters()

    def _reset_counters(self) -> None:
        self._last_text: tuple[PartKind, str, Part] | None = None
        self._plan: Part | None = None
        self._texts = 0
        self._parts = 0
        self._raws = 0

    def begin(self, message: Message) -> None:
        """Record into this message from now on."""
        self._message = message
        self._calls.begin()
        self._reset_counters()

    @property
    def message(self) -> Message | None:
        """The message that is recorded into; None before the first prompt."""
        return self._message

    def go_on(self, message: Message) -> None:
        """Record into this message from now on: the agent was given a message while it worked. Its open calls stay
        where they are."""
        self._message = message
        self._reset_counters()

    def end(self, stop: Stop) -> None:
        """The agent has stopped; late updates are still added."""
        self._calls.end(stop)

    def show_state(self) -> None:
        """Publish the state again, after another agent was the speaker."""
        for each in STATE_NAMES:
            self._put_state(each, self.state.get(each, {}))

    def update(self, update: Json) -> None:
        """Record one update."""
        kind = text(update.get("sessionUpdate"))
        if (state := state_from_update(update, self.state)) is not None:
            self.state[state[0]] = state[1]
            self._put_state(*state)
        match kind:
            case "agent_message_chunk":
                self._record_chunk("text", update)
            case "agent_thought_chunk":
                self._record_chunk("thought", update)
            case "tool_call" | "tool_call_update" if call_id := name(update.get("toolCallId")):
                self._calls.update(call_id, update, begins=kind == "tool_call")
            case "plan" | "plan_update":
                self._record_plan(update)
            case "session_info_update":
                if title := text(update.get("title")).strip():
                    self._retitle(title)
            case "user_message_chunk":
                return  # the prompt is already stored
            case _ if state is None:
                self._record_unknown(update)
            case _:
                return

    def link(self, id: str, own_call: OwnCall) -> bool:
        """Link a call of ours to the agent's call `id`, or to one it did not name; False without a message."""
        if self._message is None:
            return False
        self._calls.link(id, own_call)
        return True

    def settled(self, call: str, ending: Ending) -> None:
        """A call of ours has settled."""
        self._calls.settled(call, ending)

    def known(self, id: str) -> Json:
        """The kept fields of the agent's updates about one of its tool calls."""
        return self._calls.known_fields(id)

    def shown(self, id: str) -> ShownCall | None:
        """One of the agent's tool calls, as the conversation shows it."""
        return self._calls.find(id)

    def running_calls(self) -> list[ShownCall]:
        """The agent's own tool calls that have not ended."""
        return self._calls.running()

    def note(self, words: str) -> None:
        """Add a note from Handrail to the message."""
        self._add("note", words)

    def fail(self, problem: AgentError) -> None:
        """Record why the agent cannot go on."""
        logins = [
            {"id": each.id, "name": each.name, "description": each.description, "command": each.command or ""}
            for each in problem.logins
        ]
        self._add("error", problem.sentence, _json({"said": list(problem.said), "logins": logins}))

    def _record_chunk(self, kind: PartKind, update: Json) -> None:
        block = record(update.get("content"))
        match block.get("type"):
            case "text" if self._notes and _is_note(update):
                self._add_agent_note(text(block.get("text")))
            case "text":
                self._append_text(kind, text(block.get("text")), name(update.get("messageId")))
            case "image" if (image := tool_calls.store_image_block(block, self._store_image)) is not None:
                self._add("image", data={"image": image[0], "mime": image[1]})
            case "resource_link":
                uri, name_of_file = text(block.get("uri"))[:MOST_NAME], text(block.get("name"))[:MOST_NAME]
                self._add("file", data={"uri": uri, "name": name_of_file or uri})
            case "resource":
                inner = record(block.get("resource"))
                uri, words = text(inner.get("uri"))[:MOST_NAME], cut(text(inner.get("text")))
                if self._count_text(len(words)):
                    self._add("file", words, {"uri": uri, "name": uri.rsplit("/", 1)[-1]})
            case _:
                self._record_unknown(update)

    def _append_text(self, kind: PartKind, words: str, message_id: str) -> None:
        """Append to the last part if kind and message id match, else start a part."""
        if not words or not self._count_text(len(words)):
            return
        if self._last_text is not None and self._last_text[:2] == (kind, message_id):
            self._last_text[2].grow(words)
        elif (part := self._add(kind, words)) is not None:
            self._last_text = (kind, message_id, part)

    def _add_agent_note(self, words: str) -> None:
        """Add a note sent by our own agent. It counts towards the limits; Handrail's own notes do not."""
        if words and self._count_text(len(words)) and self._has_room():
            self.note(words)

    def _count_text(self, size: int) -> bool:
        """Whether this many more characters are stored; the first time they are not, a note is added."""
        before, self._texts = self._texts, self._texts + size
        if before <= MOST_TEXT < self._texts:
            self.note(f"More than {MOST_TEXT:,} characters were said here; the rest is not kept.")
        return self._texts <= MOST_TEXT

    def _record_plan(self, update: Json) -> None:
        data = _json(plan_from_update(update))
        if self._plan is None:
            self._plan = self._add("plan", data=data)
        else:
            self._plan.put(data)

    def _record_unknown(self, update: Json) -> None:
        self._raws += 1
        if self._raws <= MOST_RAW:
            self._add("raw", data={"update": bounded(update)})
        elif self._raws == MOST_RAW + 1:
            self.note(f"The agent sent more than {MOST_RAW} things here that Handrail does not know.")

    def _add(self, kind: PartKind, words: str = "", data: Json | None = None) -> Part | None:
        """Add a part; None before the first prompt, or above the limits."""
        self._last_text = None
        if self._message is None or not (kind in ("note", "error") or self._has_room()):
            return None
        return self._message.add(kind, words, data)

    def _has_room(self) -> bool:
        self._parts += 1
        if self._parts == MOST_PARTS + 1:
            self.note(f"The agent said more than {MOST_PARTS:,} things here; the rest is not kept.")
        return self._parts <= MOST_PARTS


def _is_note(update: Json) -> bool:
    """Whether the text comes from the agent program rather than its model."""
    return record(record(update.get("_meta")).get("handrail")).get("note") is True


def _json(data: object) -> Json:
    """The typed parts are JSON, which the type checker cannot know."""
    return cast("Json", data)


log = logging.getLogger(__name__)

MOST = 20_000
"""Activities of one operation; bounds the journal. Further ones are dropped."""
LONGEST_ID = 64
LONGEST_TITLE = 500
LONGEST_DETAIL = 2000
"""Characters; people see these in one line."""
MOST_WORDS = 100
"""Activities listed when an operation is cancelled; more are not useful."""


@dataclass(slots=True)
class _Open:
    """An activity that is running."""

    sort: ActivityKind
    title: str
    parent: str | None
    cancelled_by: Actor | None = None


class Activities:
    """The activities of one agent on one thread, for the running operation."""

    def __init__(self, journal: Journal, thread: str) -> None:
        self._journal, self._thread = journal, thread
        self._operation: Operation | None = None
        self._open: dict[str, _Open] = {}
        self._known: set[str] = set()

    def begin(self, operation: Operation) -> None:
        """Assign activities to this operation from now on."""
        self._operation, self._open, self._known = operation, {}, set()
        operation.busy_with = self._describe_running

    def end(self) -> None:
        """The prompt has ended; further activities are dropped."""
        self._operation, self._open, self._known = None, {}, set()

    def record(self, activity: Json) -> None:
        """Record the begin or end of an activity; dropped without a running operation."""
        activity_id, sort = _id(activity.get("id")), activity.get("sort")
        operation = self._operation
        if operation is None or operation.ended or not activity_id or sort not in get_args(ActivityKind):
            return
        if activity.get("how") is None:
            self._record_start(operation, activity_id, cast("ActivityKind", sort), activity)
        elif activity.get("how") in _ENDINGS and activity_id in self._open:
            self._record_end(
                operation, activity_id, cast("ActivityEnding", activity["how"]), text(activity.get("detail"))
            )

    def is_root(self, id: str) -> bool:
        return id in self._open and self._open[id].sort == "operation"

    def note_cancel(self, id: str, by: Actor) -> None:
        """Note who cancels an activity. Raises LookupError, and Conflict if it has ended."""
        if id in self._open:
            self._open[id].cancelled_by = by
        elif id in self._known:
            raise Conflict(f"The activity {id} had ended before.")
        else:
            raise LookupError(f"There is no activity {id} in this operation.")

    def _record_start(self, operation: Operation, id: str, sort: ActivityKind, activity: Json) -> None:
        if id in self._known or len(self._known) >= MOST:
            return
        claimed_parent = _id(activity.get("parent"))
        parent = claimed_parent if claimed_parent in self._open else None
        title = text(activity.get("title"))[:LONGEST_TITLE]
        self._known.add(id)
        self._open[id] = _Open(sort, title, parent)
        self._append(
            ActivityStarted(
                thread=self._thread,
                operation=operation.id,
                activity=id,
                parent=parent,
                sort=sort,
                title=title,
                tool_call=name(activity.get("toolCallId"))[:LONGEST_TITLE],
            )
        )

    def _record_end(self, operation: Operation, id: str, how: ActivityEnding, detail: str) -> None:
        by = self._find_canceller(id) if how == "cancelled" else None
        ended = self._open.pop(id)
        self._append(
            ActivityEnded(
                thread=self._thread,
                operation=operation.id,
                activity=id,
                sort=ended.sort,
                how=how,
                by="" if by is None else str(by),
                detail=detail[:LONGEST_DETAIL],
            )
        )

    def _find_canceller(self, id: str) -> Actor | None:
        """Who cancelled it or one of its parents."""
        current = self._open.get(id)
        while current is not None and current.cancelled_by is None:
            current = self._open.get(current.parent or "")
        return None if current is None else current.cancelled_by

    def _describe_running(self) -> tuple[str, ...]:
        """The running activities, as words for people; without steps and the operation itself."""
        busy = [each for each in self._open.values() if each.sort not in ("operation", "step")]
        return tuple(_WORDS.get(each.sort) or each.title for each in busy[:MOST_WORDS])

    def _append(self, event: ActivityStarted | ActivityEnded) -> None:
        try:
            self._journal.append(event)
        except Unwritable as problem:
            log.error("%s could not be recorded: %s", event.kind, problem)


def _id(value: object) -> str:
    """An activity's id; empty if it is too long, because a cut id could match another."""
    text_id = name(value)
    return text_id if len(text_id) <= LONGEST_ID else ""


_ENDINGS = ("done", "failed", "cancelled")
_WORDS: dict[ActivityKind, str] = {
    "model": "asking the model",
    "thinking": "thinking",
    "compaction": "summing up the conversation",
}
