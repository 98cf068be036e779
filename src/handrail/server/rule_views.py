"""Domain into wire: how rules, folders, undos and what would be decided look to people's programs.

Translations only: what holds, and why, is the gate's to say.
"""

from collections.abc import Sequence

from handrail.gate.risk import Assessment, Weight
from handrail.gate.rules.explanation import Explained, Listed, Step
from handrail.gate.rules.suggestions import Judged, Suggested
from handrail.gate.rules.trust import Folder
from handrail.gate.tool import UndoPlan
from handrail.server.rule_wire import (
    FolderView,
    PartView,
    ProposedView,
    RuleBody,
    RuleView,
    StepView,
    Suggestion,
    TestView,
    UndoFile,
    UndoView,
)
from handrail.store.records import FolderRecord, RuleRecord, Use
from handrail.store.value import Claim, Rule, Verdict


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
