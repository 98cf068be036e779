"""Sample events for tests of the store, the two files of a journal, and the records after given events."""

import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.house.source import SRC

from handrail.store.events import (
    ApprovalAnswered,
    ApprovalOpened,
    CallOpened,
    CallSettled,
    CallStarted,
    DaemonStopped,
    Event,
)
from handrail.store.journal import open_journal
from handrail.store.records import Records, open_records
from handrail.store.values import Caller, Claim, Ending, Json, PathPreview, Receipt, Result


@dataclass(frozen=True, slots=True)
class JournalFiles:
    """The two files of a journal."""

    path: Path
    head: Path


WRITES = (Claim(action="write", resource="/w/a.txt", inside=True),)


def daemon_stopped(why: str = "for a test") -> DaemonStopped:
    """The smallest event."""
    return DaemonStopped(why=why)


def caller(client: str = "claude-code") -> Caller:
    return Caller(
        door="stdio", client=client, key=f"{client}@/w", workspace="/w", thread="t1", operation="o1"
    )


def call_opened(
    call: str = "c1",
    tool: str = "write_file",
    client: str = "claude-code",
    title: str = "write a.txt",
    input: Json | None = None,
) -> CallOpened:
    return CallOpened(
        call=call, tool=tool, title=title, input=input or {"path": "a.txt"}, caller=caller(client)
    )


def approval_opened(approval: str = "a1", call: str = "c1") -> ApprovalOpened:
    return ApprovalOpened(
        approval=approval,
        call=call,
        digest="d1",
        claims=WRITES,
        risk="medium",
        reasons=("changes a file",),
        why="no rule allows it",
        preview=PathPreview(path="/w/a.txt"),
    )


def approval_allowed(approval: str = "a1", call: str = "c1") -> ApprovalAnswered:
    return ApprovalAnswered(approval=approval, call=call, answer="allow", reason="", by="ann")


def call_started(call: str = "c1") -> CallStarted:
    return CallStarted(call=call, claims=WRITES, allowed_by="approval a1")


def call_settled(call: str = "c1", ending: Ending = "done", message: str = "") -> CallSettled:
    return CallSettled(
        call=call,
        ending=ending,
        by="ann",
        message=message,
        result=Result(text="written", data={"bytes": 3}),
        receipt=Receipt(ended_by="ann", stopped=False),
    )


@asynccontextmanager
async def records_after(kept: JournalFiles, *events: Event) -> AsyncGenerator[Records]:
    async with open_journal(kept.path, kept.head) as journal:
        for event in events:
            journal.append(event)
        await journal.committed(journal.head)
        async with open_records(kept.path) as records:
            yield records


def endless_writer(
    writes: Literal["calls", "text", "compaction"], kept: JournalFiles
) -> subprocess.Popen[bytes]:
    """Start endless_writer.py on these files."""
    program = Path(__file__).with_name("endless_writer.py")
    return subprocess.Popen(
        [sys.executable, str(program), writes, str(kept.path), str(kept.head)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(SRC)},
    )
