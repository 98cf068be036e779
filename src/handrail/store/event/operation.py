"""Work for one prompt: its beginning and its end."""

from dataclasses import dataclass
from typing import Literal

from handrail.store.value import Caller, Stop


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationOpened:
    """Work for one prompt began."""

    kind: Literal["OperationOpened"] = "OperationOpened"
    operation: str
    caller: Caller


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationEnded:
    """Work for one prompt ended, and with it every call it held."""

    kind: Literal["OperationEnded"] = "OperationEnded"
    operation: str
    cancelled_by: str | None
    cancelled_calls: tuple[str, ...] = ()
    cancelled_activities: tuple[str, ...] = ()
    """What it was busy with just then, in words: "asking the model", "Run pytest"."""
    stop: Stop | None = None
    """Why it ended, as its agent says or as we know it; None of work that no agent did."""
    error: str = ""
