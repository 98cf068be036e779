"""The wire about rules: what holds, what would be decided and why, which folders are trusted, and what can be undone.

Owns these JSON shapes of `/api`. It does not know routes, nor how anything is decided (gate/).

Domain into wire: how rules, folders, undos and what would be decided look to people's programs.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from handrail.gate.risk import Assessment, Weight
from handrail.gate.rules.explanation import Explained, Listed, Step
from handrail.gate.rules.suggestions import Judged, Suggested
from handrail.gate.rules.trust import Folder
from handrail.gate.tool import UndoPlan
from handrail.server.api.models import Wire
from handrail.store.rules import FolderRecord, RuleRecord, Use
from handrail.store.values import Claim, Effect, Json, Risk, Rule, Scope, Verdict

Pattern = Annotated[str, Field(min_length=1, max_length=4000)]
Name = Annotated[str, Field(min_length=1, max_length=200)]


class RuleBody(Wire):
    """A rule as a person writes it: about a command, a path or a host, or all a tool does."""

    effect: Effect = "allow"
    tool: Name | None = None
    pattern: Pattern | None = None
    """A command or a path, whichever the tool takes."""
    command: Pattern | None = None
    path: Pattern | None = None
    host: Pattern | None = None
    server: Name | None = None
    agent: Name | None = None
    scope: Scope = "project"
    workspace: Annotated[str, Field(max_length=4096)] | None = None
    """Of scope project and session; that of the question, when it is made from one."""
    expires_in: Annotated[int, Field(gt=0, le=315_360_000)] | None = None
    """Seconds from now."""
    note: Annotated[str, Field(max_length=1000)] = ""
    match: Annotated[tuple[Pattern, ...], Field(max_length=50)] = ()
    not_match: Annotated[tuple[Pattern, ...], Field(max_length=50)] = ()


class Suggestion(Wire):
    """A rule somebody may want."""

    rule: RuleBody
    words: str
    """What it allows, in words: `git status …` in this project."""
    claims: tuple[int, ...] = ()
    """Those of the question that it decides."""
    answers: int = 0
    """How often a person already said so, one by one."""


class RuleView(Wire):
    """A rule in force, or one that is built in."""

    rule: Rule
    words: str
    builtin: bool
    removable: bool
    """False of built-in ones and of those in files."""
    in_force: bool
    """False of what an untrusted folder's file allows, and of expired ones."""
    says: str
    """Why it is not in force; empty when it is."""
    hits: int
    last_used_at: int | None
    last_call: str | None
    added_at: int | None
    added_by: str | None


class FolderView(Wire):
    """A workspace and whether it is trusted."""

    folder: str
    trusted: bool
    trusted_at: int | None
    by: str | None
    config: str | None
    """SHA-256 of its `.handrail/config.toml`; None where it has none."""
    problem: str
    """What is wrong with that file, or that it changed since it was trusted."""


class RulesView(Wire):
    """All there is, in the order of evaluation."""

    rules: list[RuleView]
    suggestions: list[Suggestion]
    folders: list[FolderView]
    default_policy: Effect
    human_in_the_loop: bool


class FolderBody(Wire):
    """A folder to trust, or no longer."""

    folder: Annotated[str, Field(min_length=1, max_length=4096)]
    config: str | None = None
    """SHA-256 of its file as the person saw it."""


class TestBody(Wire):
    """A call that nobody makes: what would be decided?"""

    __test__ = False
    command: Annotated[str | None, Field(max_length=100_000)] = None
    """Short for execute_command with this command."""
    tool: Name | None = None
    input: Json | None = None
    workspace: Annotated[str, Field(max_length=4096)] | None = None
    agent: Name | None = None
    rule: RuleBody | None = None
    """As if this rule were there too."""


class PartView(Wire):
    """One claim and what was decided about it."""

    text: str
    action: str
    effect: Effect
    rule: str
    why: str
    opaque: str
    inside: bool
    protected: bool
    risk: Risk
    """Of this part by itself."""
    reasons: tuple[str, ...]


class StepView(Wire):
    """One step of the evaluation, in order."""

    name: str
    """A rule's id, or the name of a built-in one."""
    words: str
    effect: Effect | None
    """None when it does not apply."""
    parts: tuple[int, ...]
    """The parts it applies to."""
    decides: bool


class TestView(Wire):
    """What would be decided, by what, and all that was looked at."""

    __test__ = False
    effect: Effect
    rule: str
    why: str
    parts: list[PartView]
    chain: list[StepView]
    risk: Risk
    reasons: tuple[str, ...]
    trusted: bool


class ProposedBody(Wire):
    """A rule that is thought about."""

    rule: RuleBody
    approval: Name | None = None
    """The question it would be made from; it then is for the caller of that one, as with an answer."""


class ProposedView(Wire):
    """What a rule would do, judged by the past."""

    problem: str
    """Why it cannot be made; empty when it can."""
    words: str
    prompts: int
    """Questions of late."""
    decided: int
    """Of those, how many it would have answered."""
    calls: int
    matches: int
    examples: list[str]
    """Some of what it matches."""


class UndoFile(Wire):
    """One file of an undo."""

    path: str
    does: Literal["restore", "remove", "recreate", "nothing", "refuse"]
    says: str
    diff: str
    added: int
    removed: int


class UndoView(Wire):
    """What an undo would do, or did."""

    what: str
    of: Literal["call", "operation", "thread", "undo"]
    title: str
    digest: str
    """Of what would be done; an undo that would do something else is refused."""
    files: list[UndoFile]
    not_covered: list[str]
    """What cannot be undone, in words."""
    undo: str | None = None
    """The id of the undo once it is done; it can be undone itself."""


class UndoBody(Wire):
    """Do what was shown."""

    digest: Annotated[str, Field(min_length=64, max_length=64)]


def rule_view(listed: Listed, use: Use | None, record: RuleRecord | None) -> RuleView:
    return RuleView(
        rule=listed.rule,
        words=listed.words,
        builtin=listed.builtin,
        removable=listed.removable,
        in_force=listed.in_force,
        says=listed.says,
        hits=use.hits if use else 0,
        last_used_at=use.last_used_at if use else None,
        last_call=use.last_call if use else None,
        added_at=record.added_at if record else None,
        added_by=record.by if record else None,
    )


def suggestion_view(suggested: Suggested) -> Suggestion:
    return Suggestion(
        rule=_body(suggested.rule),
        words=suggested.words,
        claims=suggested.claims,
        answers=suggested.answers,
    )


def unfit(problem: str) -> ProposedView:
    """A rule that cannot be made."""
    return ProposedView(problem=problem, words="", prompts=0, decided=0, calls=0, matches=0, examples=[])


def proposed_view(words: str, judged: Judged) -> ProposedView:
    return ProposedView(
        problem="",
        words=words,
        prompts=judged.prompts,
        decided=judged.decided,
        calls=judged.calls,
        matches=judged.matches,
        examples=list(judged.examples),
    )


def test_view(explained: Explained, claims: Sequence[Claim], weight: Weight, trusted: bool) -> TestView:
    decision = explained.decision
    return TestView(
        effect=decision.effect,
        rule=decision.rule,
        why=decision.why,
        parts=[
            _part(claims[verdict.claim], verdict, weight.parts[verdict.claim])
            for verdict in decision.verdicts
        ],
        chain=[_step(step) for step in explained.chain],
        risk=weight.level,
        reasons=weight.reasons,
        trusted=trusted,
    )


def folder_view(folder: Folder, record: FolderRecord | None) -> FolderView:
    return FolderView(
        folder=folder.folder,
        trusted=folder.trusted,
        trusted_at=record.trusted_at if record else None,
        by=record.by if record else None,
        config=folder.config,
        problem=folder.problem,
    )


def undo_view(plan: UndoPlan) -> UndoView:
    return UndoView(
        what=plan.what,
        of=plan.of,
        title=plan.title,
        digest=plan.digest,
        files=[
            UndoFile(
                path=file.path,
                does=file.does,
                says=file.says,
                diff=file.diff,
                added=file.added,
                removed=file.removed,
            )
            for file in plan.files
        ],
        not_covered=list(plan.not_covered),
        undo=plan.undo,
    )


def _body(rule: Rule) -> RuleBody:
    """A rule that is not made yet, as a person would write it."""
    return RuleBody(
        effect=rule.effect,
        tool=rule.tool,
        command=rule.command,
        path=rule.path,
        host=rule.host,
        server=rule.server,
        agent=rule.agent,
        scope=rule.scope,
        workspace=rule.workspace,
    )


def _part(claim: Claim, verdict: Verdict, risk: Assessment) -> PartView:
    return PartView(
        text=claim.resource,
        action=claim.action,
        effect=verdict.effect,
        rule=verdict.rule,
        why=verdict.why,
        opaque=claim.opaque,
        inside=claim.inside,
        protected=claim.protected,
        risk=risk.level,
        reasons=risk.reasons,
    )


def _step(step: Step) -> StepView:
    return StepView(
        name=step.name, words=step.words, effect=step.effect, parts=step.parts, decides=step.decides
    )
