"""What an operation is busy with, as an agent that can tells it: a tree whose root is the operation."""

from dataclasses import dataclass
from typing import Literal

from handrail.store.value import ActivityEnding, ActivitySort


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityStarted:
    """A model is asked, it thinks, a call is made, another agent is sent, a conversation is summed up."""

    kind: Literal["ActivityStarted"] = "ActivityStarted"
    thread: str
    operation: str
    activity: str
    parent: str | None
    sort: ActivitySort
    title: str
    tool_call: str = ""
    """The call it is, by its agent's own id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityEnded:
    """It came to its end, or was cancelled."""

    kind: Literal["ActivityEnded"] = "ActivityEnded"
    thread: str
    operation: str
    activity: str
    sort: ActivitySort
    how: ActivityEnding
    by: str = ""
    """Who cancelled it, or what it was part of; empty where its agent did, or nobody."""
    detail: str = ""
