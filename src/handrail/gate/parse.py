"""Input, as a client sent it, into what a tool takes; and what is wrong with it, as a sentence."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, JsonValue, ValidationError

from handrail.gate.tool import Tool, Toolbox
from handrail.store.value import Json

MOST_PROBLEMS = 5
"""Problems told at once: enough to mend the input, too few to flood a model's context."""
LONGEST_NAME = 100
"""Characters of a name that is told back to whoever made it up."""
DEEPEST = 64
"""Levels of lists and objects in an input: far below the 200 that a reader of the journal can take."""
LARGEST = 16 * 1024 * 1024
"""Characters and values in an input: one call must not fill the memory that waits for the disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """A tool with an input it takes."""

    tool: Tool[Any, Any]
    input: BaseModel


def parse(toolbox: Toolbox, name: str, input: Json) -> Parsed | str:
    """The tool and its input, or a sentence that says what is wrong."""
    tool = toolbox.get(name)
    if tool is None:
        return unknown(toolbox, name)
    try:
        return Parsed(tool=tool, input=tool.input.model_validate(input))
    except ValidationError as error:
        return _sentence(name, error)


def unknown(toolbox: Toolbox, name: str) -> str:
    """That there is no such tool, and which there are."""
    known = sorted(key for key, tool in toolbox.items() if tool.listed)
    return f"There is no tool named {cut(name)!r}. Use one of: {', '.join(known)}."


def too_much(input: Json) -> str | None:
    """Why this input cannot even be kept, as a sentence; None when it can."""
    size = 0
    level: list[JsonValue] = [input]
    for _ in range(DEEPEST + 1):
        size += sum(_weight(value) for value in level)
        if size > LARGEST:
            return f"The input is larger than {LARGEST:,} characters. Nothing was done; send less at a time."
        level = [child for value in level for child in _children(value)]
        if not level:
            return None
    return f"The input is nested deeper than {DEEPEST} levels. Nothing was done; send it again, flatter."


def _weight(value: JsonValue) -> int:
    """Its own characters, and one for each value directly in it: a huge list is seen before it is walked."""
    if isinstance(value, dict):
        return len(value) + sum(len(key) for key in value)
    return len(value) if isinstance(value, str | list) else 0


def _children(value: JsonValue) -> Iterable[JsonValue]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def cut(name: str) -> str:
    """A name short enough to be kept and told back; those of our tools are."""
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"


def _sentence(name: str, error: ValidationError) -> str:
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    told = "; ".join(_problem(item["type"], item["loc"], item["msg"]) for item in problems[:MOST_PROBLEMS])
    more = f"; and {len(problems) - MOST_PROBLEMS} more" if len(problems) > MOST_PROBLEMS else ""
    return f"{name} cannot take this input: {told}{more}. Nothing was done; send it again, corrected."


def _problem(kind: str, where: tuple[int | str, ...], message: str) -> str:
    name = cut(".".join(str(part) for part in where) or "input")
    match kind:
        case "missing":
            return f"`{name}` is required"
        case "extra_forbidden":
            return f"`{name}` is not an input of this tool"
        case _:
            return f"`{name}`: {message[:1].lower()}{message[1:]}"
