"""Input, as a client sent it, into what a tool takes; and what is wrong with it, as a sentence."""

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from handrail.gate.tool import Tool, Toolbox
from handrail.store.event import Json

MOST_PROBLEMS = 5
"""Problems told at once: enough to mend the input, too few to flood a model's context."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """A tool with an input it takes."""

    tool: Tool[Any, Any]
    input: BaseModel


def parse(toolbox: Toolbox, name: str, input: Json) -> Parsed | str:
    """The tool and its input, or a sentence that says what is wrong."""
    tool = toolbox.get(name)
    if tool is None:
        return f"There is no tool named {name!r}. Use one of: {', '.join(sorted(toolbox))}."
    try:
        return Parsed(tool=tool, input=tool.input.model_validate(input))
    except ValidationError as error:
        return _sentence(name, error)


def _sentence(name: str, error: ValidationError) -> str:
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    told = "; ".join(_problem(item["type"], item["loc"], item["msg"]) for item in problems[:MOST_PROBLEMS])
    more = f"; and {len(problems) - MOST_PROBLEMS} more" if len(problems) > MOST_PROBLEMS else ""
    return f"{name} cannot take this input: {told}{more}. Nothing was done; send it again, corrected."


def _problem(kind: str, where: tuple[int | str, ...], message: str) -> str:
    name = ".".join(str(part) for part in where) or "input"
    match kind:
        case "missing":
            return f"`{name}` is required"
        case "extra_forbidden":
            return f"`{name}` is not an input of this tool"
        case _:
            return f"`{name}`: {message[:1].lower()}{message[1:]}"
