"""The corpus of shell lines (shell_lines.toml): its rules, and the decision that each line must get."""

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.policy_values import ONE, ROOT, RUN, policy, rule

from handrail.store.values import Claim, Effect

STRICTNESS: tuple[Effect, ...] = ("allow", "ask", "deny")
CORPUS = tomllib.loads(Path(__file__).with_name("shell_lines.toml").read_text())
POLICY = policy(
    *(
        rule(effect, f"{effect} {command}", command=command)
        for effect in STRICTNESS
        for command in CORPUS["rules"][effect]
    )
)
WRITTEN: list[tuple[str, Effect]] = [
    (line, effect) for effect in STRICTNESS for line in CORPUS["lines"][effect]
]
MADE: list[tuple[str, Effect]] = [
    (made["begin"] + made["again"] * made["times"], made["effect"]) for made in CORPUS["made"]
]
LINES = WRITTEN + MADE


def decided(line: str, parse: Callable[[str], Any]) -> Effect:
    """By these rules, about what this parser makes of a line."""
    return POLICY.decide(RUN, claims_of(parse(line)), ONE).effect


def claims_of(line: Any) -> list[Claim]:
    """As command_claims makes them, in a workspace where every word leads inside."""
    return [
        *(Claim(action="run", resource=part.text, inside=True, words=part.words) for part in line.parts),
        *(
            Claim(action="run", resource=item.text, inside=True, words=item.words, opaque=item.why)
            for item in line.opaque
        ),
    ]


def shown(line: str) -> str:
    """Short enough for the name of a test."""
    return repr(line[:60])


__all__ = ["LINES", "MADE", "POLICY", "ROOT", "STRICTNESS", "WRITTEN", "claims_of", "decided", "shown"]
