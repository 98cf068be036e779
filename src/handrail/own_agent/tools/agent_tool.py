"""What a tool is to the loop: a description for the model, and something to run.

Owns the seam between the loop and whatever can be done. It does not know where a tool comes from.

Asking before somebody else's tool is used.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

import anyio

if TYPE_CHECKING:
    from pydantic_ai.messages import BinaryContent
    from pydantic_ai.tools import ToolDefinition

    from handrail.own_agent.activity import Activity
    from handrail.own_agent.host import Voice


Json = dict[str, Any]
Kind = Literal["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "other"]
"""The protocol's words for sorts of work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A call as people see it before it has run."""

    title: str
    kind: Kind = "other"
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of a plan."""

    content: str
    status: Literal["pending", "in_progress", "completed"] = "pending"
    priority: Literal["high", "medium", "low"] = "medium"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What became of a call, for the model and for people."""

    text: str
    images: tuple[BinaryContent, ...] = ()
    failed: bool = False
    """The model should know that it did not work: failed, denied, cancelled."""
    ended: Literal["done", "failed", "denied", "cancelled"] = "done"
    raw: Json = field(default_factory=dict[str, Any])
    """Structured, as the tool gave it; not for the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A call while it runs."""

    id: str
    activity: Activity
    voice: Voice


class Tool(Protocol):
    """One thing that can be done. What `run` raises is told to the model as a failure."""

    @property
    def definition(self) -> ToolDefinition: ...

    def shown(self, input: Json) -> Shown: ...

    async def run(self, input: Json, call: Running) -> Result: ...


_DENIED = "The person denied this call; it was not made. Do not try the same by another way: go on without it, or ask them."
_CANCELLED = "The question was taken back before anybody answered; the call was not made."


class Permission:
    """One session's answers."""

    def __init__(self) -> None:
        self._always: set[str] = set()
        self._asking: defaultdict[str, anyio.Lock] = defaultdict(anyio.Lock)

    async def refusal(self, tool: str, shown: Shown, input: Json, call: Running) -> Result | None:
        """None where the call may be made, now that a person or the host's rules said so; else its result.

        One question for a tool at a time, so that "always" answers those that wait behind it too.
        """
        async with self._asking[tool]:
            if tool in self._always:
                return None
            answer = await call.voice.ask(call.id, shown, input)
            if answer == "always":
                self._always.add(tool)
        match answer:
            case "allowed" | "always":
                return None
            case "denied":
                return Result(text=_DENIED, failed=True, ended="denied")
            case "cancelled":
                return Result(text=_CANCELLED, failed=True, ended="cancelled")
