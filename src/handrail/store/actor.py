"""Actor: the person, rule, client, agent or daemon that did, allowed, ended or answered something.

The journal, the SQL columns and the JSON of `/api` hold an actor as text, `str(actor)`. Code decides by the kind,
never by the text.
"""

from typing import Literal, assert_never, get_args

from handrail.lazy_dataclass import dataclass

ActorKind = Literal[
    "person", "rule", "approval", "client", "operation", "agent", "handrail", "nobody", "named"
]
_Labelled = Literal["rule", "approval", "agent"]
_Bare = Literal["client", "operation", "handrail", "nobody"]

_PERSON = "a person"


@dataclass(frozen=True, slots=True)
class Actor:
    """One actor; build it with the constants and functions below."""

    kind: ActorKind
    name: str = ""
    """person: where they act (`on the page`), or empty. rule, approval: the id. agent: its name. named: the whole text.
    Empty for the other kinds."""

    @property
    def is_person(self) -> bool:
        return self.kind == "person"

    @property
    def rule(self) -> str | None:
        """The id of the rule that acted; None for every other kind."""
        return self.name if self.kind == "rule" else None

    def __str__(self) -> str:
        """The text form, as journals and `/api` hold it."""
        match self.kind:
            case "person":
                return f"{_PERSON} {self.name}" if self.name else _PERSON
            case "rule" | "approval" | "agent":
                return f"{self.kind} {self.name}"
            case "client" | "operation" | "handrail" | "nobody":
                return self.kind
            case "named":
                return self.name
            case _:
                assert_never(self.kind)


PERSON = Actor("person")
"""A person; where they act is unknown."""
CLIENT = Actor("client")
"""The client that made the call: it cancelled, closed its stream or lost its connection."""
OPERATION = Actor("operation")
"""The operation that the call belonged to: it ended."""
HANDRAIL = Actor("handrail")
"""The daemon."""
NOBODY = Actor("nobody")
"""Allowed by nobody: an agent acted without asking, and Handrail heard of it afterwards."""


EDITOR_PLACE = "VS Code"
"""Where a person acts through an editor's extension."""
EDITOR = Actor("person", f"in {EDITOR_PLACE}")
"""A person in a paired editor."""


def person_on(place: str) -> Actor:
    """A person on the page or the command line, or in an editor."""
    return EDITOR if place == EDITOR_PLACE else Actor("person", f"on the {place}")


def rule_actor(id: str) -> Actor:
    """A person's rule by its id, or a built-in rule by its name."""
    return Actor("rule", id)


def approval_actor(id: str) -> Actor:
    """The approval that allowed a call; its answer names the person."""
    return Actor("approval", id)


def agent_actor(name: str) -> Actor:
    """A hosted agent."""
    return Actor("agent", name)


def tool_actor(name: str) -> Actor:
    """A tool that ended its own call. Its text is the bare name, so it reads back as `named`."""
    return Actor("named", name)


def actor_from_text(text: str) -> Actor:
    """Parse the text form. Any other text becomes kind `named`, unchanged."""
    if text == _PERSON:
        return PERSON
    if where := _after(text, f"{_PERSON} "):
        return Actor("person", where)
    for bare in get_args(_Bare):
        if text == bare:
            return Actor(bare)
    for label in get_args(_Labelled):
        if name := _after(text, f"{label} "):
            return Actor(label, name)
    return Actor("named", text)


def _after(text: str, prefix: str) -> str:
    return text.removeprefix(prefix) if text.startswith(prefix) else ""
