"""Forms: the questions of an agent's form for the editor's question card, and the values from its answers. Pure.

The schema is the flat subset of JSON Schema that agents use for forms.
"""

from collections.abc import Mapping
from typing import Any, cast

from handrail.server.ahp.ahp_wire import Obj, without_none
from handrail.store.values import FormPreview, Json


def form_request(id: str, form: FormPreview) -> Obj:
    """The request that shows a form."""
    required = form.schema.get("required")
    needed = required if isinstance(required, list) else []
    questions = [_question(name, field, name in needed) for name, field in _fields(form.schema).items()]
    return {"id": id, "message": form.message, "questions": questions}


def values_of_answers(schema: Json, answers: Mapping[str, Any]) -> Json:
    """The values that were given. Questions that were skipped are left out."""
    values: Json = {}
    for name, field in _fields(schema).items():
        answer: Obj = answers.get(name) or {}
        value: Obj = answer.get("value") or {}
        if answer.get("state") == "submitted" and "value" in value:
            values[name] = _typed(field, value)
    return values


def answers_of_values(values: Json) -> Obj:
    """The answers for a form that was filled in elsewhere."""
    return {name: {"state": "submitted", "value": _answer_value(value)} for name, value in values.items()}


def _fields(schema: Json) -> dict[str, Obj]:
    properties = schema.get("properties")
    named = properties if isinstance(properties, dict) else {}
    return {name: cast("Obj", field) if isinstance(field, dict) else {} for name, field in named.items()}


def _question(name: str, field: Obj, is_required: bool) -> Obj:
    title = field.get("title") or name
    common = without_none(
        id=name, title=title, message=field.get("description") or title, required=is_required or None
    )
    default = field.get("default")
    match field.get("type"):
        case "boolean":
            return without_none(kind="boolean", **common, defaultValue=default)
        case "integer" | "number":
            limits = without_none(min=field.get("minimum"), max=field.get("maximum"), defaultValue=default)
            return {"kind": field["type"], **common, **limits}
        case "array":
            options = _options(cast("Obj", field.get("items") or {}), default)
            return {"kind": "multi-select", **common, "options": options}
        case _ if options := _options(field, [default]):
            return {"kind": "single-select", **common, "options": options}
        case _:
            limits = without_none(
                min=field.get("minLength"), max=field.get("maxLength"), defaultValue=default
            )
            return {"kind": "text", **common, **limits}


def _options(field: Obj, chosen: object) -> list[Obj]:
    titled: list[Obj] = field.get("oneOf") or field.get("anyOf") or []
    plain: list[Any] = field.get("enum") or []
    pairs = [(one.get("const"), one.get("title")) for one in titled] or [(one, one) for one in plain]
    picked = cast("list[object]", chosen) if isinstance(chosen, list) else []
    return [
        without_none(id=str(value), label=str(label or value), recommended=value in picked or None)
        for value, label in pairs
    ]


def _typed(field: Obj, value: Obj) -> Any:
    """The value in the type of its field: a select's answer is always text."""
    given = value["value"]
    freeform: list[str] = value.get("freeformValues") or []
    if field.get("type") == "array":
        chosen = cast("list[Any]", given) if isinstance(given, list) else [given]
        return [*chosen, *freeform]
    return freeform[0] if freeform and given in (None, "") else given


def _answer_value(value: object) -> Obj:
    match value:
        case bool():
            return {"kind": "boolean", "value": value}
        case int() | float():
            return {"kind": "number", "value": value}
        case list():
            return {"kind": "selected-many", "value": cast("list[object]", value)}
        case _:
            return {"kind": "text", "value": str(value)}
