"""What an agent says of a conversation as a whole, in our words: modes, options, commands, usage, plan.

Owns these shapes, which page and command line read as a thread's state, and how the agent's own words become them. It
does not know threads, nor what the page makes of them.
"""

from collections.abc import Callable, Mapping

from typing_extensions import TypedDict

from handrail.agents.lenient_json import name, number, record, records, text
from handrail.store.threads.parts import PlanData, PlanEntry
from handrail.store.values import Json

NAMES = ("modes", "options", "commands", "usage", "plan")


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
    """The name of the group it stands in; empty where there is none."""


class Option(TypedDict):
    id: str
    name: str
    description: str
    category: str
    """`mode`, `model`, `thought_level`, or a word of the agent's; for the look of it only."""
    type: str
    """`select` or `boolean`."""
    value: str | bool
    choices: list[Choice]


class Options(TypedDict):
    """State `options`."""

    options: list[Option]


class Command(TypedDict):
    name: str
    """Without the slash."""
    description: str
    hint: str
    """What to type after it; empty when nothing."""


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
    """How many fit."""
    cost: Cost | None
    """Of the conversation so far."""


def stated(update: Json, before: Mapping[str, Json]) -> tuple[str, Json] | None:
    """The name and the new data of the state that an update is about; None when it is about none."""
    if update.get("sessionUpdate") == "current_mode_update":
        return "modes", {**before.get("modes", {"modes": []}), "current": name(update.get("currentModeId"))}
    found = _KINDS.get(text(update.get("sessionUpdate")))
    return None if found is None else (found[0], found[1](update))


def plan(update: Json) -> PlanData:
    """The plan in a plan update, of either form."""
    told = record(update.get("plan")) or update
    return {"entries": [_entry(each) for each in records(told.get("entries"))]}


def _entry(told: Json) -> PlanEntry:
    return {
        "content": text(told.get("content")),
        "priority": text(told.get("priority")) or "medium",
        "status": text(told.get("status")) or "pending",
    }


def _modes(update: Json) -> Modes:
    told = record(update.get("modes")) or update
    modes: list[Mode] = [
        {
            "id": name(each.get("id")),
            "name": text(each.get("name")),
            "description": text(each.get("description")),
        }
        for each in records(told.get("availableModes"))
    ]
    return {"current": name(told.get("currentModeId")), "modes": modes}


def _options(update: Json) -> Options:
    told = update.get("configOptions", update.get("options"))
    return {"options": [_option(each) for each in records(told) if name(each.get("id"))]}


def _option(told: Json) -> Option:
    value = told.get("currentValue")
    return {
        "id": name(told.get("id")),
        "name": text(told.get("name")) or name(told.get("id")),
        "description": text(told.get("description")),
        "category": text(told.get("category")),
        "type": text(told.get("type")) or "select",
        "value": value if isinstance(value, bool) else text(value),
        "choices": _choices(records(told.get("options"))),
    }


def _choices(told: list[Json], group: str = "") -> list[Choice]:
    """Choices stand in a list, or in a list of groups that have one each."""
    found: list[Choice] = []
    for each in told:
        if "options" in each:
            found += _choices(records(each["options"]), text(each.get("name")) or name(each.get("group")))
        else:
            value = name(each.get("value"))
            label, description = text(each.get("name")) or value, text(each.get("description"))
            found.append({"value": value, "name": label, "description": description, "group": group})
    return found


def _commands(update: Json) -> Commands:
    found: list[Command] = [
        {
            "name": text(each.get("name")).removeprefix("/"),
            "description": text(each.get("description")),
            "hint": text(record(each.get("input")).get("hint")),
        }
        for each in records(update.get("availableCommands"))
    ]
    return {"commands": found}


def _usage(update: Json) -> Usage:
    used, size = number(update.get("used")) or 0, number(update.get("size")) or 0
    return {"used": used, "size": size, "cost": _cost(record(update.get("cost")))}


def _cost(told: Json) -> Cost | None:
    amount = told.get("amount")
    if isinstance(amount, bool) or not isinstance(amount, int | float):
        return None
    return {"amount": float(amount), "currency": text(told.get("currency"))}


def _as_json(read: Callable[[Json], object]) -> Callable[[Json], Json]:
    return lambda update: record(read(update))


_KINDS: dict[str, tuple[str, Callable[[Json], Json]]] = {
    "_modes": ("modes", _as_json(_modes)),
    "_options": ("options", _as_json(_options)),
    "config_option_update": ("options", _as_json(_options)),
    "available_commands_update": ("commands", _as_json(_commands)),
    "usage_update": ("usage", _as_json(_usage)),
    "plan": ("plan", _as_json(plan)),
    "plan_update": ("plan", _as_json(plan)),
}
