"""The decision: what the rules that hold say about a call.

Owns the order of evaluation. It does not ask anybody, run anything, read files or clocks: a policy is made of the rules
that hold in one folder at one moment (rules.py), and only decides.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from handrail.gate.rules.builtin import ALLOWS, FLOORS, LATE, Builtin, Case, Standpoint, default_of, why_of
from handrail.gate.rules.matching import Index
from handrail.gate.rules.wording import why
from handrail.store.value import Caller, Claim, Effect, Rule, Verdict

_STRICTNESS: dict[Effect, int] = {"allow": 0, "ask": 1, "deny": 2}
_FIRMNESS = {
    "default policy": 0,
    **{each.name: 1 for each in (*ALLOWS, *LATE)},
    **{each.name: 3 for each in FLOORS},
}
"""A person's own rules stand between."""
NOTHING_CLAIMED = "It does not say what it would touch, so you are asked."


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What the rules say about a call."""

    effect: Effect
    rule: str
    """The rule that decides: its id, or the name of a built-in one."""
    why: str
    verdicts: tuple[Verdict, ...] = ()
    """One for each claim, in their order."""
    rules: tuple[str, ...] = ()
    """Every rule that had a part in it, by its verdict about some claim."""
    basis: str = ""
    """The policy's part of the digest. What would only allow more is not in it: a person's answer covers that."""


class Policy:
    """The rules that hold in one folder. A claim gets the first that applies; a call the strictest of its claims."""

    def __init__(
        self,
        rules: Iterable[Rule] = (),
        here: Standpoint | None = None,
        *,
        root: str | None = None,
        home: str = "/",
    ) -> None:
        """`root` is what relative paths are relative to. Raises BadPattern."""
        self.here = here or Standpoint()
        self.rules = tuple(rules)
        """In force, nearest first."""
        self.root = root
        self.home = home
        self._whys = {rule.id: why(rule) for rule in self.rules}
        self._default = default_of(self.here)
        self._index = Index(self.rules, root, home)

    def decide(
        self, tool: str, claims: Sequence[Claim], caller: Caller, server: str | None = None
    ) -> Decision:
        """Decide about a call; `server` is the MCP server that would do it, when it is not Handrail."""
        if not claims:
            return self._without_claims()
        strict: list[str] = []
        verdicts = tuple(
            self._verdict(place, tool, Case(claim, caller, self.here), server, strict)
            for place, claim in enumerate(claims)
        )
        first = max(verdicts, key=_weight)
        return Decision(
            effect=first.effect,
            rule=first.rule,
            why=first.why,
            verdicts=verdicts,
            rules=tuple(dict.fromkeys(verdict.rule for verdict in verdicts)),
            basis=self._basis(strict),
        )

    def _verdict(self, place: int, tool: str, case: Case, server: str | None, strict: list[str]) -> Verdict:
        """About one claim; notes in `strict` all that keeps it from being allowed."""
        found = self._index.matching(tool, case.claim, case.caller, server)
        floor = next((each for each in FLOORS if each.applies(case)), None)
        strict += [rule.id for rule in found if rule.effect != "allow"]
        if floor is not None:
            strict.append(floor.name)
        if (rule := _first(found, "deny")) is not None:
            return self._by_rule(place, rule)
        if floor is not None:
            return _by_builtin(place, floor, case)
        if (rule := _first(found, "ask") or _first(found, "allow")) is not None:
            return self._by_rule(place, rule)
        last = next((each for each in (*ALLOWS, *LATE) if each.applies(case)), self._default)
        return _by_builtin(place, last, case)

    def _by_rule(self, place: int, rule: Rule) -> Verdict:
        return Verdict(claim=place, effect=rule.effect, rule=rule.id, why=self._whys[rule.id])

    def _without_claims(self) -> Decision:
        if self.here.default == "deny":
            return Decision(
                effect="deny", rule=self._default.name, why=self._default.why, basis=self._basis([])
            )
        return Decision(effect="ask", rule="nothing claimed", why=NOTHING_CLAIMED, basis=self._basis([]))

    def _basis(self, strict: Sequence[str]) -> str:
        text = "\n".join([self.here.default, *sorted(set(strict))])
        return hashlib.sha256(text.encode()).hexdigest()


def _first(found: Sequence[Rule], effect: Effect) -> Rule | None:
    return next((rule for rule in found if rule.effect == effect), None)


def _by_builtin(place: int, builtin: Builtin, case: Case) -> Verdict:
    return Verdict(claim=place, effect=builtin.effect, rule=builtin.name, why=why_of(builtin, case))


def _weight(verdict: Verdict) -> tuple[int, int]:
    """The strictest, and of those alike what is furthest from being changed: it says most about the call."""
    return _STRICTNESS[verdict.effect], _FIRMNESS.get(verdict.rule, 2)
