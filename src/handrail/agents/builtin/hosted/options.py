"""What a person can set in a conversation: its model, and how long that one thinks.

Owns the two options as the protocol shows them, and what was set. Which models there are is model/'s to know.
"""

from collections.abc import Sequence
from typing import Literal, cast, get_args

from handrail.agents.builtin.model.choice import chosen
from handrail.agents.builtin.model.model import ModelError
from handrail.agents.builtin.model.offered import Offered
from handrail.agents.builtin.tools.tool import Json

MODEL, THOUGHT = "model", "thought_level"
Level = Literal["default", "off", "low", "medium", "high"]
LEVELS: dict[Level, str] = {
    "default": "As its provider sets it",
    "off": "Off",
    "low": "Low",
    "medium": "Medium",
    "high": "High",
}


class NoSuchOption(Exception):
    """There is no such option, or it cannot be set to that; what and why."""


class Options:
    """Of one session."""

    def __init__(self, model: str | None, level: Level) -> None:
        self.model = model
        """As it was chosen here; None where nobody did."""
        self.level: Level = level
        self.otherwise: str | None = None
        """The model while nobody chose one; None while there is none, or nobody has looked."""
        self.offered: Sequence[Offered] = ()

    @property
    def current(self) -> str | None:
        return self.model or self.otherwise

    @property
    def thought_level(self) -> Literal["off", "low", "medium", "high"] | None:
        return None if self.level == "default" else self.level

    def set(self, option: str, value: object) -> str:
        """What it was set to. Raises NoSuchOption."""
        match option:
            case "model":
                self.model = _model(str(value), self.offered)
                return self.model
            case "thought_level" if value in get_args(Level):
                self.level = cast("Level", value)
                return self.level
            case "thought_level":
                raise NoSuchOption(f"The levels of thinking are {', '.join(get_args(Level))}.")
            case _:
                raise NoSuchOption(f"There is no option “{option[:100]}”; there are {MODEL} and {THOUGHT}.")

    def listed(self) -> list[Json]:
        """As the protocol has them; the model only once it is known which there are."""
        levels = [{"value": level, "name": name} for level, name in LEVELS.items()]
        thought = _option(THOUGHT, "Thinking", "How long the model thinks", self.level, levels)
        if self.current is None:
            return [thought]
        return [_option(MODEL, "Model", "Which model answers", self.current, self._models()), thought]

    def _models(self) -> list[Json]:
        listed: list[Json] = [
            {"value": each.name, "name": each.title}
            | ({"description": each.description} if each.description else {})
            for each in self.offered
        ]
        if self.current not in [each["value"] for each in listed]:
            listed.insert(0, {"value": self.current, "name": self.current})
        return listed


def _model(value: str, offered: Sequence[Offered]) -> str:
    """One that is offered may be said without its provider; any other is taken at its word."""
    for each in offered:
        if value in (each.name, each.name.partition(":")[2]):
            return each.name
    try:
        return str(chosen(value))
    except ModelError as error:
        raise NoSuchOption(error.sentence) from None


def _option(id: str, name: str, description: str, current: str, choices: list[Json]) -> Json:
    return {
        "id": id,
        "name": name,
        "description": description,
        "category": id,
        "type": "select",
        "currentValue": current,
        "options": choices,
    }
