"""Who only watches is shown that things happen, and neither what terminals show nor what people wrote."""

import pytest

from handrail.server.access import Person
from handrail.server.live.event_stream import filter_entries
from handrail.store.events import (
    ActivityEnded,
    ActivityStarted,
    AgentEnded,
    ApprovalAnswered,
    ApprovalOpened,
    CallSettled,
    Entry,
    Event,
    OperationEnded,
    RuleAdded,
    ServerEnded,
    TerminalAsked,
    TerminalClosed,
    TerminalOpened,
    TerminalTyped,
    ThreadOpened,
    ThreadRenamed,
)
from handrail.store.values import Comment, Owner, Receipt, Result, ResultPreview, Rule

PERSON = Person(place="page", approves=True)
WATCHER = Person(place="command line", approves=False)
SECRET = "only for people"


@pytest.mark.parametrize(
    "event",
    [
        TerminalOpened(
            terminal="t1",
            call=None,
            name="mine",
            cwd="/",
            pid=1,
            of="tracked",
            owner=Owner(person=True, name="me"),
            nonce=SECRET,
        ),
        TerminalTyped(terminal="t1", by="me", person=True, text=SECRET, offset=5),
        TerminalAsked(terminal="t1", prompt=SECRET, sure="certain", secret=False),
        ApprovalAnswered(
            approval="a1",
            call="c1",
            answer="allow",
            reason="",
            by="me",
            input={"command": SECRET},
            content=SECRET,
            comments=(Comment(line=1, text=SECRET),),
        ),
        ApprovalOpened(
            approval="a1",
            call="c1",
            digest="d",
            claims=(),
            risk="medium",
            reasons=(),
            why="",
            preview=ResultPreview(server="far", text=SECRET, structured=SECRET, notes=(SECRET,)),
        ),
        ThreadOpened(thread="h1", workspace="/w", title=SECRET, agent="demo", by="me"),
        ThreadRenamed(thread="h1", title=SECRET, by="me"),
        OperationEnded(operation="o1", cancelled_by=None, stop="failed", error=SECRET),
        OperationEnded(operation="o1", cancelled_by="me", cancelled_activities=(SECRET,)),
        ActivityStarted(
            thread="h1", operation="o1", activity="a1", parent=None, sort="call", title=SECRET, tool_call="t1"
        ),
        ActivityEnded(thread="h1", operation="o1", activity="a1", sort="call", how="failed", detail=SECRET),
        AgentEnded(agent="demo", terminal="t1", why=SECRET, said=(SECRET,)),
        ServerEnded(server="far", client="c", terminal="t1", why=SECRET, said=(SECRET,)),
        CallSettled(
            call="c1",
            ending="failed",
            by="far__query",
            message=SECRET,
            result=Result(text=SECRET, data={"structured": SECRET}),
            receipt=Receipt(ended_by="far__query", stopped=True),
        ),
    ],
)
def test_what_is_for_people_is_left_out_for_whoever_only_watches(event: Event) -> None:
    entry = Entry(seq=1, at=2, event=event)
    assert filter_entries([entry], PERSON) == [entry]
    (bare,) = filter_entries([entry], WATCHER)
    assert (bare.seq, bare.at, bare.event.kind) == (1, 2, event.kind)
    assert SECRET not in repr(bare)
    assert SECRET in repr(entry)


@pytest.mark.parametrize(
    "event",
    [
        TerminalClosed(terminal="t1", by="me"),
        RuleAdded(rule=Rule(id="r1", effect="allow", command="git status"), by="me"),
    ],
)
def test_everything_else_is_shown_as_it_is(event: Event) -> None:
    entry = Entry(seq=1, at=2, event=event)
    assert filter_entries([entry], WATCHER) == [entry]
