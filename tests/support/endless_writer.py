"""A program that writes to a journal without end and reports each durable write, for tests that kill it.

`python endless_writer.py calls DATABASE HEAD` appends calls, several at a time. It prints the two numbers and the id of
each call after its commit. `python endless_writer.py text DATABASE HEAD` lets a message of a thread grow. It prints the
thread, the word and its time for each word. `python endless_writer.py compaction DATABASE HEAD` appends calls and compacts
them. It prints the journal's head and the hash of each compaction, as the keeper would remember them.
"""

import os
import sys
import time
from pathlib import Path

import anyio
import anyio.lowlevel

from handrail.store import journal_compaction, journal_retention
from handrail.store.actor import actor_from_text
from handrail.store.events import CallOpened, CallSettled
from handrail.store.hash_chain import Link
from handrail.store.journal import Journal, open_journal
from handrail.store.journal_retention import JournalRetention
from handrail.store.records import open_records
from handrail.store.threads.threads import Threads
from handrail.store.values import Caller, Receipt

WRITER = Caller(door="stdio", client="appender", key="k", workspace=None)
WORDS_A_SECOND = 500


async def append_calls(path: Path, head: Path) -> None:
    async with open_journal(path, head) as journal, anyio.create_task_group() as group:
        for name in "abcd":
            group.start_soon(_append_series, journal, name)


async def _append_series(journal: Journal, name: str) -> None:
    number = 0
    while True:
        call = f"{os.getpid()}-{name}-{number}"
        opened = journal.append(
            CallOpened(call=call, tool="t", title="x" * (number % 7000), input={}, caller=WRITER)
        )
        receipt = Receipt(ended_by="tool", stopped=True)
        settled = journal.append(
            CallSettled(call=call, ending="done", by="tool", message="", result=None, receipt=receipt)
        )
        await journal.committed(settled)
        os.write(1, f"{opened} {settled} {call}\n".encode())
        number += 1


async def grow_text(path: Path, head: Path) -> None:
    async with open_journal(path, head) as journal, open_records(path) as records:
        threads = Threads(journal, records)
        await threads.restore()
        thread = threads.open(workspace=None, title="", agent="demo", by=actor_from_text("ann"))
        message = threads.open_message(thread, "assistant")
        part = message.add("text")
        await threads.written()
        number = 0
        while True:
            part.grow(f"{number} ")
            os.write(1, f"{thread} {number} {time.monotonic()}\n".encode())
            number += 1
            if number % 3000 == 0:
                message.end("end_turn")
                message = threads.open_message(thread, "assistant")
            if number % 1000 == 0:
                part = message.add("text")
            await anyio.sleep(1 / WORDS_A_SECOND)


async def compact_calls(path: Path, head: Path) -> None:
    journal_compaction.BATCH, journal_retention.PAUSE, journal_retention.CHUNK_PAUSE = 8, 0, 0
    async with open_journal(path, head) as journal, anyio.create_task_group() as group:

        async def store_head() -> Link:
            link = journal.link
            os.write(1, f"head {link.seq} {link.chain.hex()}\n".encode())
            return link

        async def announce(payload_hash: bytes) -> bool:
            os.write(1, f"announced {payload_hash.hex()}\n".encode())
            return True

        group.start_soon(_append_series, journal, "a")
        retention = JournalRetention(journal, path, 1e-12, store_head, announce)
        while True:
            await retention.compact()
            await anyio.lowlevel.checkpoint()


if __name__ == "__main__":
    modes = {"calls": append_calls, "text": grow_text, "compaction": compact_calls}
    anyio.run(modes[sys.argv[1]], Path(sys.argv[2]), Path(sys.argv[3]))
