"""What is built in: the floors that nothing overrides, what needs no rule, and what is left to the default.

Owns the name, the words and the test of each. It does not know their order (rule.py), nor any rule of a person's.
"""

from collections.abc import Callable
from dataclasses import dataclass

from handrail.gate.risk import assess
from handrail.store.value import Caller, Claim, Effect, Risk, Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Standpoint:
    """What the built-in ones need to know of the folder and the settings."""

    default: Effect = "ask"
    human_in_the_loop: bool = True
    trusted: bool = False
    anywhere: bool = False
    """No folder is meant, so none can be said to be trusted or not."""
    distrust: str = "This folder is not trusted, so whatever acts in it asks."
    """Why it is not trusted, as a sentence."""


@dataclass(frozen=True, slots=True)
class Case:
    """One claim, and what it is judged by."""

    claim: Claim
    caller: Caller
    here: Standpoint

    @property
    def level(self) -> Risk:
        return assess((self.claim,)).level


@dataclass(frozen=True, slots=True, kw_only=True)
class Builtin:
    """One of them."""

    name: str
    effect: Effect
    words: str
    why: str
    applies: Callable[[Case], bool]
    idle: Callable[[Standpoint], str] = lambda _: ""
    """Why it never applies under these settings, as a sentence; empty when it may."""

    @property
    def rule(self) -> Rule:
        """The same in the form of a rule, for lists."""
        return Rule(id=self.name, effect=self.effect, source="built in", note=self.words)


OPAQUE = Builtin(
    name="not understood",
    effect="ask",
    words="a command, or a part of one, that cannot be read with certainty",
    why="A part of it is not fully understood, so no rule can allow it",
    applies=lambda case: case.claim.opaque != "",
)
FLOORS = (
    Builtin(
        name="protected place",
        effect="ask",
        words="keys, start-up files, settings that start programs, Handrail's own files, a person's terminal",
        why="It touches a protected place, which no rule can allow.",
        applies=lambda case: case.claim.protected,
    ),
    OPAQUE,
    Builtin(
        name="no workspace",
        effect="ask",
        words="whatever a caller without a workspace does",
        why="The caller has no workspace, so everything asks.",
        applies=lambda case: case.caller.workspace is None and case.claim.action != "recall",
    ),
)
"""Nothing overrides these but a refusal."""

ALLOWS = (
    Builtin(
        name="own record",
        effect="allow",
        words="reading Handrail's record of calls",
        why="It only reads Handrail's record of calls.",
        applies=lambda case: case.claim.action == "recall",
    ),
    Builtin(
        name="reads in the workspace",
        effect="allow",
        words="reading files in the workspace, but for protected ones",
        why="It only reads inside the workspace.",
        applies=lambda case: case.claim.action == "read" and case.claim.inside,
    ),
    Builtin(
        name="own terminals",
        effect="allow",
        words="ending terminals that agents of this workspace opened",
        why="It only ends what agents of this workspace opened.",
        applies=lambda case: case.claim.action == "stop" and case.claim.inside,
    ),
)
"""What needs no rule, also in a folder that is not trusted: none of it runs anything."""

UNTRUSTED = Builtin(
    name="untrusted folder",
    effect="ask",
    words="whatever acts in a folder that is not trusted",
    why="",
    applies=lambda case: not case.here.trusted and case.here.default != "deny",
    idle=lambda here: "This folder is trusted." if here.trusted and not here.anywhere else "",
)
LOW = Builtin(
    name="low risk",
    effect="allow",
    words="what is of low risk, where `human_in_the_loop` is false",
    why="It is of low risk, and `human_in_the_loop` is off.",
    applies=lambda case: case.here.trusted and not case.here.human_in_the_loop and case.level == "low",
    idle=lambda here: (
        "`human_in_the_loop` is on."
        if here.human_in_the_loop
        else ("" if here.trusted else "This folder is not trusted.")
    ),
)
HIGH = Builtin(
    name="high risk",
    effect="ask",
    words="what is of high risk, where the default policy allows",
    why="Auto-approve is on, but high risk always asks.",
    applies=lambda case: case.here.default == "allow" and case.level == "high",
    idle=lambda here: "" if here.default == "allow" else "The default policy does not allow.",
)
LATE = (UNTRUSTED, LOW, HIGH)
"""For what no rule is about, in this order, before the default policy."""

DEFAULT_WHY: dict[Effect, str] = {
    "allow": "No rule matches, and the default policy allows (auto-approve mode).",
    "ask": "No rule allows it, so you are asked.",
    "deny": "No rule allows it, and the default policy refuses.",
}


def default_of(here: Standpoint) -> Builtin:
    """The default policy, in the form of the others."""
    return Builtin(
        name="default policy",
        effect=here.default,
        words="whatever no rule is about",
        why=DEFAULT_WHY[here.default],
        applies=lambda _: True,
    )


def why_of(builtin: Builtin, case: Case) -> str:
    """Why a built-in one decided, as a sentence."""
    if builtin is UNTRUSTED:
        return case.here.distrust
    if builtin is OPAQUE:
        return f"{builtin.why}: {case.claim.opaque.rstrip('.')}."
    return builtin.why
