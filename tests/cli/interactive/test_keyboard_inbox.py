"""What waits, as the facts tell it."""

from typing import Any

from handrail.cli.interactive.keyboard import Inbox


def facts(*events: tuple[str, str]) -> list[Any]:
    return [{"event": {"kind": kind, "approval": approval}} for kind, approval in events]


def test_the_oldest_comes_first_and_whatever_closes_one_takes_it_away() -> None:
    inbox = Inbox(["a1"])
    inbox.apply(facts(("ApprovalOpened", "a2"), ("ApprovalOpened", "a3"), ("ApprovalOpened", "a4")))
    assert inbox.first() == "a1"
    inbox.apply(facts(("ApprovalAnswered", "a1"), ("ApprovalWithdrawn", "a2"), ("ApprovalExpired", "a3")))
    assert inbox.first() == "a4"
    inbox.drop("a4")
    assert inbox.first() is None


def test_other_facts_are_nothing_to_it() -> None:
    inbox = Inbox(["a1"])
    opened: Any = {"event": {"kind": "CallOpened", "call": "c1"}}
    inbox.apply([opened])
    inbox.drop("never there")
    assert "a1" in inbox
    assert "c1" not in inbox
