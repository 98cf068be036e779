"""What an agent is busy with, in one line, from the facts alone."""

from typing import Any

from handrail.cli.render.chat_output import Activities


def begins(id: str, parent: str | None, sort: str, title: str = "", thread: str = "h1") -> Any:
    about = {"thread": thread, "operation": "o1", "activity": id, "parent": parent}
    return {"event": {"kind": "ActivityStarted", **about, "sort": sort, "title": title, "tool_call": ""}}


def ends(id: str, sort: str = "call") -> Any:
    about = {"thread": "h1", "operation": "o1", "activity": id, "sort": sort}
    return {"event": {"kind": "ActivityEnded", **about, "how": "done", "detail": ""}}


OVER: Any = {"event": {"kind": "OperationEnded", "operation": "o1"}}
STEP = [begins("a", None, "operation", "Mend it"), begins("b", "a", "step", "Step 3")]


def test_the_step_and_what_is_done_in_it_stand_on_a_line_with_how_long_it_takes() -> None:
    busy = Activities("h1")
    busy.apply(STEP, 5.0)
    assert busy.line(6.0) == ""  # a step that holds nothing yet
    busy.apply([begins("c", "b", "model", "anthropic:claude-opus-5")], 10.0)
    assert busy.line(22.9) == "Step 3 · asking claude-opus-5 · 0:12"
    busy.apply([begins("d", "c", "thinking", "Thinking")], 20.0)
    assert busy.line(22.9) == "Step 3 · thinking · 0:02"
    busy.apply([ends("d"), ends("c"), begins("e", "b", "call", "Run `pytest -q`")], 30.0)
    assert busy.line(90.0) == "Step 3 · Run `pytest -q` · 1:00"


def test_what_is_done_at_once_is_named_together_and_since_the_first_of_it() -> None:
    busy = Activities("h1")
    busy.apply([*STEP, begins("c", "b", "call", "Read a.py")], 0.0)
    busy.apply([begins("d", "b", "call", "Read b.py")], 2.0)
    assert busy.line(3.0) == "Step 3 · Read a.py · Read b.py · 0:03"


def test_whom_an_agent_has_sent_is_said_on_the_way() -> None:
    busy = Activities("h1")
    sent = [begins("c", "b", "call", "Send an agent"), begins("d", "c", "agent", "Look for callers")]
    busy.apply([*STEP, *sent, begins("e", "d", "step", "Step 1"), begins("f", "e", "model", "m")], 0.0)
    assert busy.line(0.0) == "Step 3 · Look for callers · asking m · 0:00"


def test_nothing_is_left_of_an_operation_that_is_over_whatever_was_open_in_it() -> None:
    busy = Activities("h1")
    busy.apply([*STEP, begins("c", "b", "model", "m")], 0.0)
    assert not busy.is_over("o1")
    busy.apply([OVER], 1.0)
    assert busy.is_over("o1")
    assert busy.line(1.0) == ""


def test_only_what_is_done_in_this_thread_counts() -> None:
    busy = Activities("h1")
    told = busy.apply([begins("x", None, "model", "m", thread="h2"), *STEP, ends("b", "step")], 0.0)
    assert [event["activity"] for event in told] == ["a", "b", "b"]
    assert busy.line(0.0) == ""
