"""What the past says: how many questions a rule would have spared, and which answers a person keeps giving."""

from dataclasses import replace
from pathlib import Path

from tests.gate.rules.test_rules import Desk, desk
from tests.support.policy_values import RUN, runs

from handrail.gate.rules.suggestions import measure_rule, suggest_from_history
from handrail.store.approvals import PromptRecord
from handrail.store.events import ApprovalAnswered, ApprovalOpened, CallOpened
from handrail.store.records import open_records
from handrail.store.values import AnswerKind

Question = tuple[str, AnswerKind | None]
"""A command, and what the person said."""


def often(line: str, answer: AnswerKind, times: int) -> list[Question]:
    return [(line, answer)] * times


async def asked(path: Path, at: Desk, *questions: Question, by: str = "ann") -> list[PromptRecord]:
    """Put these questions on record, with their answers, and read them as a rule would meet them."""
    start = at.journal.head
    for place, (line, answer) in enumerate(questions, start):
        call, approval = f"c{place}", f"a{place}"
        at.journal.append(
            CallOpened(call=call, tool=RUN, title=line, input={"command": line}, caller=at.caller)
        )
        opened = ApprovalOpened(
            approval=approval,
            call=call,
            digest="0" * 64,
            claims=tuple(runs(line)),
            risk="medium",
            reasons=(),
            why="",
            preview=None,
        )
        seq = at.journal.append(opened)
        if answer is not None:
            seq = at.journal.append(
                ApprovalAnswered(approval=approval, call=call, answer=answer, reason="", by=by)
            )
        await at.journal.committed(seq)
    async with open_records(path / "handrail.db") as records:
        return await records.approvals.recent()


async def test_a_rule_is_held_against_the_questions_of_the_past(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        prompts = await asked(
            tmp_path,
            at,
            ("git push", "allow"),
            ("git push -f", "deny"),
            ("git push && npm publish", "allow"),
            ("git push > log", None),
            ("npm test", "allow"),
        )
        rule = at.rules.build_rule(command="git push", workspace=str(at.root))
        found = measure_rule(rule, prompts, prompts, at.rules.policy)
        assert (found.prompts, found.decided) == (5, 2)
        assert (found.calls, found.matches) == (5, 4)
        assert set(found.examples) == {"git push", "git push -f", "git push && npm publish", "git push > log"}


async def test_a_rule_that_refuses_would_have_decided_whatever_it_is_part_of(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        prompts = await asked(tmp_path, at, ("git push > log", None), ("make", "allow"))
        rule = at.rules.build_rule(effect="deny", command="git push", workspace=str(at.root))
        assert measure_rule(rule, prompts, (), at.rules.policy).decided == 1


async def test_a_rule_of_the_user_would_have_decided_nothing_in_an_untrusted_folder(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        prompts = await asked(tmp_path, at, ("make", "allow"))
        rule = at.rules.build_rule(command="make", scope="user")
        assert measure_rule(rule, prompts, (), at.rules.policy).decided == 0
        await at.trust()
        assert measure_rule(rule, prompts, (), at.rules.policy).decided == 1


async def test_what_is_answered_alike_three_times_is_suggested(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        prompts = await asked(
            tmp_path,
            at,
            ("npm test a", "allow"),
            *often("npm test b", "allow", 3),
            *often("curl evil.org", "deny", 3),
            *often("make", "allow", 2),
            *often("git push", "allow", 3),
            ("git push", "deny"),
        )
        found = suggest_from_history(prompts, at.rules.policy)
        assert [(each.rule.effect, each.rule.command, each.answers) for each in found] == [
            ("allow", "npm test", 4),
            ("deny", "curl evil.org $", 3),
        ]


async def test_what_a_rule_decides_by_now_is_not_suggested_again(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        prompts = await asked(tmp_path, at, *often("npm test", "allow", 3))
        assert len(suggest_from_history(prompts, at.rules.policy)) == 1
        await at.add(command="npm")
        assert suggest_from_history(prompts, at.rules.policy) == []


async def test_what_a_rule_answered_is_no_answer_of_a_person(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        prompts = await asked(tmp_path, at, *often("npm test", "allow", 3), by="rule r1")
        assert suggest_from_history(prompts, at.rules.policy) == []


async def test_what_a_person_changed_before_they_allowed_it_says_nothing_of_what_was_asked(
    tmp_path: Path,
) -> None:
    async with desk(tmp_path) as at:
        prompts = await asked(tmp_path, at, *often("npm test", "allow", 3))
        assert suggest_from_history([*prompts[:2], replace(prompts[2], edited=True)], at.rules.policy) == []
