"""An acknowledged record survives `kill -9`."""

import os
import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from tests.store.conftest import Kept

from handrail.store.integrity import verify

KILLS = 20
ROOT = Path(__file__).parents[2]


def acknowledged_until_killed(kept: Kept, wanted: int) -> list[str]:
    """Run the appender, kill it after `wanted` acknowledgements; every whole line it wrote."""
    child = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("appender.py")), str(kept.path), str(kept.head)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    assert child.stdout is not None
    with child.stdout as acks:
        lines = [acks.readline() for _ in range(wanted)]
        child.kill()
        rest = acks.read().splitlines(keepends=True)
    child.wait(timeout=10)
    return [line.decode() for line in (*lines, *rest) if line.endswith(b"\n")]


@pytest.mark.timeout(180)
def test_no_acknowledged_record_is_missing_after_twenty_kills(kept: Kept) -> None:
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
