"""What is said when an agent cannot do what was asked of it.

Owns the one exception of this wire. It knows neither programs nor protocols.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Login:
    """A way to log in to an agent, as the agent offers it."""

    id: str
    name: str
    description: str = ""
    command: str | None = None
    """To be run in a terminal, where the agent cannot do it by itself."""


@dataclass(eq=False)
class AgentError(Exception):
    """An agent failed, with the reason in one sentence and what it last said on its standard error."""

    sentence: str
    said: tuple[str, ...] = ()
    logins: tuple[Login, ...] = ()
    """Where it failed because a person has to log in first."""
    code: int | None = field(default=None)
    """Of the protocol's error, where the agent answered with one."""
    data: object = field(default=None)

    def __str__(self) -> str:
        return self.sentence
