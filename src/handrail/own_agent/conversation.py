"""One conversation as the model has it: what was said, kept as it comes, and taken further by each prompt.

Owns what a prompt is thought about with: the history, the tools as they are now, the instructions, the budget. Loading it
loads the model's library, which takes a while: to be imported off the loop. It does not know sessions, options or
commands.

A conversation from before, shown again to whoever loads it.
"""

import base64
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path

import anyio.to_thread
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponsePart,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)

from handrail.config import OwnAgentSection
from handrail.own_agent.activity import Activity
from handrail.own_agent.budget import Budget, Costs, Stop
from handrail.own_agent.compaction import compact
from handrail.own_agent.content import Block, content_of
from handrail.own_agent.history import History, is_note
from handrail.own_agent.instructions import instructions
from handrail.own_agent.loop import think
from handrail.own_agent.model_request import Mind
from handrail.own_agent.models.model import Model
from handrail.own_agent.session_files import Kept
from handrail.own_agent.tools.agent_tool import Json, Result, Shown
from handrail.own_agent.tools.subagent import dispatching
from handrail.own_agent.tools.toolset import Toolset
from handrail.own_agent.updates import Speech


class Conversation:
    """Made of what is kept of it; raises NoSuchSession where that cannot be read."""

    def __init__(self, kept: Kept, cwd: Path, speech: Speech, settings: OwnAgentSection) -> None:
        self._kept, self._cwd, self._speech, self._settings = kept, cwd, speech, settings
        self._history = History(kept.taken(), self._changed)
        self._troubled = False
        self._costs = Costs(_dollars(kept.record.spent))

    @property
    def begun(self) -> bool:
        return bool(self._history.facts)

    def show(self) -> None:
        """Say all of it again."""
        replay(self._history.messages, self._kept.record.shown, self._speech)

    def hear(self, blocks: Sequence[Block], model: Model) -> None:
        """One more prompt."""
        self._history.add_prompt(content_of(blocks, images=model.takes_images))

    async def answer(self, model: Model, toolset: Toolset, root: Activity) -> Stop:
        """Think about what was said last, to its end. Raises ModelError."""
        try:
            return await think(dispatching(await self._mind(model, toolset)), root)
        finally:
            if self._costs.total is not None:
                self._kept.spent(str(self._costs.total))

    async def compact(self, focus: str, model: Model, toolset: Toolset, root: Activity) -> bool:
        """Sum it up; False where it stays as it was."""
        return await compact(await self._mind(model, toolset), root, focus)

    async def _mind(self, model: Model, toolset: Toolset) -> Mind:
        told = await anyio.to_thread.run_sync(instructions, self._cwd, _today(), abandon_on_cancel=True)
        return Mind(
            model=model,
            tools=toolset.tools,
            history=self._history,
            voice=self._speech,
            budget=self._budget(),
            instructions="\n\n".join(filter(None, (told, toolset.instructions))),
            compact_at=self._settings.compact_at,
            context=self._settings.context,
            costs=self._costs,
        )

    def _budget(self) -> Budget:
        settings = self._settings
        return Budget(steps=settings.max_steps, tokens=settings.max_tokens, seconds=settings.max_seconds)

    def _changed(self, fact: ModelMessage | None) -> None:
        """Keep it; where that failed before, all of it."""
        if fact is None or self._kept.problem is not None:
            self._kept.replace(self._history.facts)
        else:
            self._kept.add(fact)
        self._tell_problem()

    def _tell_problem(self) -> None:
        """Once, until it is over."""
        told, problem = self._troubled, self._kept.problem
        self._troubled = problem is not None
        if problem is not None and not told:
            self._speech.note(f"This conversation cannot be kept for later: {problem.strerror}.")


def _today() -> date:
    """As the person's clock has it."""
    return datetime.now().astimezone().date()


def _dollars(spent: str) -> Decimal | None:
    try:
        return Decimal(spent) if spent else None
    except InvalidOperation:
        return None


def replay(messages: Iterable[ModelMessage], shown: Mapping[str, Shown], speech: Speech) -> None:
    """Say all of it anew; `shown` has how its calls were told of then."""
    for message in messages:
        for part in message.parts:
            if isinstance(message, ModelRequest):
                _heard(part, speech)  # pyright: ignore[reportArgumentType]
            else:
                _said(part, shown, speech)  # pyright: ignore[reportArgumentType]


def _heard(part: ModelRequestPart, speech: Speech) -> None:
    match part:
        case UserPromptPart() if is_note(part):
            speech.note(_words(part.content))
        case UserPromptPart(content=str(text)):
            speech.prompt({"type": "text", "text": text})
        case UserPromptPart(content=content):
            for block in filter(None, map(_block, content)):
                speech.prompt(block)
        case ToolReturnPart():
            failed = part.outcome != "success"
            ended = "done" if not failed else "failed"
            text = part.model_response_str()
            speech.call_ended(part.tool_call_id, Result(text=text, failed=failed, ended=ended))
        case _:
            pass


def _said(part: ModelResponsePart, shown: Mapping[str, Shown], speech: Speech) -> None:
    match part:
        case TextPart():
            speech.text(part.content)
        case ThinkingPart():
            speech.thought(part.content)
        case ToolCallPart():
            how = shown.get(part.tool_call_id) or Shown(title=part.tool_name)
            speech.call_started(part.tool_call_id, part.tool_name, how, part.args_as_dict())
        case _:
            pass


def _block(content: UserContent) -> Json | None:
    match content:
        case str():
            return {"type": "text", "text": content}
        case TextContent():
            return {"type": "text", "text": content.content}
        case BinaryContent():
            data = base64.b64encode(content.data).decode()
            return {"type": "image", "mimeType": content.media_type, "data": data}
        case _:
            return None


def _words(content: Iterable[UserContent]) -> str:
    return " ".join(each.content for each in content if isinstance(each, TextContent))
