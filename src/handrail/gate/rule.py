"""Rules: a pure decision about claims.

Owns what is allowed without asking, what is asked and what is refused. It does not ask anybody, run
anything, or read files.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from handrail.gate.risk import assess
from handrail.store.value import Caller, Claim

Effect = Literal["allow", "ask", "deny"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What the rules say about a call."""

    effect: Effect
    rule: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The standing answers."""

    default: Effect = "ask"
    """For claims that no rule matches; `allow` is the auto-approve mode."""

    @property
    def version(self) -> str:
        """Changes whenever a decision could change; part of every digest."""
        return f"1:{self.default}"

    def decide(self, claims: Sequence[Claim], caller: Caller) -> Decision:
        if all(claim.action == "recall" for claim in claims):
            return Decision(
                effect="allow", rule="own record", why="It only reads Handrail's record of calls."
            )
        if caller.workspace is None:
            return Decision(
                effect="ask", rule="no workspace", why="The caller has no workspace, so everything asks."
            )
        if all(claim.action == "read" and claim.inside and not claim.protected for claim in claims):
            return Decision(
                effect="allow", rule="reads in the workspace", why="It only reads inside the workspace."
            )
        if all(claim.action == "stop" and claim.inside and not claim.protected for claim in claims):
            return Decision(
                effect="allow", rule="own terminals", why="It only ends what agents of this workspace opened."
            )
        if self.default == "allow" and assess(claims).level == "high":
            return Decision(
                effect="ask", rule="high risk", why="Auto-approve is on, but high risk always asks."
            )
        return Decision(effect=self.default, rule="default policy", why=_WHY[self.default])


_WHY: dict[Effect, str] = {
    "allow": "No rule matches, and the default policy allows (auto-approve mode).",
    "ask": "No rule allows it, so you are asked.",
    "deny": "No rule allows it, and the default policy refuses.",
}
