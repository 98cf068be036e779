"""Session state: an agent's modes, options, commands, usage and plan, parsed from its updates.

Defines the shapes that the page and the CLI read as a thread's state. It does not know threads.
"""

from collections.abc import Callable, Mapping
from typing import NotRequired

from typing_extensions import TypedDict

from handrail.agents.lenient_json import name, number, record, records, text
from handrail.store.threads.parts import PlanData, PlanEntry
from handrail.store.values import Json

STATE_NAMES = ("modes", "options", "commands", "usage", "plan")


class Speaker(TypedDict):
    """State `agent`: the agent whose state the thread shows."""

    name: str
    steers: NotRequired[bool]
    """Whether it takes messages while it works; missing until it has been started."""


class Mode(TypedDict):
    id: str
    name: str
    description: str


class Modes(TypedDict):
    """State `modes`."""

    current: str
    modes: list[Mode]


class Choice(TypedDict):
    value: str
    name: str
    description: str
    group: str
    """The name of its group; empty if it has none."""


class Option(TypedDict):
    id: str
    name: str
    description: str
    category: str
    """`mode`, `model`, `thought_level`, or another word; it affects display only."""
    type: str
    """`select` or `boolean`."""
    value: str | bool
    choices: list[Choice]


class Options(TypedDict):
    """State `options`."""

    options: list[Option]


class Command(TypedDict):
    name: str
    """Without the leading slash."""
    description: str
    hint: str
    """The arguments to type after it; empty if there are none."""


class Commands(TypedDict):
    """State `commands`."""

    commands: list[Command]


class Cost(TypedDict):
    amount: float
    currency: str


class Usage(TypedDict):
    """State `usage`."""

    used: int
    """Tokens in the agent's context now."""
    size: int
    """Tokens that fit."""
    cost: Cost | None
    """The cost of the conversation so far."""


def state_from_update(update: Json, before: Mapping[str, Json]) -> tuple[str, Json] | None:
    """The name and new data of the state that an update changes; None if it changes none."""
    if update.get("sessionUpdate") == "current_mode_update":
        return "modes", {**before.get("modes", {"modes": []}), "current": name(update.get("currentModeId"))}
    parser = _KINDS.get(text(update.get("sessionUpdate")))
    return None if parser is None else (parser[0], parser[1](update))


def plan_from_update(update: Json) -> PlanData:
    """The plan in an update of either form."""
    body = record(update.get("plan")) or update
    return {"entries": [_entry(each) for each in records(body.get("entries"))]}


def _entry(entry: Json) -> PlanEntry:
    return {
        "content": text(entry.get("content")),
        "priority": text(entry.get("priority")) or "medium",
        "status": text(entry.get("status")) or "pending",
    }


def _modes(update: Json) -> Modes:
    body = record(update.get("modes")) or update
    modes: list[Mode] = [
        {
            "id": name(each.get("id")),
            "name": text(each.get("name")),
            "description": text(each.get("description")),
        }
        for each in records(body.get("availableModes"))
    ]
    return {"current": name(body.get("currentModeId")), "modes": modes}


def _options(update: Json) -> Options:
    options = update.get("configOptions", update.get("options"))
    return {"options": [_option(each) for each in records(options) if name(each.get("id"))]}


def _option(option: Json) -> Option:
    value = option.get("currentValue")
    return {
        "id": name(option.get("id")),
        "name": text(option.get("name")) or name(option.get("id")),
        "description": text(option.get("description")),
        "category": text(option.get("category")),
        "type": text(option.get("type")) or "select",
        "value": value if isinstance(value, bool) else text(value),
        "choices": _choices(records(option.get("options"))),
    }


def _choices(entries: list[Json], group: str = "") -> list[Choice]:
    """Flatten choices, which come as a list or as a list of groups."""
    choices: list[Choice] = []
    for each in entries:
        if "options" in each:
            choices += _choices(records(each["options"]), text(each.get("name")) or name(each.get("group")))
        else:
            value = name(each.get("value"))
            label, description = text(each.get("name")) or value, text(each.get("description"))
            choices.append({"value": value, "name": label, "description": description, "group": group})
    return choices


def _commands(update: Json) -> Commands:
    commands: list[Command] = [
        {
            "name": text(each.get("name")).removeprefix("/"),
            "description": text(each.get("description")),
            "hint": text(record(each.get("input")).get("hint")),
        }
        for each in records(update.get("availableCommands"))
    ]
    return {"commands": commands}


def _usage(update: Json) -> Usage:
    used, size = number(update.get("used")) or 0, number(update.get("size")) or 0
    return {"used": used, "size": size, "cost": _cost(record(update.get("cost")))}


def _cost(cost: Json) -> Cost | None:
    amount = cost.get("amount")
    if isinstance(amount, bool) or not isinstance(amount, int | float):
        return None
    return {"amount": float(amount), "currency": text(cost.get("currency"))}


def _as_json(read: Callable[[Json], object]) -> Callable[[Json], Json]:
    return lambda update: record(read(update))


_KINDS: dict[str, tuple[str, Callable[[Json], Json]]] = {
    "_modes": ("modes", _as_json(_modes)),
    "_options": ("options", _as_json(_options)),
    "config_option_update": ("options", _as_json(_options)),
    "available_commands_update": ("commands", _as_json(_commands)),
    "usage_update": ("usage", _as_json(_usage)),
    "plan": ("plan", _as_json(plan_from_update)),
    "plan_update": ("plan", _as_json(plan_from_update)),
}
