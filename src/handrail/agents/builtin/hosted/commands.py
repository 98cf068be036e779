"""The words a person can begin a prompt with to speak to the agent itself: `/help`, `/model`, `/compact`.

Owns their names and how they are read. What each does is session.py's.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, cast, get_args

from handrail.agents.builtin.model.offered import Offered
from handrail.agents.builtin.tools.tool import Json

Word = Literal["help", "model", "compact"]


class Command(NamedTuple):
    """One of them, and what was typed after it."""

    word: Word
    rest: str


ABOUT: dict[Word, tuple[str, str]] = {
    "help": ("What this agent can do, and how it is set", ""),
    "model": ("Choose the model; alone, say which there are", "provider:name"),
    "compact": ("Sum up the conversation so far, to make room", "what to keep above all"),
}
"""Of each, what it does and what may follow it."""


def command_in(text: str) -> Command | None:
    """The command that a prompt is; None where it is none of ours, such as a path."""
    head, _, rest = text.strip().partition(" ")
    word = head.removeprefix("/")
    if not head.startswith("/") or word not in get_args(Word):
        return None
    return Command(cast("Word", word), rest.strip())


def listed() -> list[Json]:
    """As the protocol lists them."""
    return [
        {"name": word, "description": about, **({"input": {"hint": hint}} if hint else {})}
        for word, (about, hint) in ABOUT.items()
    ]


def models_text(current: str | None, offered: Sequence[Offered]) -> str:
    """The answer to `/model` alone."""
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
