"""AgentError: why an agent could not do something, in one sentence, with its logins and its last standard
error."""

from dataclasses import field

from handrail.lazy_dataclass import dataclass

LOGIN_NEEDED = -32000


@dataclass(frozen=True, slots=True)
class Login:
    """A way to log in, as the agent offers it."""

    id: str
    name: str
    description: str = ""
    command: str | None = None
    """The command to run in a terminal, if the agent cannot do the login itself."""


@dataclass(eq=False)
class AgentError(Exception):
    """An agent failed: the reason in one sentence, and the last lines of its standard error."""

    sentence: str
    said: tuple[str, ...] = ()
    logins: tuple[Login, ...] = ()
    """Set if it failed because a person has to log in first."""
    code: int | None = field(default=None)
    """The JSON-RPC error code, if the agent answered with an error."""
    data: object = field(default=None)

    @property
    def is_refusal(self) -> bool:
        """Whether the agent answered with an error, other than that a login is missing."""
        return self.code not in (None, LOGIN_NEEDED)

    def __str__(self) -> str:
        return self.sentence
