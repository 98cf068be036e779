"""Rule suggestions from one approval or from repeated answers, and the effect of a rule on past calls.

A suggested rule is as general as is safe: `git push`, `npm run test`, `pytest`, or exactly the words of the command.
Nothing is suggested that no rule can allow. It adds no rules; a person accepts or edits a suggestion.
"""

import posixpath
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from typing import Protocol

from handrail.gate.risk import assess
from handrail.gate.rules.matching import FILES, Matcher, common_tool, find_arguments, find_server
from handrail.gate.rules.patterns import BadPattern, spell, spell_path
from handrail.gate.rules.policy import FLOORS, HIGH, UNTRUSTED, Decision, Policy, describe_rule
from handrail.lazy_dataclass import dataclass
from handrail.store.actor import Actor
from handrail.store.values import AnswerKind, Caller, Claim, Effect, Rule

MOST = 12
"""Suggestions for one approval; the card has no room for more."""
_OPEN = frozenset({"default policy", UNTRUSTED.name, HIGH.name})
"""Built-in verdicts that a rule can replace."""
_FLOORS = frozenset(each.name for each in FLOORS)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuggestedRule:
    """A suggested rule, not added."""

    rule: Rule
    """Its id is empty."""
    words: str
    claims: tuple[int, ...] = ()
    """Positions of the claims it would decide."""
    answers: int = 0
    """Number of past answers that agree with it."""


def suggest_rules(
    tool: str, claims: Sequence[Claim], caller: Caller, policy: Policy, effect: Effect = "allow"
) -> list[SuggestedRule]:
    """Rules that would decide an equal call the next time: few, and general."""
    verdicts = policy.decide(tool, claims, caller).verdicts
    if any(each.rule in _FLOORS for each in verdicts):
        return []  # a floor asks every time, so no rule would help
    undecided = [each.claim for each in verdicts if each.rule in _OPEN]
    suggestions: list[SuggestedRule] = []
    covered: set[int] = set()
    for place in undecided:
        if place in covered or len(suggestions) == MOST:
            continue
        for rule in _rules(tool, claims[place], policy, effect):
            fits = _fitting(rule, tool, claims, caller, policy, undecided)
            if place in fits:
                covered.update(fits)
                suggestions.append(SuggestedRule(rule=rule, words=describe_rule(rule), claims=fits))
    return suggestions


def _fitting(
    rule: Rule, tool: str, claims: Sequence[Claim], caller: Caller, policy: Policy, among: Sequence[int]
) -> tuple[int, ...]:
    """Positions of the claims it would decide; empty if its pattern is invalid."""
    try:
        matcher = Matcher(rule, policy.root, policy.home)
    except BadPattern:
        return ()
    server, arguments = find_server(claims), find_arguments(claims)
    return tuple(
        place
        for place in among
        if matcher.effect_on(tool, claims[place], caller, server, arguments) == rule.effect
    )


def _rules(tool: str, claim: Claim, policy: Policy, effect: Effect) -> Iterator[Rule]:
    if policy.root is None:
        return
    if claim.action == "run" and claim.server:
        if arguments := _telling_arguments(claim):
            yield _rule(effect, policy.root, tool=tool, arguments=arguments)
        yield _rule(effect, policy.root, tool=tool)
    elif claim.action == "run" and claim.words:
        if (command := suggest_pattern(claim)) is not None:
            yield _rule(effect, policy.root, tool=common_tool(tool, claim.action), command=command)
    elif claim.action == "connect":
        yield _rule(effect, policy.root, host=claim.resource)
    elif claim.action in FILES:
        try:
            path = _path(claim, policy.root)
        except BadPattern:
            return
        # Allowing one tool to write here includes the other tools; deleting must name its tool.
        yield _rule(effect, policy.root, tool=tool if claim.action == "delete" else None, path=path)


def _telling_arguments(claim: Claim) -> tuple[tuple[str, str], ...]:
    """The arguments with the place where the call acts, with exactly their text."""
    return tuple(
        (name, text)
        for name, text in claim.arguments
        if name.lower() in _PLACES and text and "*" not in text and text.isprintable()
    )


def _path(claim: Claim, root: str) -> str:
    """Its folder and all below; only the file itself for a deletion, outside, or directly in the root."""
    if not claim.inside:
        return spell_path(claim.resource)
    below = spell_path(posixpath.relpath(claim.resource, root))
    folder = posixpath.dirname(below)
    if claim.action == "delete" or not folder:
        return below
    return f"{folder}/**"


def _rule(
    effect: Effect,
    workspace: str,
    *,
    tool: str | None = None,
    command: str | None = None,
    path: str | None = None,
    host: str | None = None,
    arguments: tuple[tuple[str, str], ...] = (),
) -> Rule:
    return Rule(
        id="",
        effect=effect,
        tool=tool,
        command=command,
        path=path,
        host=host,
        arguments=arguments,
        scope="project",
        workspace=workspace,
    )


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PLACES = _names("""
    account bucket channel cluster collection database dataset db domain env environment host namespace org organization
    owner project project_id region repo repository schema server site table team tenant workspace
""")
"""Names of arguments that say where a call of an MCP server acts."""
SUBCOMMANDS = _names("""
    apt apt-get asdf brew bun bundle cargo composer conda dart deno docker dotnet flutter gh git go gradle hatch helm hg
    just kubectl make mise mix mvn nix npm nx pdm pip pipenv pipx pixi pnpm podman poetry pyenv rails rake rbenv rustup rye
    swift systemctl terraform turbo uv yarn
""")
"""Programs whose first argument is a subcommand."""
DEEPER = {
    "asdf": _names("exec"),
    "bun": _names("run x"),
    "bundle": _names("exec"),
    "conda": _names("run"),
    "dart": _names("run"),
    "deno": _names("run task"),
    "docker": _names("compose container image"),
    "gh": _names("issue pr release repo run"),
    "git": _names("bisect remote stash submodule worktree"),
    "go": _names("mod run tool"),
    "hatch": _names("run"),
    "mise": _names("exec run x"),
    "nix": _names("develop run shell"),
    "npm": _names("exec run x"),
    "nx": _names("run"),
    "pdm": _names("run"),
    "pipenv": _names("run"),
    "pipx": _names("run"),
    "pixi": _names("run"),
    "pnpm": _names("dlx exec run"),
    "poetry": _names("run"),
    "pyenv": _names("exec"),
    "rbenv": _names("exec"),
    "rustup": _names("run"),
    "rye": _names("run"),
    "uv": _names("pip run tool"),
    "yarn": _names("dlx exec run workspace"),
}
"""Subcommands whose next word names the program or script; without it a rule would allow anything."""
RUNNERS = _names("bunx npx pnpx uvx")
"""Programs whose arguments are another command."""
_RUN = _names("dlx exec run x")
"""Subcommands of `DEEPER` whose arguments are another command, or a script by its name."""
INTERPRETERS = _names("""
    babel-node elixir groovy guile ipython java jshell julia kotlin lua luajit node nodejs osascript perl php
    powershell pwsh pypy python racket raku rscript ruby runghc runhaskell scala swipl tclsh ts-node tsx vite-node zx
    cprofile debugpy pdb profile runpy timeit trace
""")
"""Programs, and modules of Python, that run the file or code they are given; without the number of a version."""
DELETES = _names("rm rmdir shred truncate unlink")
WHOLE = DELETES | _names("""
    awk aws az chgrp chmod chown clickhouse-client cp crontab curl dd find gawk gcloud install kill killall ln mariadb
    mongo mongosh mv mysql nc ncat netcat open pkill psql redis-cli rsync scp sed sqlite3 ssh tar tee wget xdg-open zip
""")
"""Programs whose arguments can do anything: only the exact command is suggested."""
WHOLE_SUBCOMMANDS = {
    "docker": _names("cp create exec run"),
    "gh": _names("api auth"),
    "kubectl": _names("attach cp debug exec run"),
    "podman": _names("cp create exec run"),
    "rails": _names("r runner"),
}
"""Subcommands of which the same is true, also after another one: `docker compose exec`."""
_NOTHING = _names("")
_ROOTS = frozenset(
    (".", "..", "/", "~", "*", ".*", "./", "../", "./*", "/*", "~/", "~/*", "--no-preserve-root")
)


def suggest_pattern(claim: Claim) -> str | None:
    """A pattern for this command and similar ones; None if no rule should be suggested."""
    words = claim.words
    if _program(words) in DELETES and (not claim.inside or not _ROOTS.isdisjoint(words[1:])):
        return None
    count = _count_telling_words(words)
    if count is None or _adds_harm(claim, words[:count]):
        return spell(words, ends=True)
    return spell(words[:count])


def _program(words: Sequence[str]) -> str:
    """The name that the tables know: without its folder and the number of a version, in small letters."""
    name = posixpath.basename(words[0]).casefold()
    return name.rstrip("0123456789.-") or name


def _count_telling_words(words: Sequence[str]) -> int | None:
    """Number of leading words that identify the action; None if the whole command is needed."""
    program, first, second = _program(words), *(*words[1:3], "", "")[:2]
    if program in WHOLE or not WHOLE_SUBCOMMANDS.get(program, _NOTHING).isdisjoint((first, second)):
        return None
    if program in INTERPRETERS:
        return _count_after(words, 2) if first == "-m" else 2 if _is_name(first) else None
    if program in RUNNERS:
        return _count_after(words, 1)
    return _count_to_subcommand(words, program, first, second) if program in SUBCOMMANDS else 1


def _count_to_subcommand(words: Sequence[str], program: str, first: str, second: str) -> int | None:
    if first not in DEEPER.get(program, ()):
        return 2 if _is_name(first) else None
    if first not in _RUN and second in _RUN:
        return _count_after(words, 3)
    return _count_after(words, 2) if first in _RUN else 3 if _is_name(second) else None


def _count_after(words: Sequence[str], begin: int) -> int | None:
    """The same for a command that begins at this word."""
    rest = words[begin:]
    count = _count_telling_words(rest) if rest and _is_name(rest[0]) else None
    return None if count is None else begin + count


def _is_name(word: str) -> bool:
    return bool(word) and not word.startswith("-")


def _adds_harm(claim: Claim, kept: Sequence[str]) -> bool:
    """Whether the omitted words raise the risk: `-f` after `git push`."""
    whole = assess((claim,))
    if whole.level != "high":
        return False
    short = Claim(action="run", resource=" ".join(kept), inside=True, words=tuple(kept))
    return not set(whole.reasons) <= set(assess((short,)).reasons)


OFTEN = 3
"""Equal answers before a rule is suggested: two may be chance."""
MOST_EXAMPLES = 5
_MOST_SUGGESTED = 10

PolicyOf = Callable[[Caller], Policy]


class PastCall(Protocol):
    """A past call, with or without an approval."""

    @property
    def tool(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def caller(self) -> Caller: ...
    @property
    def claims(self) -> tuple[Claim, ...]: ...


class PastApproval(PastCall, Protocol):
    """A past call with an approval."""

    @property
    def answer(self) -> AnswerKind | None: ...
    @property
    def by(self) -> Actor | None: ...
    @property
    def edited(self) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleStatistics:
    """Statistics of a rule over past calls."""

    prompts: int
    decided: int
    """Number of prompts that would have been decided without a person."""
    calls: int
    matches: int
    """Number of calls of which it would decide at least one claim."""
    examples: tuple[str, ...]
    """Titles of some of those calls."""


def measure_rule(
    rule: Rule,
    prompts: Sequence[PastApproval],
    calls: Sequence[PastCall],
    policy_with: Callable[[Caller, Rule], Policy],
) -> RuleStatistics:
    """Apply a rule to past calls; `policy_with` gives the policy for a caller with the rule added."""
    policies = _cache_policies(lambda caller: policy_with(caller, rule))
    matched = [call for call in calls if _has_decided(rule, call, policies)]
    matched_prompts = [prompt for prompt in prompts if _has_decided(rule, prompt, policies)]
    decided = [each for each in matched_prompts if _decide(each, policies).effect != "ask"]
    titles = dict.fromkeys(each.title for each in (*matched_prompts, *matched))
    return RuleStatistics(
        prompts=len(prompts),
        decided=len(decided),
        calls=len(calls),
        matches=len(matched),
        examples=tuple(titles)[:MOST_EXAMPLES],
    )


def suggest_from_history(prompts: Sequence[PastApproval], policy_of: PolicyOf) -> list[SuggestedRule]:
    """Suggest rules for prompts that a person always answered alike, most frequent first."""
    policies = _cache_policies(policy_of)
    tallies: dict[Rule, _Tally] = {}
    for prompt in prompts:
        if prompt.answer is None or prompt.edited or (prompt.by is not None and prompt.by.rule is not None):
            continue
        for each in suggest_rules(prompt.tool, prompt.claims, prompt.caller, policies(prompt.caller)):
            tallies.setdefault(each.rule, _Tally(each)).answers.append(prompt.answer)
    agreed = [tally for tally in tallies.values() if tally.agreed]
    agreed.sort(key=lambda tally: -len(tally.answers))
    return [tally.suggested for tally in agreed[:_MOST_SUGGESTED]]


@dataclass(slots=True)
class _Tally:
    """Past answers to prompts that one rule would have decided."""

    first: SuggestedRule
    answers: list[AnswerKind] = field(default_factory=list[AnswerKind])

    @property
    def agreed(self) -> bool:
        return len(self.answers) >= OFTEN and len(set(self.answers)) == 1

    @property
    def suggested(self) -> SuggestedRule:
        rule = replace(self.first.rule, effect=self.answers[0])
        return replace(self.first, rule=rule, claims=(), answers=len(self.answers))


def _decide(call: PastCall, policies: PolicyOf) -> Decision:
    return policies(call.caller).decide(call.tool, call.claims, call.caller)


def _has_decided(rule: Rule, call: PastCall, policies: PolicyOf) -> bool:
    return rule.id in _decide(call, policies).rules


def _cache_policies(policy_of: PolicyOf) -> PolicyOf:
    """Cache one policy per workspace. Callers can share it: session rules are matched per caller in `decide`."""
    made: dict[str | None, Policy] = {}

    def policies(caller: Caller) -> Policy:
        if caller.workspace not in made:
            made[caller.workspace] = policy_of(caller)
        return made[caller.workspace]

    return policies
