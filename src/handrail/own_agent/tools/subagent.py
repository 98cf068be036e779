"""`dispatch`: a task of its own for a sub-agent, with a conversation of its own.

Owns what a sub-agent is: the same model and tools, steps of its own, its words shown at the call, its last answer the
call's result. It lives in its call's scope, so whatever cancels that cancels it. Three levels below the prompt at most.

How a sub-agent is heard: its words at the call that it works for, its calls as calls.
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


_AT_ONCE = 200  # characters that are told at once: each telling is all of its last words
_SHOWN = 4_000  # characters of its last words: a call shows what goes on, not a conversation


class Quiet:
    """A voice within a call of another's."""

    def __init__(self, voice: Voice, call: str) -> None:
        self._voice, self._call = voice, call
        self._said = ""
        self._untold = 0

    def text(self, words: str) -> None:
        self._say(words, at_once=_AT_ONCE)

    def thought(self, words: str) -> None:
        """Its thoughts are its own; that it thinks is an activity."""

    def note(self, sentence: str) -> None:
        self._say(f"\n{sentence}\n")

    def call_started(self, id: str, tool: str, shown: Shown, input: Json) -> None:
        self._said = f"{self._said}\n" if self._said else ""
        self._voice.call_started(id, tool, shown, input)

    def call_heard(self, id: str, words: str) -> None:
        self._voice.call_heard(id, words)

    def call_ended(self, id: str, result: Result) -> None:
        self._voice.call_ended(id, result)

    def plan(self, entries: Sequence[Entry]) -> None:
        """The plan that people see is that of the agent they talk to."""

    def usage(self, used: int, size: int | None, cost: Decimal | None) -> None:
        """An answer is whole. Its context is not the conversation's; its price is told with the next answer there."""
        if self._untold:
            self._tell()

    def activity(self, told: Told) -> None:
        self._voice.activity(told)

    async def ask(self, id: str, shown: Shown, input: Json) -> Answer:
        return await self._voice.ask(id, shown, input)

    def _say(self, words: str, at_once: int = 0) -> None:
        self._said = (self._said + words)[-_SHOWN:]
        self._untold += len(words)
        if self._untold >= at_once or self._said == words:
            self._tell()

    def _tell(self) -> None:
        self._untold = 0
        self._voice.call_heard(self._call, self._said)
