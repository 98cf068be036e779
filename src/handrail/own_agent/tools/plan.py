"""update_plan: the model says what it means to do, and how far it is.

Owns what a plan may look like. It keeps none: each update is the whole plan.
"""

from pydantic import TypeAdapter, ValidationError
from pydantic_ai.tools import ToolDefinition

from handrail.own_agent.tools.agent_tool import Entry, Json, Result, Running, Shown

MOST_ENTRIES = 50
"""More is no plan; people see all of it."""
LONGEST_ENTRY = 500
_ENTRIES: TypeAdapter[list[Entry]] = TypeAdapter(list[Entry])
_SCHEMA: Json = {
    "type": "object",
    "properties": {
        "entries": {
            "type": "array",
            "maxItems": MOST_ENTRIES,
            "description": "The whole plan, in order; it replaces the one before.",
            "items": {
                "type": "object",
                "properties": {
                    "content": {"type": "string", "description": "What is to be done, in a few words."},
                    "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]},
                    "priority": {"type": "string", "enum": ["high", "medium", "low"]},
                },
                "required": ["content", "status"],
            },
        }
    },
    "required": ["entries"],
}
_DEFINITION = ToolDefinition(
    name="update_plan",
    description=(
        "Show the person your plan, and keep it up to date: for work of three steps or more, give it before you begin "
        "and again whenever a step is begun or done. Exactly one entry is in_progress while you work. Not for small "
        "tasks."
    ),
    parameters_json_schema=_SCHEMA,
)


class UpdatePlan:
    """The tool."""

    @property
    def definition(self) -> ToolDefinition:
        return _DEFINITION

    def shown(self, input: Json) -> Shown:
        return Shown(title="Update the plan", kind="think")

    async def run(self, input: Json, call: Running) -> Result:
        try:
            entries = _ENTRIES.validate_python(input.get("entries"))
        except ValidationError as problem:
            return _refused(_first(problem))
        if len(entries) > MOST_ENTRIES:
            return _refused(f"a plan has at most {MOST_ENTRIES} entries")
        if any(not entry.content.strip() or len(entry.content) > LONGEST_ENTRY for entry in entries):
            return _refused(f"an entry's content has between 1 and {LONGEST_ENTRY} characters")
        call.voice.plan(entries)
        done = sum(entry.status == "completed" for entry in entries)
        return Result(text=f"The plan is shown: {done} of {len(entries)} done.")


def _refused(why: str) -> Result:
    return Result(text=f"The plan is not shown: {why}.", failed=True, ended="failed")


def _first(problem: ValidationError) -> str:
    error = problem.errors(include_url=False)[0]
    where = ".".join(str(part) for part in ("entries", *error["loc"]))
    return f"`{where}`: {error['msg']}"
