"""The index tells when each chunk came and how many lines were before it, and is never in the way of the output."""

import struct
import time
from pathlib import Path

from handrail.keeper.spool import CHUNK_MIN, FREE_CHUNKS, Index, Spool, index_name


def read(path: Path) -> tuple[int, list[tuple[int, int]]]:
    """The lines before, and the chunks as (offset, milliseconds)."""
    (before, _), *chunks = struct.iter_unpack(">QQ", path.read_bytes())
    return before, [(offset, at) for offset, at in chunks]


def test_every_chunk_is_noted_with_its_offset_and_its_time(tmp_path: Path) -> None:
    began = time.time_ns() // 1_000_000
    spool = Spool(str(tmp_path / "t"), 1 << 20)
    for piece in (b"one\n", b"two", b" and three\n"):
        spool.append(memoryview(piece))
    spool.note()
    before, chunks = read(tmp_path / "t" / index_name(0))
    ended = time.time_ns() // 1_000_000
    assert before == 0
    assert [offset for offset, _ in chunks] == [0, 4, 7]
    assert all(began <= at <= ended for _, at in chunks)
    spool.close()


def test_each_segment_begins_with_the_lines_before_it_and_a_chunk_at_its_start(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path / "t"), 1 << 20, cap_lines=80)
    spool.append(memoryview(b"x\n" * 35))
    spool.close()
    found = {path.name: read(path) for path in (tmp_path / "t").glob("*.idx")}
    assert {name: (before, [offset for offset, _ in chunks]) for name, (before, chunks) in found.items()} == {
        index_name(20 * part): (10 * part, [20 * part]) for part in range(4)
    }


def test_a_program_that_prints_byte_by_byte_is_not_noted_byte_by_byte_for_ever(tmp_path: Path) -> None:
    index = Index(str(tmp_path), 0, 7)
    for offset in range(FREE_CHUNKS + 10 * CHUNK_MIN):
        index.note(offset)
    index.close()
    before, chunks = read(tmp_path / index_name(0))
    assert before == 7
    assert len(chunks) == FREE_CHUNKS + 10
    assert chunks[-1][0] == FREE_CHUNKS - 1 + 10 * CHUNK_MIN


def test_an_index_that_the_disk_refuses_does_not_stop_the_output(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / index_name(0)).mkdir()
    spool = Spool(str(tmp_path / "t"), 1 << 20)
    spool.append(memoryview(b"kept"))
    spool.note()
    spool.close()
    assert spool.unrecorded is None
    assert sorted(path.name for path in (tmp_path / "t").iterdir() if path.is_file()) == [f"{0:020d}.seg"]
