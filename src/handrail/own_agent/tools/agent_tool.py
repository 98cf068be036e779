"""The tool interface of the agent loop: call display, result, and permission for other servers' tools."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal, Protocol

import anyio

from handrail.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from pydantic_ai.messages import BinaryContent
    from pydantic_ai.tools import ToolDefinition

    from handrail.own_agent.activity import Activity
    from handrail.own_agent.host import Host


Json = dict[str, Any]
Kind = Literal["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "other"]
"""ACP's kinds of tool calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallDisplay:
    """How a call is displayed before it has run."""

    title: str
    kind: Kind = "other"
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanEntry:
    """An entry of the plan."""

    content: str
    status: Literal["pending", "in_progress", "completed"] = "pending"
    priority: Literal["high", "medium", "low"] = "medium"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of a call, for the model and for people."""

    text: str
    images: tuple[BinaryContent, ...] = ()
    failed: bool = False
    """Whether the model gets it as an error: failed, denied or cancelled."""
    ended: Literal["done", "failed", "denied", "cancelled"] = "done"
    raw: Json = field(default_factory=dict[str, Any])
    """Structured content for people; not sent to the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningCall:
    """A running call."""

    id: str
    activity: Activity
    host: Host


class Tool(Protocol):
    """A tool. An exception of `run` is reported to the model as a failure."""

    @property
    def definition(self) -> ToolDefinition: ...

    def shown(self, input: Json) -> CallDisplay: ...

    async def run(self, input: Json, call: RunningCall) -> Result: ...


_DENIED = "The person denied this call; it was not made. Do not try the same by another way: go on without it, or ask them."
_CANCELLED = "The question was taken back before anybody answered; the call was not made."


class Permission:
    """Permissions given in one session."""

    def __init__(self) -> None:
        self._always: set[str] = set()
        self._asking: defaultdict[str, anyio.Lock] = defaultdict(anyio.Lock)

    async def refusal(self, tool: str, shown: CallDisplay, input: Json, call: RunningCall) -> Result | None:
        """Ask for permission. None if the call may be made, else the result that refuses it.

        Asks one question per tool at a time, so that "always" also answers the calls that wait behind it.
        """
        async with self._asking[tool]:
            if tool in self._always:
                return None
            answer = await call.host.ask(call.id, shown, input)
            if answer == "always":
                self._always.add(tool)
        match answer:
            case "allowed" | "always":
                return None
            case "denied":
                return Result(text=_DENIED, failed=True, ended="denied")
            case "cancelled":
                return Result(text=_CANCELLED, failed=True, ended="cancelled")
