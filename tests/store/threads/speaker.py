"""A program that speaks without end, and says each word and its time on its output once it was said.

Run by test_killed.py as `python speaker.py DATABASE HEAD THREAD`.
"""

import os
import sys
import time
from pathlib import Path

import anyio

from handrail.store.actor import actor_from_text
from handrail.store.journal import open_journal
from handrail.store.records import open_records
from handrail.store.threads.threads import Threads

WORDS_A_SECOND = 500


async def main() -> None:
    path, head = Path(sys.argv[1]), Path(sys.argv[2])
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


anyio.run(main)
