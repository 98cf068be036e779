"""What a terminal is to a caller: whose, inside or not, and how it is told."""

from dataclasses import replace
from pathlib import Path

import pytest

from handrail.gate.tool import ReceiptFacts
from handrail.keeper.protocol import Exit, Process, Report, Sent
from handrail.store.values import Caller, Owner, ProcessSeen, SignalSent
from handrail.terminal.output.tail import Tail
from handrail.tools.results import facts_of
from handrail.tools.terminals.list_tracked_terminals import facts, format_line
from handrail.tools.terminals.terminal_lookup import (
    FoundTerminal,
    describe_exit,
    is_inside,
    is_own,
    refuse_ended,
)

AGENT = Caller(door="stdio", client="agent", key="k", workspace="/project")
KNOWN = FoundTerminal(
    id="t1",
    name="work",
    of="tracked",
    owner=Owner(person=False, name="agent", workspace="/project"),
    argv=("/bin/bash",),
    nonce="",
    pid=7,
    size=(80, 24),
    call=None,
    opened_at=1,
    cwd="/elsewhere",
    tail=Tail(Path("/nowhere")),
    exit=Exit(code=3),
)
PERSONS = Owner(person=True, name="a person")


@pytest.mark.parametrize(
    ("owner", "cwd", "own", "inside"),
    [
        (KNOWN.owner, "/elsewhere", True, True),
        (replace(KNOWN.owner, workspace="/other"), "/elsewhere", False, False),
        (replace(KNOWN.owner, workspace="/other"), "/project/below", False, True),
        (replace(KNOWN.owner, workspace=None), "/project-evil", False, False),
        (PERSONS, "/project", False, True),
        (PERSONS, "/", False, False),
        (replace(PERSONS, workspace="/project"), "/", False, True),
    ],
)
def test_a_terminal_is_ones_own_by_its_owner_and_inside_by_its_owner_or_its_place(
    owner: Owner, cwd: str, own: bool, inside: bool
) -> None:
    known = replace(KNOWN, owner=owner, cwd=cwd)
    assert (is_own(known, AGENT), is_inside(known, AGENT)) == (own, inside)
    nowhere = replace(AGENT, workspace=None)
    assert (is_own(known, nowhere), is_inside(known, nowhere)) == (False, False)


@pytest.mark.parametrize(
    ("exit", "words"),
    [
        (None, "running"),
        (Exit(code=0), "exit code 0"),
        (Exit(signal="SIGKILL"), "ended by SIGKILL"),
        (Exit(lost="the keeper died"), "ended, how is unknown: the keeper died"),
    ],
)
def test_an_end_is_told_in_words(exit: Exit | None, words: str) -> None:
    assert describe_exit(exit) == words


def test_one_that_ended_says_what_can_still_be_done() -> None:
    assert "get_terminal_buffer still reads its output" in refuse_ended(KNOWN).sentence


def test_an_ended_terminal_is_one_line_in_a_list() -> None:
    assert format_line(facts(KNOWN, (), private=False)) == "t1  work  exit code 3  pid 7  /elsewhere"


def test_a_receipt_says_how_a_tree_was_ended() -> None:
    report = Report("stop", (Sent("SIGHUP", 1.7),), (Process(1, "a"),), (Process(2, "b"),))
    assert facts_of(report) == ReceiptFacts(
        signals=(SignalSent(signal="SIGHUP", after_ms=1),),
        processes_stopped=(ProcessSeen(pid=1, name="a"),),
        processes_left=(ProcessSeen(pid=2, name="b"),),
    )
