"""What the store says of approvals: how each ended, and what was asked before."""

import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest
from tests.support.sample_events import (
    WRITES,
    JournalFiles,
    approval_allowed,
    approval_opened,
    call_opened,
    call_settled,
    call_started,
    caller,
    records_after,
)

from handrail.store.approvals import ApprovalRecord
from handrail.store.events import ApprovalExpired, ApprovalWithdrawn, Event
from handrail.store.records import open_records
from handrail.store.values import Verdict

pytestmark = pytest.mark.anyio

expired = ApprovalExpired(approval="a1", call="c1", after_ms=5)
withdrawn = ApprovalWithdrawn(approval="a1", call="c1", why="gone")
VERDICT = Verdict(claim=0, effect="ask", rule="default policy", why="nothing allows it")


async def the_approval(kept: JournalFiles, *story: Event) -> ApprovalRecord:
    async with records_after(kept, call_opened(), approval_opened(), *story) as records:
        approval = await records.approvals.get("a1")
        assert approval is not None
        assert approval.open == bool(await records.approvals.find(open_only=True))
        return approval


async def test_an_expired_question_is_open_no_longer_and_its_call_waits_no_longer(kept: JournalFiles) -> None:
    approval = await the_approval(kept, expired)
    assert (approval.open, approval.answer, approval.withdrawn_at) == (False, None, None)
    assert approval.expired_at is not None
    assert approval.expired_at >= approval.opened_at
    async with records_after(kept) as records:
        assert [call.status for call in await records.calls.find()] == ["running"]
        assert await records.calls.find(status="waiting") == []
        (detail,) = await records.calls.still_open()
        assert detail.approval is not None
        assert not detail.approval.open


@pytest.mark.parametrize("later", [approval_allowed(), withdrawn, expired])
@pytest.mark.parametrize("first", [approval_allowed(), withdrawn, expired])
async def test_an_approval_ends_once(kept: JournalFiles, first: Event, later: Event) -> None:
    once = await the_approval(kept, first)
    async with records_after(kept, later) as records:
        assert await records.approvals.get("a1") == once


async def test_the_verdicts_of_a_question_are_kept(kept: JournalFiles) -> None:
    async with records_after(kept, call_opened(), replace(approval_opened(), verdicts=(VERDICT,))) as records:
        (approval,) = await records.approvals.find(open_only=True)
        assert approval.verdicts == (VERDICT,)


@pytest.mark.parametrize(
    ("answer", "edited"),
    [
        (approval_allowed(), False),
        (replace(approval_allowed(), input={}), True),
        (replace(approval_allowed(), content=""), True),
    ],
)
async def test_an_answer_with_changes_says_so(kept: JournalFiles, answer: Event, edited: bool) -> None:
    assert (await the_approval(kept, answer)).edited == edited


async def test_the_questions_of_late_are_told_newest_first_as_a_rule_would_meet_them(
    kept: JournalFiles,
) -> None:
    story: list[Event] = [
        *(
            call_opened("c1"),
            replace(approval_opened(), verdicts=(VERDICT,)),
            replace(approval_allowed(), input={"path": "b"}),
        ),
        *(
            call_started("c1"),
            call_settled("c1"),
            call_opened("c2", tool="execute_command"),
            approval_opened("a2", "c2"),
        ),
    ]
    async with records_after(kept, *story) as records:
        second, first = await records.approvals.recent()
        assert (first.approval, first.call, first.tool, first.caller) == ("a1", "c1", "write_file", caller())
        assert (first.claims, first.verdicts, first.risk) == (WRITES, (VERDICT,), "medium")
        assert (first.answer, str(first.by), first.edited) == ("allow", "ann", True)
        assert (second.tool, second.answer, second.by, second.edited) == (
            *("execute_command", None),
            *(None, False),
        )
        assert second.at >= first.at > 0
        assert [prompt.approval for prompt in await records.approvals.recent(limit=1)] == ["a2"]


async def test_an_erased_question_claims_nothing(kept: JournalFiles) -> None:
    async with records_after(kept, call_opened(), approval_opened()):
        pass
    with closing(sqlite3.connect(kept.path)) as connection:
        connection.execute("UPDATE events SET payload = NULL")
        connection.commit()
    async with open_records(kept.path) as records:
        (prompt,) = await records.approvals.recent()
        assert (prompt.claims, prompt.verdicts) == ((), ())


async def test_open_questions_are_told_without_what_they_show(kept: JournalFiles) -> None:
    async with records_after(kept, call_opened(), approval_opened()) as records:
        (whole,) = await records.approvals.find(open_only=True)
        (bare,) = await records.approvals.still_open()
        shown = {"claims": (), "reasons": (), "why": "", "preview": None, "verdicts": ()}
        assert bare == replace(whole, **shown)
        assert whole.reasons
    async with records_after(kept, approval_allowed()) as records:
        assert await records.approvals.still_open() == []
