"""Rules that somebody may want, made from a question.

Owns which rule would have answered it and is general enough to be of use. Suggests nothing for what no rule can allow,
and adds nothing: a person takes a suggestion, changes it, or leaves it.

How general a rule about a command may be: `git push`, `npm run test`, `pytest`, or these very words.

What the past says about rules: how many questions one would have spared, and which answers repeat.
"""

import posixpath
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from handrail.gate.risk import assess
from handrail.gate.rules.matching import FILES, Matcher, commonly
from handrail.gate.rules.patterns import BadPattern, spell, spell_path
from handrail.gate.rules.policy import FLOORS, HIGH, UNTRUSTED, Decision, Policy, in_words
from handrail.store.actor import Actor
from handrail.store.values import AnswerKind, Caller, Claim, Effect, Rule

MOST = 12
"""Suggestions for one question; a card has no room for more."""
_OPEN = frozenset({"default policy", UNTRUSTED.name, HIGH.name})
"""Verdicts that a rule would have replaced."""
_FLOORS = frozenset(each.name for each in FLOORS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggested:
    """A rule, not made yet."""

    rule: Rule
    """Without an id."""
    words: str
    claims: tuple[int, ...] = ()
    """Those of the question that it would decide."""
    answers: int = 0
    """How often a person already said so, one by one."""


def suggest(
    tool: str, claims: Sequence[Claim], caller: Caller, policy: Policy, effect: Effect = "allow"
) -> list[Suggested]:
    """What would decide a question like this one the next time; as few rules as possible, general ones."""
    verdicts = policy.decide(tool, claims, caller).verdicts
    if any(each.rule in _FLOORS for each in verdicts):
        return []  # whatever is allowed of it, the question would be put again
    undecided = [each.claim for each in verdicts if each.rule in _OPEN]
    found: list[Suggested] = []
    covered: set[int] = set()
    for place in undecided:
        if place in covered or len(found) == MOST:
            continue
        for rule in _rules(tool, claims[place], policy, effect):
            fits = _fitting(rule, tool, claims, caller, policy, undecided)
            if place in fits:
                covered.update(fits)
                found.append(Suggested(rule=rule, words=in_words(rule), claims=fits))
    return found


def _fitting(
    rule: Rule, tool: str, claims: Sequence[Claim], caller: Caller, policy: Policy, among: Sequence[int]
) -> tuple[int, ...]:
    """The claims it would decide; none when what it is made of cannot be written as a pattern."""
    try:
        matcher = Matcher(rule, policy.root, policy.home)
    except BadPattern:
        return ()
    return tuple(place for place in among if matcher.matches(tool, claims[place], caller))


def _rules(tool: str, claim: Claim, policy: Policy, effect: Effect) -> Iterator[Rule]:
    if policy.root is None:
        return
    if claim.action == "run" and claim.words:
        if (command := pattern_of(claim)) is not None:
            yield _rule(effect, policy.root, tool=commonly(tool, claim.action), command=command)
    elif claim.action == "connect":
        yield _rule(effect, policy.root, host=claim.resource)
    elif claim.action in FILES:
        try:
            path = _path(claim, policy.root)
        except BadPattern:
            return
        # Who lets one tool write here means the others too; to delete, one must say so.
        yield _rule(effect, policy.root, tool=tool if claim.action == "delete" else None, path=path)


def _path(claim: Claim, root: str) -> str:
    """The folder it lies in, with all below; or itself, where that folder would be too much."""
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
) -> Rule:
    return Rule(
        id="",
        effect=effect,
        tool=tool,
        command=command,
        path=path,
        host=host,
        scope="project",
        workspace=workspace,
    )


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


SUBCOMMANDS = _names("""
    apt apt-get asdf brew bun bundle bunx cargo composer conda dart deno docker dotnet flutter gh git go gradle hatch helm hg
    just kubectl make mise mix mvn nix npm npx nx pdm pip pip3 pipenv pipx pnpm podman poetry pyenv rake rbenv rustup
    swift systemctl terraform turbo uv uvx yarn
""")
"""Programs whose first word says what they do."""
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
    "pnpm": _names("dlx exec run"),
    "poetry": _names("run"),
    "pyenv": _names("exec"),
    "rbenv": _names("exec"),
    "rustup": _names("run"),
    "uv": _names("pip run tool"),
    "yarn": _names("dlx exec run workspace"),
}
"""Where the word after that does; without it, nobody knows what would be allowed."""
INTERPRETERS = _names("lua node perl php python python3 ruby Rscript")
DELETES = _names("rm rmdir shred truncate unlink")
WHOLE = DELETES | _names("""
    awk chgrp chmod chown cp curl dd find gawk install kill killall ln mv pkill psql rsync scp sed sqlite3 ssh tar tee
    wget zip
""")
"""Whose other words can mean anything: only exactly these words are suggested."""
_ROOTS = frozenset(
    (".", "..", "/", "~", "*", ".*", "./", "../", "./*", "/*", "~/", "~/*", "--no-preserve-root")
)


def pattern_of(claim: Claim) -> str | None:
    """A pattern that covers this command and others like it; None when none should be suggested."""
    words = claim.words
    if words[0] in DELETES and (not claim.inside or not _ROOTS.isdisjoint(words[1:])):
        return None
    count = _telling(words)
    if count is None or _adds_harm(claim, words[:count]):
        return spell(words, ends=True)
    return spell(words[:count])


def _telling(words: Sequence[str]) -> int | None:
    """How many of the words say what is done; None when all of them do."""
    program, first, second = words[0], *(*words[1:3], "", "")[:2]
    if program in WHOLE:
        return None
    if program in INTERPRETERS:
        if first == "-m" and second:
            return 3
        return 2 if first and not first.startswith("-") else None
    if program not in SUBCOMMANDS:
        return 1
    if first in DEEPER.get(program, ()):
        return 3 if second and not second.startswith("-") else None
    return 2 if first and not first.startswith("-") else None


def _adds_harm(claim: Claim, kept: Sequence[str]) -> bool:
    """Whether the words that are left out make it worse: `-f` after `git push`."""
    whole = assess((claim,))
    if whole.level != "high":
        return False
    short = Claim(action="run", resource=" ".join(kept), inside=True, words=tuple(kept))
    return not set(whole.reasons) <= set(assess((short,)).reasons)


OFTEN = 3
"""Answers that are alike before a rule is suggested: two may be chance."""
MOST_EXAMPLES = 5
_MOST_SUGGESTED = 10

PolicyOf = Callable[[Caller], Policy]


class Asked(Protocol):
    """A call of the past: a question, or one that was never put."""

    @property
    def tool(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def caller(self) -> Caller: ...
    @property
    def claims(self) -> tuple[Claim, ...]: ...


class Prompt(Asked, Protocol):
    """A question of the past."""

    @property
    def answer(self) -> AnswerKind | None: ...
    @property
    def by(self) -> Actor | None: ...
    @property
    def edited(self) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What a rule would have done."""

    prompts: int
    decided: int
    """Of the questions, how many nobody would have been asked."""
    calls: int
    matches: int
    """Of the calls, how many it is about, in whole or in part."""
    examples: tuple[str, ...]
    """Some of what it is about."""


def judge(
    rule: Rule,
    prompts: Sequence[Prompt],
    calls: Sequence[Asked],
    policy_with: Callable[[Caller, Rule], Policy],
) -> Judged:
    """Hold a rule against the past; `policy_with` is what would hold for a caller if the rule were there."""
    policies = _once(lambda caller: policy_with(caller, rule))
    matched = [call for call in calls if _had_a_part(rule, call, policies)]
    asked = [prompt for prompt in prompts if _had_a_part(rule, prompt, policies)]
    decided = [each for each in asked if _decide(each, policies).effect != "ask"]
    titles = dict.fromkeys(each.title for each in (*asked, *matched))
    return Judged(
        prompts=len(prompts),
        decided=len(decided),
        calls=len(calls),
        matches=len(matched),
        examples=tuple(titles)[:MOST_EXAMPLES],
    )


def repeated(prompts: Sequence[Prompt], policy_of: PolicyOf) -> list[Suggested]:
    """Rules for what a person keeps answering alike, most often first; none for what was also answered otherwise."""
    policies = _once(policy_of)
    told: dict[Rule, _Told] = {}
    for prompt in prompts:
        if prompt.answer is None or prompt.edited or (prompt.by is not None and prompt.by.rule is not None):
            continue
        for each in suggest(prompt.tool, prompt.claims, prompt.caller, policies(prompt.caller)):
            told.setdefault(each.rule, _Told(each)).answers.append(prompt.answer)
    found = [each for each in told.values() if each.agreed]
    found.sort(key=lambda each: -len(each.answers))
    return [each.suggested for each in found[:_MOST_SUGGESTED]]


@dataclass(slots=True)
class _Told:
    """What people said to questions that one rule would have answered."""

    first: Suggested
    answers: list[AnswerKind] = field(default_factory=list[AnswerKind])

    @property
    def agreed(self) -> bool:
        return len(self.answers) >= OFTEN and len(set(self.answers)) == 1

    @property
    def suggested(self) -> Suggested:
        rule = replace(self.first.rule, effect=self.answers[0])
        return replace(self.first, rule=rule, claims=(), answers=len(self.answers))


def _decide(asked: Asked, policies: PolicyOf) -> Decision:
    return policies(asked.caller).decide(asked.tool, asked.claims, asked.caller)


def _had_a_part(rule: Rule, asked: Asked, policies: PolicyOf) -> bool:
    return rule.id in _decide(asked, policies).rules


def _once(policy_of: PolicyOf) -> PolicyOf:
    """The same for every caller of a folder, made once: a session's rules are told apart when they decide."""
    made: dict[str | None, Policy] = {}

    def policies(caller: Caller) -> Policy:
        if caller.workspace not in made:
            made[caller.workspace] = policy_of(caller)
        return made[caller.workspace]

    return policies
