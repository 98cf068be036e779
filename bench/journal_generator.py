"""Generate a journal of a given size: calls with commands, approvals and terminals, in threads with messages and activities.

A program: `python -m bench.journal_generator FOLDER EVENTS CALLS`. It writes through Handrail's own journal, so that chain,
tables and head are those of real use, and fills the search index from it.
"""

import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import anyio

from handrail.store._search_file import SearchFile
from handrail.store.events import (
    ActivityEnded,
    ActivityStarted,
    ApprovalAnswered,
    ApprovalOpened,
    CallOpened,
    CallSettled,
    CallStarted,
    DaemonStarted,
    DaemonStopped,
    Event,
    FolderTrusted,
    MessageEnded,
    MessageOpened,
    OperationEnded,
    OperationOpened,
    RuleAdded,
    TerminalEnded,
    TerminalForgotten,
    TerminalOpened,
    ThreadOpened,
)
from handrail.store.journal import Journal, open_journal
from handrail.store.records import open_records
from handrail.store.search_index import texts_of
from handrail.store.values import Caller, Claim, CommandPreview, Json, Owner, Receipt, Result, Rule

BATCH = 5000
"""Events in one transaction."""
CALLS_OF_THREAD = 100
CALLS_OF_OPERATION = 10
RULES = 50
CLIENTS = ("claude-code", "codex", "zed", "handrail")
_WORKSPACE = "/home/person/project"
_OUTPUT = "The quick brown fox jumps over the lazy dog, again.\n" * 8
_RECEIPT = Receipt(ended_by="tool", stopped=True)


def generate_events(events: int, calls: int) -> Iterator[Event]:
    """Exactly `events` events, with `calls` calls among them. Activities fill up what the calls leave."""
    count = 0
    for event in _generate_start():
        count += 1
        yield event
    for number in range(calls):
        due = events * (number + 1) // calls
        for event in _generate_call(number):
            count += 1
            yield event
        while count + 2 <= due:
            count += 2
            yield from _generate_activity(number, count)
    while count < events:
        count += 1
        yield DaemonStopped(why="the end of the generated journal")


def _generate_start() -> Iterator[Event]:
    yield DaemonStarted(
        version="0", pid=1, crashed=False, interrupted=0, approvals_kept=0, terminals_adopted=0
    )
    yield FolderTrusted(folder=_WORKSPACE, config=None, by="person")
    for number in range(RULES):
        rule = Rule(id=f"r{number}", effect="allow", command=f"make target{number}", source="answer")
        yield RuleAdded(rule=rule, by="person")


def _generate_call(number: int) -> Iterator[Event]:
    """One call, and at the right times the thread, operation and message that it belongs to."""
    who = _build_caller(number)
    yield from _generate_frame(number, who)
    call = f"c{number:08x}"
    match number % 10:
        case 0 | 1 | 2 | 3:
            yield from _generate_command(call, number, who)
        case 4:
            yield from _generate_write(call, number, who)
        case _:
            yield from _generate_read(call, number, who)
    if who.operation is not None and number % CALLS_OF_OPERATION == CALLS_OF_OPERATION - 1:
        yield MessageEnded(thread=who.thread or "", message=f"m{who.operation}", stop="end_turn")
        yield OperationEnded(operation=who.operation, cancelled_by=None, stop="end_turn")


def _build_caller(number: int) -> Caller:
    """Half of the calls belong to threads."""
    client = CLIENTS[number // CALLS_OF_THREAD % len(CLIENTS)]
    key = f"{client}@{_WORKSPACE}"
    if number // CALLS_OF_THREAD % 2:
        return Caller(door="stdio", client=client, key=key, workspace=_WORKSPACE)
    return Caller(
        door="acp",
        client=client,
        key=key,
        workspace=_WORKSPACE,
        thread=f"t{number // CALLS_OF_THREAD}",
        operation=f"o{number // CALLS_OF_OPERATION}",
    )


def _generate_frame(number: int, who: Caller) -> Iterator[Event]:
    if who.thread is None or who.operation is None:
        return
    if number % CALLS_OF_THREAD == 0:
        yield ThreadOpened(
            thread=who.thread,
            workspace=_WORKSPACE,
            title=f"Thread {number}",
            agent=who.client,
            by="person",
        )
    if number % CALLS_OF_OPERATION == 0:
        yield OperationOpened(operation=who.operation, caller=who)
        yield MessageOpened(
            thread=who.thread,
            message=f"m{who.operation}",
            n=number % CALLS_OF_THREAD // CALLS_OF_OPERATION + 1,
            role="assistant",
            agent=who.client,
            operation=who.operation,
        )


def _generate_command(call: str, number: int, who: Caller) -> Iterator[Event]:
    command, terminal = f"make target{number % 97} N={number}", f"x{number:08x}"
    claims = (Claim(action="run", resource=command, inside=True, words=("make", f"target{number % 97}")),)
    yield _build_opened(call, "execute_command", f"Run {command}", {"command": command}, who)
    allowed_by = "rule default"
    if number % 4 == 0:
        approval, allowed_by = f"a{number:08x}", f"approval a{number:08x}"
        yield ApprovalOpened(
            approval=approval,
            call=call,
            digest=f"{number:064x}",
            claims=claims,
            risk="medium",
            reasons=("runs a program",),
            why="no rule allows it",
            preview=CommandPreview(command=command, cwd=_WORKSPACE, program="/usr/bin/make"),
        )
        yield ApprovalAnswered(approval=approval, call=call, answer="allow", reason="", by="person")
    yield CallStarted(call=call, claims=claims, allowed_by=allowed_by)
    yield TerminalOpened(
        terminal=terminal,
        call=call,
        name=command,
        cwd=_WORKSPACE,
        pid=4242,
        owner=Owner(person=False, name=who.client, workspace=_WORKSPACE),
        argv=("/bin/sh", "-c", command),
    )
    yield TerminalEnded(terminal=terminal, exit_code=int(number % 7 == 0), signal=None, bytes=len(_OUTPUT))
    yield _build_settled(call, number)
    yield TerminalForgotten(terminal=terminal, why="It ended more than 30 days ago.")


def _generate_write(call: str, number: int, who: Caller) -> Iterator[Event]:
    path = f"src/module{number % 997}.py"
    claims = (Claim(action="write", resource=f"{_WORKSPACE}/{path}", inside=True),)
    yield _build_opened(call, "write_file", f"Write {path}", {"path": path, "content": _OUTPUT}, who)
    yield CallStarted(call=call, claims=claims, allowed_by="rule default")
    yield _build_settled(call, number)


def _generate_read(call: str, number: int, who: Caller) -> Iterator[Event]:
    path = f"src/module{number % 997}.py"
    claims = (Claim(action="read", resource=f"{_WORKSPACE}/{path}", inside=True),)
    yield _build_opened(call, "read_file", f"Read {path}", {"path": path}, who)
    yield CallStarted(call=call, claims=claims, allowed_by="rule reads")
    yield _build_settled(call, number)


def _build_opened(call: str, tool: str, title: str, given: Json, who: Caller) -> CallOpened:
    return CallOpened(call=call, tool=tool, title=title, input=given, caller=who)


def _build_settled(call: str, number: int) -> CallSettled:
    text = f"{number}\n{_OUTPUT}"
    return CallSettled(
        call=call,
        ending="failed" if number % 7 == 0 else "done",
        by="tool",
        message="exit status 1" if number % 7 == 0 else "",
        result=Result(text=text, data={"output": text}),
        receipt=_RECEIPT,
    )


def _generate_activity(number: int, count: int) -> Iterator[Event]:
    who = _build_caller(number)
    thread, operation = who.thread or "t0", who.operation or "o0"
    yield ActivityStarted(
        thread=thread, operation=operation, activity=f"y{count}", parent=None, sort="model", title="Thinks"
    )
    yield ActivityEnded(thread=thread, operation=operation, activity=f"y{count}", sort="model", how="done")


async def write_journal(database: Path, events: int, calls: int) -> None:
    async with open_journal(database, database.with_suffix(".head")) as journal:
        for number, event in enumerate(generate_events(events, calls), 1):
            journal.append(event)
            if number % BATCH == 0:
                await journal.committed(journal.head, sync=False)
        await journal.committed(journal.head)
        await _fill_index(database.with_name("words.db"), journal, database)


async def _fill_index(path: Path, journal: Journal, database: Path) -> None:
    file, seq = SearchFile(path), 0
    try:
        async with open_records(database) as records:
            while entries := await journal.since(seq, BATCH):
                file.fill(await texts_of(entries, records), entries[-1].seq)
                seq = entries[-1].seq
    finally:
        file.close()


if __name__ == "__main__":
    began = time.monotonic()
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    anyio.run(partial(write_journal, folder / "handrail.db", int(sys.argv[2]), int(sys.argv[3])))
    sys.stdout.write(f"{time.monotonic() - began:.1f} s\n")
