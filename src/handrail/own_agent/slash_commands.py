"""Slash commands (`/help`, `/model`, `/compact`) and the session options (model, thinking level).

Parses commands and writes their texts. What each command does is in agent_session.py.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, cast, get_args

from handrail.own_agent.models.catalog import OfferedModel
from handrail.own_agent.models.model import ModelError, parse_choice
from handrail.own_agent.tools.agent_tool import Json

Word = Literal["help", "model", "compact"]


class Command(NamedTuple):
    """A command and the text after it."""

    word: Word
    rest: str


ABOUT: dict[Word, tuple[str, str]] = {
    "help": ("What this agent can do, and how it is set", ""),
    "model": ("Choose the model; alone, say which there are", "provider:name"),
    "compact": ("Sum up the conversation so far, to make room", "what to keep above all"),
}
"""For each command: what it does, and a hint for its argument."""


def parse_command(text: str) -> Command | None:
    """The command in a prompt; None if it is not one of ours, such as a path."""
    head, _, rest = text.strip().partition(" ")
    word = head.removeprefix("/")
    if not head.startswith("/") or word not in get_args(Word):
        return None
    return Command(cast("Word", word), rest.strip())


def list_commands() -> list[Json]:
    """The commands in ACP form."""
    return [
        {"name": word, "description": about, **({"input": {"hint": hint}} if hint else {})}
        for word, (about, hint) in ABOUT.items()
    ]


def models_text(current: str | None, offered: Sequence[OfferedModel]) -> str:
    """The answer to `/model` without an argument."""
    if not offered:
        return f"The model is `{current}`." if current else "There is no model yet: `handrail keys` says why."
    marked = (f"- `{each.name}`{' (the one in use)' if each.name == current else ''}" for each in offered)
    return "\n".join(("Choose with `/model NAME`; these are known, others can be named:", "", *marked))


def help_text(model: str | None, thought_level: str, tools: int) -> str:
    """The answer to `/help`."""
    lines = [
        "I am Handrail's own coding agent. Say what you want done; every call I make is yours to allow, deny or cancel.",
        "",
        *(f"- `/{word}{f' {hint}' if hint else ''}`: {about}" for word, (about, hint) in ABOUT.items()),
        "",
        f"Model: `{model or 'none yet'}` · thinking: {thought_level} · tools: {tools}.",
        "What your project wants me to know belongs into its `AGENTS.md`. `handrail keys` manages keys of providers.",
    ]
    return "\n".join(lines)


MODEL, THOUGHT = "model", "thought_level"
Level = Literal["default", "off", "low", "medium", "high"]
LEVELS: dict[Level, str] = {
    "default": "Default thinking",
    "off": "Off",
    "low": "Low",
    "medium": "Medium",
    "high": "High",
}


class NoSuchOption(Exception):
    """The option does not exist or cannot have this value; the message gives the reason."""


class Options:
    """The options of one session."""

    def __init__(self, model: str | None, level: Level) -> None:
        self.model = model
        """The model chosen in this session; None if none was chosen."""
        self.level: Level = level
        self.otherwise: str | None = None
        """The default model; None if there is none or the models are not listed yet."""
        self.offered: Sequence[OfferedModel] = ()

    @property
    def current(self) -> str | None:
        return self.model or self.otherwise

    @property
    def thought_level(self) -> Literal["off", "low", "medium", "high"] | None:
        return None if self.level == "default" else self.level

    def set(self, option: str, value: object) -> str:
        """Set an option and return the stored value. Raises NoSuchOption."""
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
        """The options in ACP form; without the model until one is known."""
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


def _model(value: str, offered: Sequence[OfferedModel]) -> str:
    """The full name of a model. An offered one may be given without its provider; any other is accepted as
    written."""
    for each in offered:
        if value in (each.name, each.name.partition(":")[2]):
            return each.name
    try:
        return str(parse_choice(value))
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
