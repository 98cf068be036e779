"""JSON models of rules, rule tests, trusted folders and undo, and the conversion to them."""

import os.path
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from handrail.gate.risk import Assessment, CallAssessment
from handrail.gate.rules.explanation import Explanation, ListedRule, Step
from handrail.gate.rules.suggestions import RuleStatistics, SuggestedRule
from handrail.gate.rules.trust import FolderTrust
from handrail.gate.tool import UndoPlan
from handrail.server.api.models import Wire
from handrail.store.rules import FolderRecord, RuleRecord, RuleUse
from handrail.store.values import Claim, Effect, Json, Risk, Rule, Scope, Verdict

Pattern = Annotated[str, Field(min_length=1, max_length=4000)]
Name = Annotated[str, Field(min_length=1, max_length=200)]


class RuleBody(Wire):
    """A rule as a person writes it: for a command, a path, a host, or every use of a tool."""

    effect: Effect = "allow"
    tool: Name | None = None
    pattern: Pattern | None = None
    """A command or a path, depending on the tool."""
    command: Pattern | None = None
    path: Pattern | None = None
    host: Pattern | None = None
    server: Name | None = None
    arguments: Annotated[dict[Name, Annotated[str, Field(max_length=4000)]], Field(max_length=60)] = Field(
        default_factory=dict
    )
    """Arguments of a call of an MCP server, with a glob for each."""
    agent: Name | None = None
    scope: Scope = "project"
    workspace: Annotated[str, Field(max_length=4096)] | None = None
    """For the scopes project and session. Defaults to that of the approval it is made from."""
    expires_in: Annotated[int, Field(gt=0, le=315_360_000)] | None = None
    """Seconds from now."""
    note: Annotated[str, Field(max_length=1000)] = ""
    match: Annotated[tuple[Pattern, ...], Field(max_length=50)] = ()
    not_match: Annotated[tuple[Pattern, ...], Field(max_length=50)] = ()


class RuleSwitchBody(Wire):
    """Switch a rule on or off."""

    enabled: bool


class RulePlaceBody(Wire):
    """A new place among the rules of the same effect and scope."""

    before: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """The rule that it stands before; None puts it last."""


class Suggestion(Wire):
    """A suggested rule."""

    rule: RuleBody
    words: str
    """Description of what it allows: `git status …` in this project."""
    claims: tuple[int, ...] = ()
    """Indexes of the approval's claims that it decides."""
    answers: int = 0
    """How many single answers of a person it would have replaced."""


class RuleView(Wire):
    """A rule in the list, built-in rules included."""

    rule: Rule
    words: str
    builtin: bool
    removable: bool
    """False for built-in rules and rules from files."""
    in_force: bool
    """False for expired rules, and for allow rules from an untrusted folder's file."""
    says: str
    """Why it is not in force; else empty."""
    hits: int
    last_used_at: int | None
    last_call: str | None
    added_at: int | None
    added_by: str | None


class FolderView(Wire):
    """A workspace folder, and whether it is trusted."""

    folder: str
    trusted: bool
    trusted_at: int | None
    by: str | None
    config: str | None
    """SHA-256 of its `.handrail/config.toml`; None if it has no such file."""
    exists: bool
    """False if the folder was deleted or moved."""
    problem: str
    """An error in that file, or a notice that it changed since it was trusted."""


class RulesView(Wire):
    """All rules in order of evaluation, suggestions and folders."""

    rules: list[RuleView]
    suggestions: list[Suggestion]
    folders: list[FolderView]
    default_policy: Effect
    human_in_the_loop: bool


class FolderBody(Wire):
    """A folder to trust or distrust."""

    folder: Annotated[str, Field(min_length=1, max_length=4096)]
    config: str | None = None
    """SHA-256 of its file as shown to the person."""


class TestBody(Wire):
    """A hypothetical call to test the rules with."""

    __test__ = False
    command: Annotated[str | None, Field(max_length=100_000)] = None
    """Shorthand for execute_command with this command."""
    tool: Name | None = None
    input: Json | None = None
    workspace: Annotated[str, Field(max_length=4096)] | None = None
    agent: Name | None = None
    rule: RuleBody | None = None
    """An extra rule to include in the test."""


class PartView(Wire):
    """One claim and its decision."""

    text: str
    action: str
    effect: Effect
    rule: str
    why: str
    opaque: str
    inside: bool
    protected: bool
    risk: Risk
    """The risk of this claim alone."""
    reasons: tuple[str, ...]


class StepView(Wire):
    """One step of the evaluation, in order."""

    name: str
    """A rule's id, or the name of a built-in rule."""
    words: str
    effect: Effect | None
    """None if it does not apply."""
    parts: tuple[int, ...]
    """Indexes of the parts it applies to."""
    decides: bool


class TestView(Wire):
    """Result of a rule test: the decision, and every step of the evaluation."""

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
    """A rule to evaluate against past calls, without adding it."""

    rule: RuleBody
    approval: Name | None = None
    """The approval it would be made from; its caller then supplies the defaults, as with an answer."""


class ProposedView(Wire):
    """Which past approvals and calls a rule would have decided."""

    problem: str
    """Why the rule is invalid; else empty."""
    words: str
    prompts: int
    """Recent approvals."""
    decided: int
    """How many of them the rule would have answered."""
    calls: int
    matches: int
    examples: list[str]
    """Some of the matching calls."""


class UndoFile(Wire):
    """One file of an undo."""

    path: str
    does: Literal["restore", "remove", "recreate", "nothing", "refuse"]
    says: str
    diff: str
    added: int
    removed: int


class UndoView(Wire):
    """Preview or result of an undo."""

    what: str
    of: Literal["call", "operation", "thread", "undo"]
    title: str
    digest: str
    """Digest of the planned changes. An undo with another plan is refused."""
    files: list[UndoFile]
    not_covered: list[str]
    """Descriptions of effects that cannot be undone."""
    undo: str | None = None
    """The id of the undo once it is done. An undo can be undone."""


class UndoBody(Wire):
    """Run the undo with this digest."""

    digest: Annotated[str, Field(min_length=64, max_length=64)]


def rule_view(listed: ListedRule, use: RuleUse | None, record: RuleRecord | None) -> RuleView:
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


def suggestion_view(suggested: SuggestedRule) -> Suggestion:
    return Suggestion(
        rule=_rule_body(suggested.rule),
        words=suggested.words,
        claims=suggested.claims,
        answers=suggested.answers,
    )


def invalid_rule_view(problem: str) -> ProposedView:
    """The view of an invalid rule."""
    return ProposedView(problem=problem, words="", prompts=0, decided=0, calls=0, matches=0, examples=[])


def proposed_view(words: str, judged: RuleStatistics) -> ProposedView:
    return ProposedView(
        problem="",
        words=words,
        prompts=judged.prompts,
        decided=judged.decided,
        calls=judged.calls,
        matches=judged.matches,
        examples=list(judged.examples),
    )


def test_view(
    explained: Explanation, claims: Sequence[Claim], weight: CallAssessment, trusted: bool
) -> TestView:
    decision = explained.decision
    return TestView(
        effect=decision.effect,
        rule=decision.rule,
        why=decision.why,
        parts=[
            _part_view(claims[verdict.claim], verdict, weight.parts[verdict.claim])
            for verdict in decision.verdicts
        ],
        chain=[_step_view(step) for step in explained.chain],
        risk=weight.level,
        reasons=weight.reasons,
        trusted=trusted,
    )


def folder_view(folder: FolderTrust, record: FolderRecord | None) -> FolderView:
    return FolderView(
        folder=folder.folder,
        trusted=folder.trusted,
        trusted_at=record.trusted_at if record else None,
        by=record.by if record else None,
        config=folder.config,
        exists=os.path.isdir(folder.folder),  # noqa: PTH112 - as it is named, not resolved
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


def _rule_body(rule: Rule) -> RuleBody:
    """A suggested rule as a request body."""
    return RuleBody(
        effect=rule.effect,
        tool=rule.tool,
        command=rule.command,
        path=rule.path,
        host=rule.host,
        server=rule.server,
        arguments=dict(rule.arguments),
        agent=rule.agent,
        scope=rule.scope,
        workspace=rule.workspace,
    )


def _part_view(claim: Claim, verdict: Verdict, risk: Assessment) -> PartView:
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


def _step_view(step: Step) -> StepView:
    return StepView(
        name=step.name, words=step.words, effect=step.effect, parts=step.parts, decides=step.decides
    )
