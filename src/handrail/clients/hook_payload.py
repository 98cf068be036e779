"""Fields of a hook payload, read with tolerance: clients add, rename and leave out fields from version to version.

A plain reader returns an empty value for a field that is missing or has another type. A `required_` or `stated_` reader
raises ValueError with a sentence; it is for the fields that a decision depends on. Where such a field has several names,
all that are there must say the same: a model could fill in one of them for Handrail and another one for its client.
"""

import json
from typing import cast

from handrail.clients.hook_event import Json, JsonValue


def required_object(value: object, what: str) -> Json:
    """`value` as a JSON object. Raises ValueError if it is something else."""
    if not isinstance(value, dict):
        raise ValueError(f"{what} must be a JSON object, but is {_type_name(value)}.")  # noqa: TRY004
    return cast("Json", value)


def required_text(payload: Json, *names: str) -> str:
    """The first of the fields that is there. Raises ValueError if none is, if it is no text, or if they differ."""
    _check_agreement(payload, names)
    for name in names:
        if (value := payload.get(name)) is not None:
            return _required_str(value, name)
    raise ValueError(f"The field {names[0]} is missing.")


def required_texts(payload: Json, *names: str) -> tuple[str, ...]:
    """A field that is one text or a list of texts. Raises ValueError if it is missing, empty or something else, or if
    they differ."""
    _check_agreement(payload, names)
    for name in names:
        if value := payload.get(name):
            items = value if isinstance(value, list) else [value]
            return tuple(_required_str(item, name) for item in items)
    raise ValueError(f"The field {names[0]} is missing.")


def stated_text(payload: Json, *names: str) -> str:
    """The same as `text`. Raises ValueError if the fields differ."""
    _check_agreement(payload, names)
    return text(payload, *names)


def stated_texts(payload: Json, *names: str) -> tuple[str, ...]:
    """The texts of all these fields, each one text or a list. Raises ValueError if something else is in them."""
    return tuple(_required_str(item, " or ".join(names)) for item in stated_items(payload, *names))


def stated_items(payload: Json, *names: str) -> tuple[JsonValue, ...]:
    """Everything in all these fields, each one item or a list."""
    values = [value for name in names if (value := payload.get(name))]
    return tuple(item for value in values for item in (value if isinstance(value, list) else [value]))


def stated_children(payload: Json, *names: str) -> tuple[Json, ...]:
    """The same as `children`. Raises ValueError if the fields differ."""
    _check_agreement(payload, names)
    return children(payload, *names)


def _check_agreement(payload: Json, names: tuple[str, ...]) -> None:
    found = {name: value for name in names if (value := payload.get(name)) is not None}
    first = next(iter(found.values()), None)
    if any(value != first for value in found.values()):
        raise ValueError(
            f"The fields {' and '.join(found)} differ, and only the client knows which one it obeys."
        )


def text(payload: Json, *names: str) -> str:
    """The first of the fields that is a text with characters in it."""
    values = (payload.get(name) for name in names)
    return next((value for value in values if isinstance(value, str) and value), "")


def texts(payload: Json, *names: str) -> tuple[str, ...]:
    """The texts of a field that is one text or a list; other items are left out."""
    value = next((value for name in names if (value := payload.get(name))), None)
    items = value if isinstance(value, list) else [value]
    return tuple(item for item in items if isinstance(item, str) and item)


def child(payload: Json, *names: str) -> Json:
    """The first of the fields that is an object, else an empty object."""
    empty: Json = {}
    return next((value for name in names if isinstance(value := payload.get(name), dict)), empty)


def children(payload: Json, *names: str) -> tuple[Json, ...]:
    """The objects of a field that is a list."""
    lists = [value for name in names if isinstance(value := payload.get(name), list)]
    return tuple(item for item in lists[0] if isinstance(item, dict)) if lists else ()


def flag(payload: Json, *names: str) -> bool:
    """Whether one of the fields is true."""
    return any(payload.get(name) is True for name in names)


def whole_number(payload: Json, *names: str) -> int | None:
    """The first of the fields that is an integer."""
    values = (payload.get(name) for name in names)
    return next((value for value in values if isinstance(value, int) and not isinstance(value, bool)), None)


def tool_input(payload: Json, *names: str) -> Json:
    """A tool's input. Some clients send it as JSON text. Raises ValueError if it is no object."""
    value = next((value for name in names if (value := payload.get(name)) is not None), None)
    if isinstance(value, str):
        value = _parse_input(value, names[0])
    return {} if value is None else required_object(value, f"The field {names[0]}")


def result_text(value: JsonValue) -> str:
    """The text of a tool's result, in the shapes that clients and MCP servers use. Empty if it is nested too deep."""
    try:
        return _value_text(value)
    except RecursionError:
        return ""


def _value_text(value: JsonValue) -> str:
    match value:
        case None:
            return ""
        case str():
            return value
        case list():
            return "\n".join(filter(None, map(_value_text, value)))
        case dict():
            return _object_text(value)
        case _:
            return json.dumps(value)


def _object_text(value: Json) -> str:
    streams = [text(value, "stdout"), text(value, "stderr")]
    if any(streams) or {"stdout", "stderr"} & value.keys():
        return "\n".join(filter(None, streams))
    for name in ("text", "llmContent", "textResultForLlm", "output", "content", "error", "message", "result"):
        if value.get(name):
            return _value_text(value[name])
    return json.dumps(value, ensure_ascii=False) if value else ""


def _parse_input(value: str, name: str) -> JsonValue:
    try:
        return json.loads(value) if value.strip() else {}
    except (ValueError, RecursionError):
        raise ValueError(f"The field {name} is text that is not JSON.") from None


def _required_str(value: JsonValue, name: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"The field {name} must be text, but is {_type_name(value)}.")  # noqa: TRY004
    return value


def _type_name(value: object) -> str:
    names = {"dict": "an object", "list": "a list", "str": "text", "bool": "a boolean", "NoneType": "null"}
    return names.get(type(value).__name__, "a number")
