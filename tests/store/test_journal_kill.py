"""An acknowledged record survives `kill -9`."""

import random
import sqlite3
from contextlib import closing

import pytest
from tests.support.sample_events import JournalFiles, endless_writer

from handrail.store.integrity import verify

KILLS = 20


def acknowledged_until_killed(kept: JournalFiles, wanted: int) -> list[str]:
    """Run the writer, kill it after `wanted` acknowledgements; every whole line it wrote."""
    child = endless_writer("calls", kept)
    assert child.stdout is not None
    with child.stdout as acks:
        lines = [acks.readline() for _ in range(wanted)]
        child.kill()
        rest = acks.read().splitlines(keepends=True)
    child.wait(timeout=10)
    return [line.decode() for line in (*lines, *rest) if line.endswith(b"\n")]


@pytest.mark.timeout(180)
def test_no_acknowledged_record_is_missing_after_twenty_kills(kept: JournalFiles) -> None:
    chance = random.Random(20)
    acknowledged: dict[int, str] = {}
    for _ in range(KILLS):
        lines = acknowledged_until_killed(kept, chance.randint(1, 400))
        assert lines, "the appender never came up"
        for line in lines:
            opened, settled, call = line.split()
            assert int(opened) not in acknowledged, "a number was given twice"
            acknowledged |= {int(opened): call, int(settled): call}
        verdict = verify(kept.path, kept.head)
        assert verdict.ok, str(verdict)
    with closing(sqlite3.connect(kept.path)) as connection:
        stored = dict(connection.execute("SELECT seq, payload ->> 'call' FROM events"))
        settled = connection.execute(
            "SELECT opened_seq, settled_seq FROM calls WHERE ending = 'done'"
        ).fetchall()
    assert acknowledged.items() <= stored.items()
    assert acknowledged.keys() <= {seq for pair in settled for seq in pair}
