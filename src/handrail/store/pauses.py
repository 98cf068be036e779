"""Pauses: events of a person who holds the calls of all agents, and lets them go on."""

import json
import sqlite3
from collections.abc import Sequence
from typing import Literal

from handrail.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentsPaused:
    """Calls that rules would allow wait for a person from now on."""

    kind: Literal["AgentsPaused"] = "AgentsPaused"
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentsResumed:
    """Rules decide again."""

    kind: Literal["AgentsResumed"] = "AgentsResumed"
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseRecord:
    """A pause that goes on."""

    at: int
    """Milliseconds since 1970."""
    by: str


def find_pause(rows: Sequence[sqlite3.Row]) -> PauseRecord | None:
    """The pause that goes on after these events, in order; None if the agents are not paused."""
    last = next((row for row in reversed(rows) if row["kind"] in ("AgentsPaused", "AgentsResumed")), None)
    if last is None or last["kind"] == "AgentsResumed":
        return None
    return PauseRecord(at=last["at"], by=str(json.loads(last["payload"] or "{}").get("by", "")))
