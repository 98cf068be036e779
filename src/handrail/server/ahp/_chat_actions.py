"""Chat actions: the actions that bring a chat's state to what a thread shows now. Pure.

Ended turns cannot be changed by an action, so a change that comes after the end is seen only in the next snapshot.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from handrail.server.ahp.ahp_wire import IDLE, Obj, iso_time, without_none
from handrail.server.ahp.reducers import reduce_chat
from handrail.server.ahp.turns import CallPart, FormPart, PendingPrompt, TextPart, Turn, TurnPart, error_part

RUNNING = "Running"


def empty_chat(chat: str, title: str, modified_at: int) -> Obj:
    """The state of a chat without turns."""
    return {
        "resource": chat,
        "title": title,
        "status": IDLE,
        "modifiedAt": iso_time(modified_at),
        "turns": [],
    }


class ChatActions:
    """Collects the actions from one state to the next."""

    def __init__(self, state: Obj) -> None:
        self.state = state
        self.actions: list[Obj] = []

    def reach(self, turns: Sequence[Turn], pending: Sequence[PendingPrompt], sent: dict[str, str]) -> None:
        """Collect the actions that lead to these turns. `sent` names the pending prompt that each turn was."""
        over = {turn["id"] for turn in self.state["turns"]}
        for turn in turns:
            if turn.id not in over:
                self._show_turn(turn, sent.get(turn.id))
        self._show_pending(pending)

    def do(self, action: Obj) -> None:
        self.actions.append(action)
        self.state = reduce_chat(self.state, action)

    def _show_turn(self, turn: Turn, pending: str | None) -> None:
        active: Obj | None = self.state.get("activeTurn")
        if active is None or active["id"] != turn.id:
            started: Obj = {
                "turnId": turn.id,
                "startedAt": iso_time(turn.started_at),
                "message": turn.message,
            }
            queued: Obj = {} if pending is None else {"queuedMessageId": pending}
            self.do({"type": "chat/turnStarted", **started, **queued})
        for part in turn.parts:
            self._show_part(turn, part)
        self._end_turn(turn)

    def _end_turn(self, turn: Turn) -> None:
        ended: Obj = {"turnId": turn.id, "duration": turn.duration}
        match turn.state:
            case "active":
                return
            case "complete":
                self.do({"type": "chat/turnComplete", **ended})
            case "cancelled":
                self.do({"type": "chat/turnCancelled", **ended})
            case "error":
                self.do({"type": "chat/error", **ended, "part": error_part(turn.error)})

    def _show_part(self, turn: Turn, part: TurnPart) -> None:
        match part:
            case TextPart():
                self._show_text(turn, part)
            case CallPart():
                CallActions(self, turn, part).show()
            case FormPart():
                self._show_form(turn, part)

    def _show_text(self, turn: Turn, part: TextPart) -> None:
        shown = self._find(lambda one: one.get("id") == part.id)
        if shown is None:
            body = {"kind": part.kind, "id": part.id, "content": part.text}
            self.do({"type": "chat/responsePart", "turnId": turn.id, "part": body})
            return
        before: str = shown["content"]
        if len(part.text) > len(before) and part.text.startswith(before):
            action = "chat/delta" if part.kind == "markdown" else "chat/reasoning"
            more = part.text[len(before) :]
            self.do({"type": action, "turnId": turn.id, "partId": part.id, "content": more})

    def _show_form(self, turn: Turn, part: FormPart) -> None:
        shown = self._find(lambda one: one["kind"] == "inputRequest" and one["request"]["id"] == part.id)
        if shown is None:
            self.do({"type": "chat/inputRequested", "turnId": turn.id, "request": part.request})
        if part.response is not None and (shown is None or "response" not in shown):
            ended = without_none(requestId=part.id, response=part.response, answers=part.answers)
            self.do({"type": "chat/inputCompleted", **ended})

    def _show_pending(self, pending: Iterable[PendingPrompt]) -> None:
        wanted = {prompt.id: prompt for prompt in pending}
        steering: Obj | None = self.state.get("steeringMessage")
        shown: list[tuple[str, Obj]] = [("queued", one) for one in self.state.get("queuedMessages", ())]
        if steering is not None:
            shown.append(("steering", steering))
        for kind, one in shown:
            if one["id"] not in wanted:
                self.do({"type": "chat/pendingMessageRemoved", "kind": kind, "id": one["id"]})
        known = {one["id"] for _, one in shown}
        for prompt in wanted.values():
            if prompt.id not in known:
                fields: Obj = {"kind": prompt.kind, "id": prompt.id, "message": prompt.message}
                self.do({"type": "chat/pendingMessageSet", **fields})

    def _find(self, is_it: Callable[[Obj], bool]) -> Obj | None:
        turn: Obj = self.state.get("activeTurn") or {"responseParts": []}
        return next((part for part in turn["responseParts"] if is_it(part)), None)

    def find_call(self, id: str) -> Obj | None:
        part = self._find(lambda one: one["kind"] == "toolCall" and one["toolCall"]["toolCallId"] == id)
        return None if part is None else part["toolCall"]


class CallActions:
    """The actions that bring one tool call to its phase."""

    def __init__(self, chat: ChatActions, turn: Turn, part: CallPart) -> None:
        self._chat = chat
        self._part = part if turn.state == "active" else _left_open(part)
        self._name: Obj = {"turnId": turn.id, "toolCallId": part.id}

    @property
    def _status(self) -> str:
        call = self._chat.find_call(self._part.id)
        return "" if call is None else call["status"]

    def show(self) -> None:
        part = self._part
        if not self._status:
            self._start()
        if self._status in ("completed", "cancelled"):
            return
        if part.phase == "asking":
            self._ask()
        elif self._status == "pending-confirmation":
            self._answer()
        elif self._status == "streaming":
            self._ready(confirmed="not-needed")
        if self._status == "running":
            self._run()

    def _start(self) -> None:
        part = self._part
        self._chat.do(
            {
                "type": "chat/toolCallStart",
                **self._name,
                "toolName": part.tool,
                "displayName": part.title,
                **({} if part.is_command else {"intention": part.title}),
                "_meta": part.meta if part.phase != "asking" else _plain(part.meta),
            }
        )

    def _ready(self, **more: object) -> None:
        part = self._part
        message = RUNNING if part.is_command else part.title  # VS Code adds the command itself
        ready = {"invocationMessage": message, "toolInput": part.input, "_meta": part.meta}
        self._chat.do({"type": "chat/toolCallReady", **self._name, **ready, **more})

    def _ask(self) -> None:
        question = self._part.question
        call = self._chat.find_call(self._part.id)
        if question is None or call is None:
            return
        if (
            call["status"] == "pending-confirmation"
            and call["_meta"].get("handrail/digest") == question.digest
        ):
            return
        self._ready(
            **without_none(
                confirmationTitle=question.title,
                options=list(question.options),
                edits={"items": list(question.edits)} if question.edits else None,
                invocationMessage=_whole_question(self._part),
                _meta={**_plain(self._part.meta), "handrail/digest": question.digest},
            )
        )

    def _answer(self) -> None:
        """The question was answered, or is no longer asked."""
        confirmed: Obj = {"type": "chat/toolCallConfirmed", **self._name}
        match self._part.phase:
            case "denied":
                reason = without_none(reasonMessage=self._part.message or None)
                self._chat.do({**confirmed, "approved": False, "reason": "denied", **reason})
            case "failed" | "withdrawn":
                reason = without_none(reasonMessage=self._part.message or None)
                self._chat.do({**confirmed, "approved": False, "reason": "skipped", **reason})
            case _:
                self._chat.do({**confirmed, "approved": True, "confirmed": "user-action"})

    def _run(self) -> None:
        part = self._part
        call = self._chat.find_call(part.id)
        if call is not None and part.is_command and call["invocationMessage"] != RUNNING:
            self._ready(confirmed=call.get("confirmed") or "user-action")  # it was shown as a question
        if part.phase not in ("running", "asking"):
            self._chat.do({"type": "chat/toolCallComplete", **self._name, "result": self._result()})
        elif part.content and call is not None and call.get("content") != list(part.content):
            changed = {"content": list(part.content)}
            self._chat.do({"type": "chat/toolCallContentChanged", **self._name, **changed})

    def _result(self) -> Obj:
        part = self._part
        is_done = part.phase == "done"
        done = "Ran" if part.is_command else part.title
        past = done if is_done else f"{done}: {part.message or 'failed'}"
        error = None if is_done else {"message": part.message or "It failed."}
        return without_none(
            success=is_done, pastTenseMessage=past, content=list(part.content) or None, error=error
        )


def _left_open(part: CallPart) -> CallPart:
    """The call of a turn that is over: one that runs on does so in the background, and a question is on the page."""
    match part.phase:
        case "running":
            return replace(part, phase="done", title=f"{part.title} (goes on in the background)")
        case "asking":
            return replace(part, phase="withdrawn", question=None, message="Answer it on Handrail's page.")
        case _:
            return part


def _plain(meta: Obj) -> Obj:
    """Without the kind: VS Code asks about a terminal with its own buttons, and leaves our options out."""
    return {name: value for name, value in meta.items() if name not in ("toolKind", "language")}


def _whole_question(part: CallPart) -> object:
    """What the card shows: the title, and the input unless the title has all of it or a diff shows it."""
    if part.input in part.title or (part.question is not None and part.question.edits):
        return part.title
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", part.input)), default=0))
    return {"markdown": f"{fence}\n{part.input}\n{fence}"}
