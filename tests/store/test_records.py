"""What the store says of calls, approvals, terminals and credentials after the events that made them."""

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
    daemon_stopped,
    records_after,
)

from handrail.store.calls import Status
from handrail.store.events import (
    ApprovalWithdrawn,
    CallClientGone,
    CallHandedBack,
    CallStopped,
    CredentialIssued,
    CredentialRevoked,
    DaemonStarted,
    Event,
    TerminalAsked,
    TerminalEnded,
    TerminalForgotten,
    TerminalOpened,
    TerminalReleased,
    TerminalTaken,
    TerminalTyped,
    TerminalWentOn,
)
from handrail.store.records import open_records
from handrail.store.terminals import TerminalRecord
from handrail.store.values import Owner, PathPreview, Receipt, Result, TerminalKind

pytestmark = pytest.mark.anyio


withdrawn = ApprovalWithdrawn(approval="a1", call="c1", why="its call was cancelled")


@pytest.mark.parametrize(
    ("story", "status"),
    [
        ([call_opened()], "running"),
        ([call_opened(), call_started()], "running"),
        ([call_opened(), approval_opened()], "waiting"),
        ([call_opened(), approval_opened(), CallHandedBack(call="c1")], "waiting"),
        ([call_opened(), approval_opened(), approval_allowed()], "running"),
        (
            [call_opened(), approval_opened(), approval_allowed(), call_started(), approval_opened("a2")],
            "waiting",
        ),
        ([call_opened(), approval_opened(), withdrawn], "running"),
        ([call_opened(), approval_opened(), withdrawn, call_settled(ending="cancelled")], "cancelled"),
        ([call_opened(), approval_opened(), call_settled(ending="denied")], "denied"),
        ([call_opened(), call_started(), call_settled(ending="completed")], "completed"),
        ([call_opened(), call_settled(ending="interrupted"), call_settled(ending="done")], "interrupted"),
        ([call_opened(), approval_opened(call="another")], "running"),
    ],
)
async def test_status_follows_from_the_facts(kept: JournalFiles, story: list[Event], status: Status) -> None:
    async with records_after(kept, *story) as records:
        (call,) = await records.calls.find()
        assert call.status == status
        assert [found.id for found in await records.calls.find(status=status)] == ["c1"]
        others: tuple[Status, ...] = ("waiting", "running", "done", "failed")
        for other in others:
            assert other == status or await records.calls.find(status=other) == []


async def test_a_call_tells_its_whole_story(kept: JournalFiles) -> None:
    stopped = Receipt(ended_by="ann", stopped=True, bytes_kept=12)
    story: list[Event] = [
        call_opened(input={"path": "a.txt", "content": "hi\n"}),
        approval_opened(),
        CallHandedBack(call="c1"),
        CallClientGone(call="c1"),
        approval_allowed(),
        call_started(),
        TerminalOpened(terminal="t1", call="c1", name="sh", cwd="/w", pid=77),
        call_settled(message="Completed by ann"),
        CallStopped(call="c1", receipt=stopped),
    ]
    async with records_after(kept, *story) as records:
        detail = await records.calls.get("c1")
        assert detail is not None
        call = detail.call
        assert call.caller == caller()
        assert (call.status, call.settled_by, call.message) == ("done", "ann", "Completed by ann")
        assert (call.approval, call.terminal, call.allowed_by) == ("a1", "t1", "approval a1")
        assert (call.opened_seq, call.settled_seq, call.stopped_seq) == (1, 8, 9)
        times = (call.started_at, call.handed_back_at, call.client_gone_at, call.settled_at, call.stopped_at)
        assert all(time is not None and time >= call.opened_at for time in times)
        assert detail.input == {"path": "a.txt", "content": "hi\n"}
        assert detail.claims == WRITES
        assert detail.preview == PathPreview(path="/w/a.txt")
        assert detail.result == Result(text="written", data={"bytes": 3})
        assert detail.receipt == stopped
        assert detail.approval is not None
        assert (detail.approval.answer, detail.approval.answered_by) == ("allow", "ann")


async def test_an_unknown_id_is_none(kept: JournalFiles) -> None:
    async with records_after(kept) as records:
        assert await records.calls.get("c1") is None
        assert await records.approvals.get("a1") is None
        assert await records.terminals.get("t1") is None


async def test_a_restart_finds_the_calls_without_an_outcome_oldest_first(kept: JournalFiles) -> None:
    story: list[Event] = [
        call_opened("c1"),
        approval_opened("a1", "c1"),
        call_opened("c2"),
        call_settled("c2"),
        call_opened("c3"),
        call_started("c3"),
    ]
    async with records_after(kept, *story) as records:
        waiting, running = await records.calls.still_open()
        assert (waiting.call.id, waiting.call.status) == ("c1", "waiting")
        assert waiting.claims == WRITES
        assert waiting.approval is not None
        assert waiting.approval.digest == "d1"
        assert (running.call.id, running.call.status, running.approval) == ("c3", "running", None)
        assert running.result is None
        assert running.receipt is None


async def test_work_that_nobody_saw_end_is_found(kept: JournalFiles) -> None:
    ended = replace(call_settled("c2"), receipt=Receipt(ended_by="write_file", stopped=True))
    running_on = replace(call_settled("c3"), receipt=Receipt(ended_by="ann", stopped=False))
    story = [call_opened(), call_opened("c2"), ended, call_opened("c3"), running_on]
    async with records_after(kept, *story) as records:
        assert [detail.call.id for detail in await records.calls.unwinding()] == ["c3"]
        assert [call.stopped_at is None for call in await records.calls.find()] == [True, False, True]


async def test_only_what_was_interrupted_since_the_last_start_is_counted(kept: JournalFiles) -> None:
    start = DaemonStarted(
        version="1", pid=1, crashed=False, interrupted=0, approvals_kept=0, terminals_adopted=0
    )
    cut = [replace(call_settled(f"c{number}"), ending="interrupted") for number in range(3)]
    story = [*(call_opened(f"c{number}") for number in range(3)), cut[0], start, cut[1], cut[2]]
    async with records_after(kept, *story) as records:
        assert await records.calls.count_interrupted() == 2


async def test_the_inbox_holds_open_approvals_with_all_a_person_needs(kept: JournalFiles) -> None:
    story: list[Event] = [
        *(call_opened("c1"), approval_opened("a1", "c1"), approval_allowed("a1", "c1")),
        *(
            call_opened("c2", title="second"),
            approval_opened("a2", "c2"),
            call_opened("c3"),
            approval_opened("a3", "c3"),
        ),
        *(
            call_opened("c4"),
            approval_opened("a4", "c4"),
            ApprovalWithdrawn(approval="a4", call="c4", why="gone"),
        ),
    ]
    async with records_after(kept, *story) as records:
        inbox = await records.approvals.find(open_only=True)
        assert [approval.id for approval in inbox] == ["a2", "a3"]
        first = inbox[0]
        assert (first.tool, first.title, first.caller) == ("write_file", "second", caller())
        assert (first.digest, first.risk, first.claims) == ("d1", "medium", WRITES)
        assert (first.reasons, first.why) == (("changes a file",), "no rule allows it")
        assert first.preview == PathPreview(path="/w/a.txt")
        assert first.open
        everything = await records.approvals.find(open_only=False)
        assert [approval.id for approval in everything] == ["a4", "a3", "a2", "a1"]
        assert [approval.open for approval in everything] == [False, True, True, False]
        assert everything[0].withdrawn_why == "gone"


async def test_the_first_answer_is_the_only_one(kept: JournalFiles) -> None:
    async with records_after(
        kept, call_opened(), approval_opened(), approval_allowed(), withdrawn
    ) as records:
        approval = await records.approvals.get("a1")
        assert approval is not None
        assert (approval.answer, approval.withdrawn_at) == ("allow", None)
    async with records_after(kept, call_opened("c9"), approval_opened("a9", "c9")) as records:
        assert [approval.id for approval in await records.approvals.find(open_only=True)] == ["a9"]


async def test_terminals_and_credentials(kept: JournalFiles) -> None:
    def opening(terminal: str) -> TerminalOpened:
        return TerminalOpened(terminal=terminal, call=None, name="sh", cwd="/w", pid=7)

    story: list[Event] = [
        *(opening("t1"), opening("t2")),
        TerminalEnded(terminal="t1", exit_code=None, signal="SIGKILL", bytes=9, lost=True),
        CredentialIssued(credential="k1", name="zed", workspace="/w", sha256="ab"),
        CredentialIssued(credential="k2", name="cursor", workspace="/w", sha256="cd"),
        CredentialRevoked(credential="k1", by="ann"),
    ]
    async with records_after(kept, *story) as records:
        assert [terminal.id for terminal in await records.terminals.find()] == ["t2", "t1"]
        assert [terminal.id for terminal in await records.terminals.find(running_only=True)] == ["t2"]
        ended = await records.terminals.get("t1")
        assert ended is not None
        assert (ended.exit_code, ended.signal, ended.bytes, ended.lost) == (None, "SIGKILL", 9, True)
        issued = await records.credentials.all()
        assert {one.id: one.revoked_at is None for one in issued} == {"k1": False, "k2": True}


async def test_a_terminal_tells_what_it_is_and_who_shares_it(kept: JournalFiles) -> None:
    mine = Owner(person=True, name="ann", workspace="/w")
    opening = TerminalOpened(
        terminal="t1",
        call="c1",
        name="build",
        cwd="/w",
        pid=7,
        of="tracked",
        owner=mine,
        argv=("bash", "-i"),
        cols=120,
        rows=40,
        nonce="ab",
    )
    asked_for = TerminalAsked(terminal="t1", prompt="PIN:", sure="certain", secret=True)
    async with records_after(
        kept, opening, TerminalTaken(terminal="t1", by="ann", holds=True), asked_for
    ) as records:
        found = await records.terminals.get("t1")
        assert found is not None
        assert (found.of, found.owner, found.argv, found.nonce) == ("tracked", mine, ("bash", "-i"), "ab")
        assert (found.cols, found.rows, found.call) == (120, 40, "c1")
        assert (found.taken_by, found.taken_holds) == ("ann", True)
        assert (found.asked_prompt, found.asked_sure, found.asked_secret) == ("PIN:", "certain", True)
        assert (found.asked_at is not None, found.forgotten_at) == (True, None)
    over = (TerminalReleased(terminal="t1", by="ann"), TerminalWentOn(terminal="t1"))
    async with records_after(kept, *over) as records:
        found = await records.terminals.get("t1")
        assert found is not None
        assert (found.taken_by, found.taken_holds) == (None, False)
        assert (found.asked_prompt, found.asked_sure, found.asked_secret, found.asked_at) == (
            *(None, None, False),
            None,
        )


async def test_nobody_has_an_ended_terminal_and_it_asks_nothing(kept: JournalFiles) -> None:
    story: list[Event] = [
        TerminalOpened(terminal="t1", call=None, name="sh", cwd="/w", pid=7),
        TerminalTaken(terminal="t1", by="ann", holds=True),
        TerminalAsked(terminal="t1", prompt="?", sure="likely", secret=False),
        TerminalEnded(terminal="t1", exit_code=0, signal=None, bytes=9),
        TerminalTaken(terminal="t1", by="bob", holds=True),
        TerminalForgotten(terminal="t1", why="too old"),
    ]
    async with records_after(kept, *story) as records:
        found = await records.terminals.get("t1")
        assert found is not None
        assert (found.taken_by, found.asked_at, found.owner) == (None, None, None)
        assert found.forgotten_at is not None
        assert await records.terminals.with_output() == []


async def test_terminals_are_listed_by_kind(kept: JournalFiles) -> None:
    kinds: tuple[TerminalKind, ...] = ("command", "tracked", "shell", "tracked")
    story: list[Event] = [
        TerminalOpened(terminal=f"t{number}", call=None, name="sh", cwd="/w", pid=7, of=of)
        for number, of in enumerate(kinds)
    ]
    ended = TerminalEnded(terminal="t1", exit_code=0, signal=None, bytes=9)
    async with records_after(kept, *story, ended) as records:
        assert ids(await records.terminals.find(of=("tracked", "shell"))) == ["t3", "t2", "t1"]
        assert ids(await records.terminals.find(of=("tracked",), running_only=True)) == ["t3"]
        assert ids(await records.terminals.find(of=("tracked",), before=4)) == ["t1"]
        assert ids(await records.terminals.find(of=())) == []
        assert ids(await records.terminals.with_output()) == ["t1"]
        assert ids(await records.terminals.with_output(after="t1")) == []


def ids(found: list[TerminalRecord]) -> list[str]:
    return [record.id for record in found]


async def test_who_typed_what_is_kept_in_order_and_the_last_are_given(kept: JournalFiles) -> None:
    story: list[Event] = [
        TerminalTyped(terminal="t1", by="ann", person=True, text=None, offset=0),
        TerminalTyped(terminal="t2", by="ann", person=True, text="elsewhere", offset=1),
        TerminalTyped(terminal="t1", by="zed", person=False, text="ls", offset=10),
        TerminalTyped(terminal="t1", by="ann", person=True, text="^C", offset=20),
    ]
    async with records_after(kept, *story) as records:
        typed = await records.terminals.typed("t1")
        assert [(entry.by, entry.person, entry.text, entry.offset) for entry in typed] == [
            *(("ann", True, None, 0), ("zed", False, "ls", 10)),
            ("ann", True, "^C", 20),
        ]
        assert [entry.text for entry in await records.terminals.typed("t1", limit=2)] == ["ls", "^C"]
        assert await records.terminals.typed("t9") == []


async def test_events_about_unknown_or_repeated_nouns_fail_no_commit(kept: JournalFiles) -> None:
    story: list[Event] = [
        call_settled("nobody"),
        approval_allowed("nothing"),
        approval_opened("a1", "nobody"),
        call_opened(),
        call_opened(),
        daemon_stopped(),
    ]
    async with records_after(kept, *story) as records:
        assert [call.id for call in await records.calls.find()] == ["c1"]


async def test_an_erased_payload_leaves_the_record_with_empty_fields(kept: JournalFiles) -> None:
    async with records_after(kept, call_opened(), approval_opened(), call_started(), call_settled()):
        pass
    with closing(sqlite3.connect(kept.path)) as connection:
        connection.execute("UPDATE events SET payload = NULL")
        connection.commit()
    async with open_records(kept.path) as records:
        detail = await records.calls.get("c1")
        assert detail is not None
        assert detail.call.caller == caller()
        assert (detail.input, detail.claims, detail.result, detail.receipt) == (None, (), None, None)


async def test_ten_thousand_calls_are_filtered_and_paged(kept: JournalFiles) -> None:
    story: list[Event] = []
    for number in range(10_000):
        tool, client = ("read_file", "codex") if number % 100 else ("execute_command", "zed")
        story.append(call_opened(f"c{number}", tool, client, title=f"call number {number} at 100%_done"))
        if number % 1000:
            story.append(
                call_settled(f"c{number}", "done" if number % 7 else "failed", message=f"said {number}")
            )
    async with records_after(kept, *story) as records:
        assert [call.id for call in (await records.calls.find(limit=3))] == ["c9999", "c9998", "c9997"]
        assert len(await records.calls.find(status="running")) == 10
        assert len(await records.calls.find(tool="execute_command")) == 100
        assert len(await records.calls.find(tool="execute_command", status="running", client="zed")) == 10
        assert await records.calls.find(client="nobody") == []
        paged: list[str] = []
        before: int | None = None
        while page := await records.calls.find(status="failed", before=before):
            paged += [call.id for call in page]
            before = page[-1].opened_seq
        assert paged == [f"c{number}" for number in range(9999, -1, -1) if not number % 7 and number % 1000]
