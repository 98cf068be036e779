"""`dispatch`: run a task in a sub-agent with a separate conversation.

A sub-agent has the same model and tools and its own step limit. Its text appears at its call, and its last
answer is the call's result. It runs in the scope of its call, so cancelling the call cancels it. Nesting is
limited to three levels.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.tools import ToolDefinition

from handrail.own_agent.activity import Told
from handrail.own_agent.budget import MOST_AGENTS, Stop
from handrail.own_agent.history import History
from handrail.own_agent.host import Answer, Voice
from handrail.own_agent.loop import think
from handrail.own_agent.model_request import Mind
from handrail.own_agent.models.model import ModelError
from handrail.own_agent.tools.agent_tool import Entry, Json, Result, Running, Shown
from handrail.own_agent.tools.mcp_tool import one_line

_DEEPEST = 3  # levels below the prompt; quality drops with each level
_NAME = "dispatch"
_DEFINITION = ToolDefinition(
    name=_NAME,
    description=(
        "Give a task to a sub-agent, which has the same tools but knows nothing of this conversation. It works on its "
        "own and answers with one report. Good for work that can be told in a paragraph and would fill this "
        "conversation: searching widely, reading much, a change that stands by itself. Several at once work side by "
        "side; they share the files."
    ),
    parameters_json_schema={
        "type": "object",
        "properties": {
            "title": {"type": "string", "description": "The task in a few words, for the person."},
            "task": {
                "type": "string",
                "description": "All it must know: what to do, where, and what to report.",
            },
        },
        "required": ["title", "task"],
        "additionalProperties": False,
    },
)
_INSTRUCTIONS = (
    "You are a sub-agent: another agent gave you this task, and nobody answers questions. Your last answer is your "
    "report, and all that the other agent will know of your work."
)
_TOO_MANY = (
    f"No more sub-agents: this prompt has had {MOST_AGENTS} of them. Do the rest yourself, or ask the person."
)
_ENDS: dict[Stop, str] = {
    "end_turn": "",
    "max_tokens": "The sub-agent was stopped, because its tokens were used up or its answer became too long.",
    "max_turn_requests": "The sub-agent was stopped: it may not take more steps, or more time.",
    "refusal": "The model refused to go on with this task.",
    "cancelled": "The sub-agent was cancelled by the person.",
}


def dispatching(mind: Mind, level: int = 0) -> Mind:
    """The same context with the `dispatch` tool, unless the deepest level is reached."""
    if level >= _DEEPEST:
        return mind
    return replace(mind, tools={**mind.tools, _NAME: Dispatch(mind, level + 1)})


@dataclass(frozen=True, slots=True)
class Dispatch:
    """The `dispatch` tool for one agent."""

    mind: Mind
    level: int
    """Level of the sub-agents it starts."""

    @property
    def definition(self) -> ToolDefinition:
        return _DEFINITION

    def shown(self, input: Json) -> Shown:
        return Shown(title=one_line(str(input["title"])), kind="think")

    async def run(self, input: Json, call: Running) -> Result:
        title, task = input.get("title"), input.get("task")
        if not isinstance(title, str) or not isinstance(task, str) or not task.strip():
            return Result(text="A dispatch has a title and a task, both text.", failed=True, ended="failed")
        if not self.mind.budget.hire():
            return Result(text=_TOO_MANY, failed=True, ended="failed")
        child = self._child(task, call)
        end = _ENDS["cancelled"]
        with call.activity.begin("agent", one_line(title)) as agent:
            try:
                end = _ENDS[await think(dispatching(child, self.level), agent)]
            except ModelError as error:
                agent.ending, agent.detail = "failed", error.sentence
                end = error.sentence
        return _report(child.history, end)

    def _child(self, task: str, call: Running) -> Mind:
        history = self.mind.history.beside()
        history.add_prompt(task)
        return replace(
            self.mind,
            history=history,
            voice=Quiet(call.voice, call.id),
            budget=self.mind.budget.below(),
            instructions=f"{self.mind.instructions}\n\n{_INSTRUCTIONS}",
        )


def _report(history: History, end: str) -> Result:
    """The last answer; if the sub-agent ended early, all its answers so far."""
    answers = [text for each in history.facts if isinstance(each, ModelResponse) and (text := _text(each))]
    if not end:
        return Result(text=answers[-1] if answers else "The sub-agent ended without a word.")
    words = "\n\n".join(answers)
    return Result(
        text=f"{end} What it had said:\n\n{words}" if words else f"{end} It had said nothing yet.",
        failed=True,
        ended="cancelled" if end == _ENDS["cancelled"] else "failed",
    )


def _text(response: ModelResponse) -> str:
    return "".join(part.content for part in response.parts if isinstance(part, TextPart)).strip()


_UPDATE_CHARACTERS = (
    200  # characters that collect before an update, because each update repeats the whole text
)
_TEXT_MAX = 4_000  # characters of its latest text; a call shows progress, not a conversation


class Quiet:
    """Reports of a sub-agent: its text becomes the progress of its call, its calls are reported as calls."""

    def __init__(self, voice: Voice, call: str) -> None:
        self._voice, self._call = voice, call
        self._text = ""
        self._unsent = 0

    def text(self, words: str) -> None:
        self._add(words, threshold=_UPDATE_CHARACTERS)

    def thought(self, words: str) -> None:
        """Not reported; the thinking activity is."""

    def note(self, sentence: str) -> None:
        self._add(f"\n{sentence}\n")

    def call_started(self, id: str, tool: str, shown: Shown, input: Json) -> None:
        self._text = f"{self._text}\n" if self._text else ""
        self._voice.call_started(id, tool, shown, input)

    def call_heard(self, id: str, words: str) -> None:
        self._voice.call_heard(id, words)

    def call_ended(self, id: str, result: Result) -> None:
        self._voice.call_ended(id, result)

    def plan(self, entries: Sequence[Entry]) -> None:
        """Not reported: people see the plan of the main agent."""

    def usage(self, used: int, size: int | None, cost: Decimal | None) -> None:
        """Flush the text at the end of an answer. The usage of a sub-agent is not reported; its cost appears
        with the main agent's next answer."""
        if self._unsent:
            self._send()

    def activity(self, told: Told) -> None:
        self._voice.activity(told)

    async def ask(self, id: str, shown: Shown, input: Json) -> Answer:
        return await self._voice.ask(id, shown, input)

    def _add(self, words: str, threshold: int = 0) -> None:
        self._text = (self._text + words)[-_TEXT_MAX:]
        self._unsent += len(words)
        if self._unsent >= threshold or self._text == words:
            self._send()

    def _send(self) -> None:
        self._unsent = 0
        self._voice.call_heard(self._call, self._text)
