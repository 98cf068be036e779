"""A program that appends without end, several at a time, and says each number once it is durable.

Run by test_kill.py as `python appender.py DATABASE HEAD`.
"""

import os
import sys
from pathlib import Path

import anyio

from handrail.store.events import CallOpened, CallSettled
from handrail.store.journal import Journal, open_journal
from handrail.store.values import Caller, Receipt

WHO = Caller(door="stdio", client="appender", key="k", workspace=None)


async def calls(journal: Journal, name: str) -> None:
    number = 0
    while True:
        call = f"{os.getpid()}-{name}-{number}"
        opened = journal.append(
            CallOpened(call=call, tool="t", title="x" * (number % 7000), input={}, caller=WHO)
        )
        receipt = Receipt(ended_by="tool", stopped=True)
        settled = journal.append(
            CallSettled(call=call, ending="done", by="tool", message="", result=None, receipt=receipt)
        )
        await journal.committed(settled)
        os.write(1, f"{opened} {settled} {call}\n".encode())
        number += 1


async def main() -> None:
    async with (
        open_journal(Path(sys.argv[1]), Path(sys.argv[2])) as journal,
        anyio.create_task_group() as group,
    ):
        for name in "abcd":
            group.start_soon(calls, journal, name)


anyio.run(main)
