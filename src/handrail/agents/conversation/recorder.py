"""The recorder: takes down what an agent says, update by update, as parts of the message it is saying.

Owns which part each update belongs to; calls have theirs in shown.py. It never awaits, so that no update overtakes
another. It does not know where parts are kept (store/threads), how an agent is reached, or what its calls do.
"""

from collections.abc import Callable
from typing import cast

from handrail.agents.acp.agent_errors import AgentError
from handrail.agents.conversation import tool_calls
from handrail.agents.conversation.session_state import NAMES, plan, stated
from handrail.agents.conversation.tool_calls import Calls, Keep, Ours
from handrail.agents.lenient_json import bounded, cut, name, record, text
from handrail.store.threads.message import Message, Part
from handrail.store.values import Ending, Json, PartKind, Stop

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
