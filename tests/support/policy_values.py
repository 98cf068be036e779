"""Claims, rules and policies for tests of the rules."""

from typing import Any

from handrail.gate.rules.policy import Decision, FolderSettings, Policy
from handrail.gate.shell.shell_parser import parse
from handrail.store.values import Action, Caller, Claim, Effect, Rule

ROOT = "/w"
HOME = "/home/ann"
RUN = "execute_command"


def caller(client: str = "one", key: str = "one@/w", workspace: str | None = ROOT) -> Caller:
    return Caller(door="stdio", client=client, key=key, workspace=workspace)


ONE = caller()


def claim(action: Action, resource: str = "/w/a", *, inside: bool = True, **facts: Any) -> Claim:
    return Claim(action=action, resource=resource, inside=inside, **facts)


def runs(line: str, **facts: Any) -> list[Claim]:
    """The claims of a shell line, from its words alone."""
    read = parse(line)
    parts = [claim("run", part.text, words=part.words, **facts) for part in read.parts]
    return parts + [claim("run", each.text, words=each.words, opaque=each.why) for each in read.opaque]


def rule(effect: Effect = "allow", id: str = "r1", **fields: Any) -> Rule:
    return Rule(id=id, effect=effect, **fields)


def policy(*rules: Rule, trusted: bool = True, root: str | None = ROOT, **settings: Any) -> Policy:
    return Policy(rules, FolderSettings(trusted=trusted, **settings), root=root, home=HOME)


def decide(held: Policy, claims: list[Claim] | str, who: Caller = ONE, tool: str = RUN) -> Decision:
    return held.decide(tool, runs(claims) if isinstance(claims, str) else claims, who)


def brief(decision: Decision) -> tuple[Effect, str]:
    return decision.effect, decision.rule
