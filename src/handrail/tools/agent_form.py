"""The agent_form tool: an agent asks the person to fill in a form (ACP elicitation).

The form and the values are checked against the subset of JSON Schema that agents use for forms: flat objects
of text, numbers, booleans and choices. No rule can answer a form; it always waits for the person.
"""

import re
import time
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from typing import Annotated

import anyio
from pydantic import BaseModel, Field, JsonValue

from handrail.gate.tool import CallReport, Plan, Refusal, Tool
from handrail.lazy_dataclass import dataclass
from handrail.store.values import Caller, FormPreview, Json, Result
from handrail.terminal.safe_regex import REGEX_THREADS, BadPattern, compile_pattern
from handrail.tools.results import Input, printable_line

ASKS = "The agent asks you something that only you can answer."


class AgentFormInput(Input):
    message: Annotated[str, Field(description="What the agent asks for.")]
    form: Annotated[Json, Field(description="JSON Schema of an object with plain fields.")]
    values: Annotated[Json | None, Field(description="What the person filled in; None until they have.")] = (
        None
    )


class AgentFormOutput(BaseModel, defer_build=True):
    values: Json | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FormPlan(Plan):
    """A form, with values once the person has filled it in."""

    input: AgentFormInput


class AgentForm(Tool[AgentFormInput, FormPlan]):
    """Ask the person for values."""

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
        return printable_line(input.message) or "Fill in a form"

    async def plan(self, input: AgentFormInput, caller: Caller) -> FormPlan:
        if input.values is not None and (why := await find_problem(input.form, input.values)):
            raise Refusal(why)
        preview = FormPreview(message=input.message, schema=input.form)
        return FormPlan(claims=(), preview=preview, bound={}, asks=ASKS, input=input)

    async def run(self, plan: FormPlan, call: CallReport) -> Result:
        """Return the values to the agent; a form allowed without edits returns its defaults."""
        params = plan.input
        values = form_defaults(params.form) if params.values is None else params.values
        if params.values is None and (why := await find_problem(params.form, values)):
            raise Refusal(why)
        return Result(text=f"Answered: {', '.join(values) or 'nothing'}.", data={"values": values})


SECONDS = 3.0
"""Bounds the matching of patterns the agent wrote: there can be many, and a value can be large."""
PROBLEMS_MAX = 5
_LARGE, _DIGITS = 10**6, 50


def form_fields(form: Json) -> dict[str, Json]:
    """The fields of the form, by name."""
    properties = form.get("properties")
    named = properties if isinstance(properties, dict) else {}
    return {name: field if isinstance(field, dict) else {} for name, field in named.items()}


def form_defaults(form: Json) -> Json:
    """The values that submitting the form unchanged would send."""
    return {
        name: field["default"]
        for name, field in form_fields(form).items()
        if field.get("default") is not None
    }


async def find_problem(form: Json, values: Json) -> str:
    """Check values against the form: one sentence on the first problems, empty when valid."""
    problems = [*_find_missing(form, values), *_find_wrong(form, values)] or await _find_mismatches(
        form, values
    )
    more = [f"and {len(problems) - PROBLEMS_MAX} more"] if len(problems) > PROBLEMS_MAX else []
    return (
        f"This is not what is asked for: {'; '.join([*problems[:PROBLEMS_MAX], *more])}." if problems else ""
    )


def _find_missing(form: Json, values: Json) -> Iterator[str]:
    required = form.get("required")
    for name in required if isinstance(required, list) else ():
        if isinstance(name, str) and values.get(name) is None:
            yield f"{_name(form, name)} is required"


def _find_wrong(form: Json, values: Json) -> Iterator[str]:
    known = form_fields(form)
    for name, value in values.items():
        if name not in known:
            yield f"`{name}` is not asked for"
        elif value is not None and (why := _check_value(known[name], value)):
            yield f"{_name(form, name)} {why}"


def _name(form: Json, name: str) -> str:
    title = form_fields(form).get(name, {}).get("title")
    return title if isinstance(title, str) and title.strip() else f"`{name}`"


def _check_value(field: Json, value: JsonValue) -> str:
    match field.get("type"):
        case "string":
            return _check_text(field, value)
        case "boolean":
            return "" if isinstance(value, bool) else "must be true or false"
        case "integer":
            return _check_number(field, value, whole=True)
        case "number":
            return _check_number(field, value, whole=False)
        case "array":
            return _check_list(field, value)
        case _:
            return ""


def _check_text(field: Json, value: JsonValue) -> str:
    if not isinstance(value, str):
        return "must be text"
    allowed = _choices(field, "oneOf")
    if allowed is not None:
        return "" if value in allowed else f"must be one of: {', '.join(allowed)}"
    return _check_range(field, len(value), "minLength", "maxLength", "characters") or _check_format(
        field, value
    )


def _check_number(field: Json, value: JsonValue, *, whole: bool) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "must be a number"
    if whole and isinstance(value, float) and not value.is_integer():
        return "must be a whole number"
    return _check_range(field, value, "minimum", "maximum")


def _check_list(field: Json, value: JsonValue) -> str:
    if not isinstance(value, list):
        return "must be a list"
    items = field.get("items")
    allowed = _choices(items, "anyOf") if isinstance(items, dict) else None
    other = [each for each in value if allowed is not None and each not in allowed]
    if other and allowed is not None:
        return f"may only hold: {', '.join(allowed)}"
    return _check_range(field, len(value), "minItems", "maxItems", "entries")


def _choices(field: Json, titled: str) -> list[str] | None:
    """The closed list of choices; None when any text is valid."""
    plain, named = field.get("enum"), field.get(titled)
    if isinstance(plain, list):
        return [each for each in plain if isinstance(each, str)]
    if not isinstance(named, list):
        return None
    values = [each.get("const") for each in named if isinstance(each, dict)]
    return [each for each in values if isinstance(each, str)]


def _check_range(field: Json, size: float, least: str, most: str, unit: str = "") -> str:
    low, high = field.get(least), field.get(most)
    of = f" {unit}" if unit else ""
    if isinstance(low, int | float) and size < low:
        return f"must {'have' if unit else 'be'} at least {_format_limit(low)}{of}"
    if isinstance(high, int | float) and size > high:
        return f"must {'have' if unit else 'be'} at most {_format_limit(high)}{of}"
    return ""


def _format_limit(value: float) -> str:
    """Format a limit for a message; very large integers are cut, since `:g` overflows on them."""
    return f"{value:g}" if isinstance(value, float) or abs(value) < _LARGE else str(value)[:_DIGITS]


def _check_format(field: Json, value: str) -> str:
    match field.get("format"):
        case "email":
            return "" if re.fullmatch(r"[^@\s]+@[^@\s]+", value) else "must be an e-mail address"
        case "uri":
            return "" if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:\S", value) else "must be a URI"
        case "date":
            return "" if _is_date(value) else "must be a date, such as 2026-11-15"
        case "date-time":
            return "" if _is_moment(value) else "must be a date and time, such as 2026-11-15T12:00:00Z"
        case _:
            return ""


def _is_date(value: str) -> bool:
    try:
        date.fromisoformat(value)
    except ValueError:
        return False
    return True


def _is_moment(value: str) -> bool:
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return "T" in value.upper()


async def _find_mismatches(form: Json, values: Json) -> Sequence[str]:
    """Messages for fields that do not match their pattern, matched in a thread: a value can be large."""
    patterns = [
        (name, str(field["pattern"]), value)
        for name, field in form_fields(form).items()
        if isinstance(field.get("pattern"), str) and isinstance(value := values.get(name), str)
    ]
    if not patterns:
        return ()
    failed: Sequence[tuple[str, str]] | None = None
    with anyio.move_on_after(SECONDS):
        failed = await REGEX_THREADS.run(match_fields, patterns, time.monotonic() + SECONDS, abandon=True)
    if failed is None:
        return ("to compare it with the agent's pattern takes too long",)
    return [f"{_name(form, name)} must match `{pattern}`" for name, pattern in failed]


def match_fields(patterns: Sequence[tuple[str, str, str]], until: float) -> Sequence[tuple[str, str]] | None:
    """The fields that do not match; None if the time was over before all were compared."""
    failed: list[tuple[str, str]] = []
    for name, pattern, value in patterns:
        if time.monotonic() >= until:
            return None
        if not _is_match(pattern, value):
            failed.append((name, pattern))
    return failed


def _is_match(pattern: str, value: str) -> bool:
    """Whether the value matches; a pattern that does not compile accepts everything."""
    try:
        return compile_pattern(pattern).search(value.encode(errors="replace")) is not None
    except BadPattern:
        return True
