"""`dispatch`: run a task in a sub-agent with a separate conversation.

A sub-agent has the same model and tools and its own step limit. Its text appears at its call, and its last
answer is the call's result. It runs in the scope of its call, so cancelling the call cancels it. Nesting is
limited to three levels.
"""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.tools import ToolDefinition

from handrail.lazy_dataclass import dataclass
from handrail.own_agent.activity import ActivityUpdate
from handrail.own_agent.budget import MOST_AGENTS, Stop
from handrail.own_agent.history import History
from handrail.own_agent.host import Answer, Host
from handrail.own_agent.loop import run_loop
from handrail.own_agent.model_request import AgentContext
from handrail.own_agent.models.model import ModelError
from handrail.own_agent.steering import SteeringQueue
from handrail.own_agent.tools.agent_tool import CallDisplay, Json, PlanEntry, Result, RunningCall
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


def with_dispatch(context: AgentContext, level: int = 0) -> AgentContext:
    """The same context with the `dispatch` tool, unless the deepest level is reached."""
    if level >= _DEEPEST:
        return context
    return replace(context, tools={**context.tools, _NAME: Dispatch(context, level + 1)})


@dataclass(frozen=True, slots=True)
class Dispatch:
    """The `dispatch` tool for one agent."""

    context: AgentContext
    level: int
    """Level of the sub-agents it starts."""

    @property
    def definition(self) -> ToolDefinition:
        return _DEFINITION

    def shown(self, input: Json) -> CallDisplay:
        return CallDisplay(title=one_line(str(input["title"])), kind="think")

    async def run(self, input: Json, call: RunningCall) -> Result:
        title, task = input.get("title"), input.get("task")
        if not isinstance(title, str) or not isinstance(task, str) or not task.strip():
            return Result(text="A dispatch has a title and a task, both text.", failed=True, ended="failed")
        if not self.context.budget.hire():
            return Result(text=_TOO_MANY, failed=True, ended="failed")
        child = self._child(task, call)
        end = _ENDS["cancelled"]
        with call.activity.begin("agent", one_line(title)) as agent:
            try:
                end = _ENDS[await run_loop(with_dispatch(child, self.level), agent)]
            except ModelError as error:
                agent.ending, agent.detail = "failed", error.sentence
                end = error.sentence
        return _report(child.history, end)

    def _child(self, task: str, call: RunningCall) -> AgentContext:
        history = self.context.history.beside()
        history.add_prompt(task)
        return replace(
            self.context,
            history=history,
            host=SubagentHost(call.host, call.id),
            budget=self.context.budget.below(),
            instructions=f"{self.context.instructions}\n\n{_INSTRUCTIONS}",
            steering=SteeringQueue(),
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


class SubagentHost:
    """Reports of a sub-agent: its text becomes the progress of its call, its calls are reported as calls."""

    def __init__(self, host: Host, call: str) -> None:
        self._host, self._call = host, call
        self._text = ""
        self._unsent = 0

    def text(self, words: str) -> None:
        self._add(words, threshold=_UPDATE_CHARACTERS)

    def thought(self, words: str) -> None:
        """Not reported; the thinking activity is."""

    def note(self, sentence: str) -> None:
        self._add(f"\n{sentence}\n")

    def call_started(self, id: str, tool: str, shown: CallDisplay, input: Json) -> None:
        self._text = f"{self._text}\n" if self._text else ""
        self._host.call_started(id, tool, shown, input)

    def call_heard(self, id: str, words: str) -> None:
        self._host.call_heard(id, words)

    def call_ended(self, id: str, result: Result) -> None:
        self._host.call_ended(id, result)

    def plan(self, entries: Sequence[PlanEntry]) -> None:
        """Not reported: people see the plan of the main agent."""

    def usage(self, used: int, size: int | None, cost: Decimal | None) -> None:
        """Flush the text at the end of an answer. The usage of a sub-agent is not reported; its cost appears
        with the main agent's next answer."""
        if self._unsent:
            self._send()

    def activity(self, told: ActivityUpdate) -> None:
        self._host.activity(told)

    async def ask(self, id: str, shown: CallDisplay, input: Json) -> Answer:
        return await self._host.ask(id, shown, input)

    def _add(self, words: str, threshold: int = 0) -> None:
        self._text = (self._text + words)[-_TEXT_MAX:]
        self._unsent += len(words)
        if self._unsent >= threshold or self._text == words:
            self._send()

    def _send(self) -> None:
        self._unsent = 0
        self._host.call_heard(self._call, self._text)
