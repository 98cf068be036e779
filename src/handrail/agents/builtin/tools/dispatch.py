"""`dispatch`: a task of its own for a sub-agent, with a conversation of its own.

Owns what a sub-agent is: the same model and tools, steps of its own, its words shown at the call, its last answer the
call's result. It lives in its call's scope, so whatever cancels that cancels it. Three levels below the prompt at most.
"""

from dataclasses import dataclass, replace

from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.tools import ToolDefinition

from handrail.agents.builtin.model.model import ModelError
from handrail.agents.builtin.thinking.budget import MOST_AGENTS, Stop
from handrail.agents.builtin.thinking.history import History
from handrail.agents.builtin.thinking.loop import think
from handrail.agents.builtin.thinking.mind import Mind
from handrail.agents.builtin.tools.quiet import Quiet
from handrail.agents.builtin.tools.titles import one_line
from handrail.agents.builtin.tools.tool import Json, Result, Running, Shown

_DEEPEST = 3  # levels below the prompt: what a model makes of its own making gets worse with each
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
    """A mind that can also dispatch, unless it is the deepest already."""
    if level >= _DEEPEST:
        return mind
    return replace(mind, tools={**mind.tools, _NAME: Dispatch(mind, level + 1)})


@dataclass(frozen=True, slots=True)
class Dispatch:
    """The tool, in the hands of one mind."""

    mind: Mind
    level: int
    """Of the sub-agents."""

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
    """The last answer; where the end was another, all that was said before it."""
    said = [text for each in history.facts if isinstance(each, ModelResponse) and (text := _text(each))]
    if not end:
        return Result(text=said[-1] if said else "The sub-agent ended without a word.")
    words = "\n\n".join(said)
    return Result(
        text=f"{end} What it had said:\n\n{words}" if words else f"{end} It had said nothing yet.",
        failed=True,
        ended="cancelled" if end == _ENDS["cancelled"] else "failed",
    )


def _text(response: ModelResponse) -> str:
    return "".join(part.content for part in response.parts if isinstance(part, TextPart)).strip()
