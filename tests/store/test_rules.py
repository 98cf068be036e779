"""What the store says of rules, of how often they were used, and of trusted folders."""

import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest
from tests.support.sample_events import (
    JournalFiles,
    approval_allowed,
    approval_opened,
    call_opened,
    call_settled,
    call_started,
    records_after,
)

from handrail.errors import BadRecord
from handrail.store.events import Event, FolderDistrusted, FolderTrusted, RuleAdded, RuleRemoved
from handrail.store.rules import FolderRecord, RuleUse
from handrail.store.values import Rule

pytestmark = pytest.mark.anyio

FULL = Rule(
    id="r1",
    effect="deny",
    tool="execute_command",
    command="git push",
    path="src/**",
    host="*.example.org",
    server="files",
    agent="claude*",
    scope="project",
    workspace="/w",
    session="claude-code@/w",
    expires_at=99,
    source="answer a1",
    note="never",
    match=("git push -f",),
    not_match=("git pull",),
)


def added(id: str, by: str = "ann") -> RuleAdded:
    return RuleAdded(rule=Rule(id=id, effect="allow", command="ls"), by=by)


def by_rule(call: str, *rules: str) -> Event:
    return replace(call_started(call), allowed_by=f"rule {rules[0]}", rules=rules)


def denied_by(call: str, rule: str) -> Event:
    return replace(call_settled(call, "denied"), by=f"rule {rule}")


def answered_by(approval: str, call: str, rule: str) -> Event:
    return replace(approval_allowed(approval, call), by=f"rule {rule}")


async def hits(kept: JournalFiles, *story: Event) -> dict[str, int]:
    async with records_after(kept, *story) as records:
        return {rule: use.hits for rule, use in (await records.rules.uses()).items()}


async def test_a_rule_is_kept_whole_with_who_made_it_and_who_removed_it(kept: JournalFiles) -> None:
    story: list[Event] = [
        RuleAdded(rule=FULL, by="ann", approval="a1"),
        added("r2"),
        RuleRemoved(rule="r1", by="bob"),
    ]
    async with records_after(kept, *story) as records:
        first, second = await records.rules.all()
        assert first.rule == FULL
        assert (first.by, first.approval, first.removed_by) == ("ann", "a1", "bob")
        assert first.removed_at is not None
        assert first.removed_at >= first.added_at > 0
        assert (second.rule.id, second.removed_at, second.approval) == ("r2", None, None)


async def test_only_a_removed_rule_can_be_added_again(kept: JournalFiles) -> None:
    story: list[Event] = [
        *(added("r1"), added("r1", by="eve"), RuleRemoved(rule="nothing", by="ann")),
        *(added("r2"), RuleRemoved(rule="r2", by="ann"), added("r2", by="bob")),
    ]
    async with records_after(kept, *story) as records:
        assert [(record.rule.id, record.by, record.removed_at) for record in await records.rules.all()] == [
            *(("r1", "ann", None), ("r2", "bob", None)),
        ]


async def test_every_rule_that_had_a_part_in_a_start_is_used_once(kept: JournalFiles) -> None:
    story = [call_opened("c1"), by_rule("c1", "r1", "r2", "r1"), call_opened("c2"), by_rule("c2", "r2")]
    async with records_after(kept, *story) as records:
        uses = await records.rules.uses()
        assert {rule: use.hits for rule, use in uses.items()} == {"r1": 1, "r2": 2}
        call = await records.calls.get("c2")
        assert call is not None
        assert uses["r2"] == RuleUse(2, call.call.started_at or 0, "c2")


async def test_a_denial_by_a_rule_is_a_use_and_one_by_a_person_is_not(kept: JournalFiles) -> None:
    story = [call_opened("c1"), denied_by("c1", "r1"), call_opened("c2"), call_settled("c2", "denied")]
    assert await hits(kept, *story) == {"r1": 1}


async def test_an_ending_that_names_a_rule_but_is_no_denial_is_no_use(kept: JournalFiles) -> None:
    assert await hits(kept, call_opened("c1"), replace(call_settled("c1"), by="rule r1")) == {}


async def test_a_rule_that_answers_open_questions_is_used_once_by_each(kept: JournalFiles) -> None:
    questions = [fact for n in "123" for fact in (call_opened(f"c{n}"), approval_opened(f"a{n}", f"c{n}"))]
    answers = [answered_by(f"a{n}", f"c{n}", "r1") for n in "123"]
    ends = [by_rule("c1", "r1"), denied_by("c2", "r1")]  # the third is cancelled before it starts
    assert await hits(kept, *questions, *answers, *ends) == {"r1": 3}


async def test_a_rule_that_comes_too_late_to_answer_is_not_used(kept: JournalFiles) -> None:
    story = [
        call_opened(),
        approval_opened(),
        approval_allowed(),
        answered_by("a1", "c1", "r1"),
        call_started(),
        call_settled(),
    ]
    assert await hits(kept, *story) == {}


async def test_a_second_start_or_end_of_a_call_counts_for_nothing(kept: JournalFiles) -> None:
    story = [call_opened(), by_rule("c1", "r1"), by_rule("c1", "r1"), call_settled(), denied_by("c1", "r2")]
    assert await hits(kept, *story, by_rule("nobody", "r3")) == {"r1": 1}


async def test_a_trusted_folder_is_known_as_it_was_trusted_last_until_it_is_not(kept: JournalFiles) -> None:
    story: list[Event] = [
        FolderTrusted(folder="/w", config=None, by="ann"),
        FolderTrusted(folder="/w", config="ab", by="bob"),
        FolderTrusted(folder="/v", config=None, by="ann"),
        FolderDistrusted(folder="/v", by="ann"),
        FolderDistrusted(folder="/u", by="ann"),
    ]
    async with records_after(kept, *story) as records:
        (folder,) = await records.rules.folders()
        assert folder == FolderRecord(folder="/w", config="ab", by="bob", trusted_at=folder.trusted_at)
        assert folder.trusted_at > 0


async def test_a_row_that_cannot_be_read_is_named(kept: JournalFiles) -> None:
    async with records_after(kept, RuleAdded(rule=FULL, by="person", approval=None)) as records:
        with closing(sqlite3.connect(kept.path)) as other:
            other.execute("UPDATE rules SET rule = '{'")
            other.commit()
        with pytest.raises(
            BadRecord, match=r"a row in `rules` that cannot be read \(id 'r1': ValidationError\)"
        ):
            await records.rules.all()
