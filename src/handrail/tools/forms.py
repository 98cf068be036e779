"""agent_form: an agent asks a person to fill in a form.

Owns the question and the check of what was filled in. No rule answers it: only a person knows. It does not know what
the agent makes of the answer.
"""

from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, Field

from handrail.gate.tool import CallReport, Plan, Refusal, Tool
from handrail.store.value import Caller, FormPreview, Json, Result
from handrail.tools.answer import Input, brief
from handrail.tools.form_values import defaults, problem

ASKS = "The agent asks you something that only you can answer."


class AgentFormInput(Input):
    message: Annotated[str, Field(description="What the agent asks for.")]
    form: Annotated[Json, Field(description="JSON Schema of an object with plain fields.")]
    values: Annotated[Json | None, Field(description="What the person filled in; None until they have.")] = (
        None
    )


class AgentFormOutput(BaseModel):
    values: Json | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FormPlan(Plan):
    """The form, as far as it is filled in."""

    input: AgentFormInput


class AgentForm(Tool[AgentFormInput, FormPlan]):
    """Asks a person for values."""

    name = "agent_form"
    title = "Agent's question"
    description = (
        "The agent asks you to fill in a form, and goes on with what you give it. Give nothing that it should not know: "
        "it is not kept secret."
    )
    input = AgentFormInput
    output = AgentFormOutput
    listed = False
    assurance = "advisory"

    def display(self, input: AgentFormInput) -> str:
        return brief(input.message) or "Fill in a form"

    async def plan(self, input: AgentFormInput, caller: Caller) -> FormPlan:
        if input.values is not None and (why := await problem(input.form, input.values)):
            raise Refusal(why)
        preview = FormPreview(message=input.message, schema=input.form)
        return FormPlan(claims=(), preview=preview, bound={}, asks=ASKS, input=input)

    async def run(self, plan: FormPlan, call: CallReport) -> Result:
        """What the agent is given; of a form that was allowed as it came, its defaults."""
        asked = plan.input
        values = defaults(asked.form) if asked.values is None else asked.values
        if asked.values is None and (why := await problem(asked.form, values)):
            raise Refusal(why)
        return Result(text=f"Answered: {', '.join(values) or 'nothing'}.", data={"values": values})
