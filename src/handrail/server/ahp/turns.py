"""Turns: a thread's messages and the facts about its calls, as the protocol shows them. Pure.

A prompt and the answer to it are one turn. A turn's id is that of the prompt's message, unless a client chose one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from handrail.server.ahp.ahp_wire import Obj, without_none
from handrail.store.threads.live_thread import Growth, ThreadChanges
from handrail.store.threads.parts import CallData
from handrail.store.threads.thread_records import MessagePart, MessageRecord
from handrail.store.values import Ending, Json

ADVISORY = "agent_work"
"""Our call for work that an agent does itself: when it is allowed, the agent's own report counts."""
FORM = "agent_form"
COMMANDS = ("execute_command", "run_in_terminal")
TEXT_MAX = 64 * 1024
"""Characters of one result that are sent. A card shows far less, and the page has all of it."""
INPUT_MAX = 16 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """An open approval as a card."""

    digest: str
    title: str
    options: tuple[Obj, ...]
    edits: tuple[Obj, ...] = ()
    form: Obj | None = None
    """The request of a form; None for every other call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFacts:
    """The known facts about a call of ours."""

    id: str
    tool: str
    title: str
    input: Json
    status: Literal["waiting", "running"] | Ending
    message: str = ""
    text: str = ""
    """The text of its result."""
    terminal: Obj | None = None
    """The content that shows its terminal."""
    edits: tuple[Obj, ...] = ()
    """The files that it changed."""
    question: Question | None = None
    answered: Obj | None = None
    """The answers to a form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPart:
    id: str
    kind: Literal["markdown", "reasoning"]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FormPart:
    """A form to fill in."""

    id: str
    request: Obj
    response: str | None = None
    answers: Obj | None = None


Phase = Literal["asking", "running", "done", "failed", "denied", "withdrawn"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPart:
    """One tool call."""

    id: str
    tool: str
    title: str
    phase: Phase
    input: str
    meta: Obj
    question: Question | None = None
    content: tuple[Obj, ...] = ()
    message: str = ""
    """How it ended."""

    @property
    def is_command(self) -> bool:
        return self.meta.get("toolKind") == "terminal"


TurnPart = TextPart | CallPart | FormPart
TurnState = Literal["active", "complete", "cancelled", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A prompt and its answer."""

    id: str
    message: Obj
    started_at: int
    state: TurnState
    duration: int = 0
    parts: tuple[TurnPart, ...] = ()
    error: str = ""


PendingKind = Literal["steering", "queued"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingPrompt:
    """A prompt that waits for the end of the running one."""

    id: str
    kind: PendingKind
    message: Obj


@dataclass(slots=True)
class ThreadCopy:
    """The messages of a thread, kept current with its changes."""

    messages: dict[str, MessageRecord] = field(default_factory=dict[str, MessageRecord])

    def load(self, messages: Iterable[MessageRecord]) -> None:
        self.messages = {message.id: message for message in messages}

    def apply(self, changes: ThreadChanges) -> None:
        if changes.reset:
            first = min((message.n for message in changes.messages), default=0)
            self.load([message for message in self.messages.values() if message.n < first])
        for head in changes.messages:
            known = self.messages.get(head.id)
            self.messages[head.id] = replace(head, parts=() if known is None else known.parts)
        for growth in changes.growths:
            self._grow(growth)
        for message in changes.dropped:
            self.messages.pop(message, None)

    def _grow(self, growth: Growth) -> None:
        message = self.messages.get(growth.message)
        if message is None:
            return
        before = next((part for part in message.parts if part.n == growth.n), None)
        text = growth.text if before is None else before.text[: growth.at] + growth.text
        data = growth.data if growth.data is not None else {} if before is None else before.data
        grown = MessagePart(n=growth.n, kind=growth.kind, text=text, data=data)
        if before is None:
            parts = (*message.parts, grown)
        else:
            parts = tuple(grown if part is before else part for part in message.parts)
        self.messages[growth.message] = replace(message, parts=parts)

    @property
    def said(self) -> list[MessageRecord]:
        """The messages in order, without queued prompts."""
        return sorted((one for one in self.messages.values() if not one.queued), key=lambda one: one.n)

    @property
    def queued(self) -> list[MessageRecord]:
        return sorted((one for one in self.messages.values() if one.queued), key=lambda one: one.n)


def call_ids(messages: Iterable[MessageRecord]) -> Iterator[str]:
    """The ids of our calls that messages show."""
    for message in messages:
        for part in message.parts:
            if part.kind == "call" and isinstance(call := part.data.get("call"), str):
                yield call


def group_messages(messages: Sequence[MessageRecord]) -> list[list[MessageRecord]]:
    """The messages of each turn: a prompt, and the messages until the next one."""
    groups: list[list[MessageRecord]] = []
    for message in messages:
        if message.role == "user" or not groups:
            groups.append([message])
        else:
            groups[-1].append(message)
    return groups


def build_turn(messages: Sequence[MessageRecord], facts: Mapping[str, CallFacts], turn_id: str) -> Turn:
    """One turn from its messages: the prompt first, unless the thread begins with an answer."""
    first, answers = messages[0], [one for one in messages if one.role != "user"]
    state = _turn_state(answers)
    ended = [one.ended_at for one in answers if one.ended_at is not None]
    parts = [part for answer in answers for part in _parts(answer, facts, is_over=state != "active")]
    return Turn(
        id=turn_id,
        message=_prompt_message(first if first.role == "user" else None),
        started_at=first.opened_at,
        state=state,
        duration=max(0, max(ended, default=first.opened_at) - first.opened_at),
        parts=tuple(parts),
        error=_error(answers) if state == "error" else "",
    )


def _turn_state(answers: Sequence[MessageRecord]) -> TurnState:
    if any(answer.stop is None for answer in answers):
        return "active"
    match answers[-1].stop if answers else "end_turn":
        case "cancelled":
            return "cancelled"
        case "failed" | "interrupted":
            return "error"
        case _:
            return "complete"


def _error(answers: Sequence[MessageRecord]) -> str:
    said = [part.text for answer in answers for part in answer.parts if part.kind == "error"]
    return said[-1] if said else "Handrail ended while the agent worked. Send the prompt again to go on."


def pending_prompt(message: MessageRecord, id: str, kind: PendingKind) -> PendingPrompt:
    return PendingPrompt(id=id, kind=kind, message=_prompt_message(message))


def _prompt_message(prompt: MessageRecord | None) -> Obj:
    parts = () if prompt is None else prompt.parts
    text = "\n\n".join(part.text for part in parts if part.kind == "text")
    attachments = [_attachment(part.data) for part in parts if part.kind == "file"]
    return without_none(text=text, origin={"kind": "user"}, attachments=attachments or None)


def _attachment(data: Json) -> Obj:
    return {"type": "resource", "uri": data.get("uri"), "label": data.get("name"), "displayKind": "document"}


def _parts(answer: MessageRecord, facts: Mapping[str, CallFacts], *, is_over: bool) -> Iterator[TurnPart]:
    for part in answer.parts:
        name = f"{answer.id}.{part.n}"
        match part.kind:
            case "text":
                yield TextPart(id=name, kind="markdown", text=part.text)
            case "thought":
                yield TextPart(id=name, kind="reasoning", text=part.text)
            case "call":
                yield _call_part(name, cast("CallData", part.data), facts)
            case "plan" if is_over:  # its text can only be extended, and a plan changes until the end
                yield TextPart(id=name, kind="markdown", text=_plan_text(part.data))
            case "note":
                yield TextPart(id=name, kind="markdown", text=f"> {part.text}\n\n")
            case "file":
                words = f"[{part.data.get('name')}]({part.data.get('uri')})"
                yield TextPart(id=name, kind="markdown", text=words)
            case "image":
                yield TextPart(id=name, kind="markdown", text="*(a picture; Handrail's page shows it)*")
            case "plan" | "error" | "raw":
                continue


def _plan_text(data: Json) -> str:
    entries = cast("list[dict[str, Any]]", data.get("entries") or [])
    return "\n".join(
        f"- [{'x' if one['status'] == 'completed' else ' '}] {one['content']}" for one in entries
    )


def _call_part(name: str, data: CallData, facts: Mapping[str, CallFacts]) -> CallPart | FormPart:
    known = facts.get(data["call"] or "")
    if known is not None and known.tool == FORM and (known.question or known.answered is not None):
        return _form_part(known)
    phase = _own_phase(data) if known is None else _phase(known, data)
    return CallPart(
        id=name,
        tool=data["tool"] or (known.tool if known else "") or data["sort"],
        title=(known.title if known else "") or data["title"] or "A call",
        phase=phase,
        input=_input_text(known.input if known else cast("Json | None", data["input"])),
        meta=_meta(data, known),
        question=None if known is None else known.question,
        content=tuple(_content(data, known)),
        message="" if known is None else known.message,
    )


def _form_part(known: CallFacts) -> FormPart:
    if known.question is not None:
        return FormPart(id=known.id, request=known.question.form or {"id": known.id})
    response = "accept" if known.status in ("done", "completed") else "decline"
    return FormPart(
        id=known.id,
        request={"id": known.id, "message": known.title, "questions": []},
        response=response,
        answers=known.answered,
    )


def _phase(known: CallFacts, data: CallData) -> Phase:
    match known.status:
        case "waiting":
            return "asking" if known.question else "running"
        case "running":
            return "running"
        case "done" | "completed":
            return _own_phase(data) if known.tool == ADVISORY else "done"
        case "denied":
            return "denied"
        case "failed" | "cancelled" | "interrupted":
            return "failed"


def _own_phase(data: CallData) -> Phase:
    match data["status"]:
        case "pending" | "in_progress":
            return "running"
        case "completed":
            return "done"
        case "failed" | "cancelled":
            return "failed"


def _meta(data: CallData, known: CallFacts | None) -> Obj:
    meta: Obj = {} if known is None else {"handrail/call": known.id}
    is_command = known is not None and (known.tool in COMMANDS or known.terminal is not None)
    if is_command or data["sort"] == "execute":
        meta |= {"toolKind": "terminal", "language": "shellscript"}
    return meta


def _input_text(input: Json | None) -> str:
    if not input:
        return ""
    command = input.get("command")
    if isinstance(command, str):
        return command[:INPUT_MAX]
    lines = [f"{name}: {value}" for name, value in input.items() if value is not None]
    return "\n".join(lines)[:INPUT_MAX]


def _content(data: CallData, known: CallFacts | None) -> Iterator[Obj]:
    if known is not None and known.terminal is not None:
        yield known.terminal
    if known is not None:
        yield from ({"type": "fileEdit", **edit} for edit in known.edits)
    if known is not None and known.text:
        yield {"type": "text", "text": known.text[:TEXT_MAX]}
    elif known is None or known.tool == ADVISORY:
        yield from (
            {"type": "text", "text": one["text"][:TEXT_MAX]}
            for one in data["content"]
            if one["kind"] == "text"
        )


def error_part(message: str) -> Obj:
    return {"kind": "error", "error": {"errorType": "agent", "message": message}}
