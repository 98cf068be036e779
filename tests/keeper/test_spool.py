"""Segments on disk: offsets are absolute, the cap holds, and a refusing disk ends the recording."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.keeper.spool import Spool, segment_name
from handrail.terminal.tail import Tail


@given(st.lists(st.binary(max_size=300), max_size=40), st.integers(8, 2000))
def test_what_is_kept_is_the_end_of_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], cap: int
) -> None:
    directory = tmp_path_factory.mktemp("spool") / "t"
    spool, tail, written = Spool(str(directory), cap), Tail(directory), b"".join(pieces)
    for piece in pieces:
        spool.append(memoryview(piece))
    assert spool.size == tail.end == len(written)
    assert tail.first == spool.first
    assert len(written) - spool.first <= cap
    assert len(written) - spool.first >= min(len(written), cap - cap // 8 - cap // 8)
    found, at = b"", spool.first
    while (read := tail.read(at, 50))[0]:
        found, at = found + read[0], read[1]
    assert found == written[spool.first :]
    spool.close()


def test_nothing_is_made_before_the_first_byte(tmp_path: Path) -> None:
    Spool(str(tmp_path / "t"), 100).close()
    assert not (tmp_path / "t").exists()


def test_only_its_owner_may_read_a_spool(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path / "t"), 100)
    spool.append(memoryview(b"x"))
    assert (tmp_path / "t").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "t" / segment_name(0)).stat().st_mode & 0o777 == 0o600
    spool.delete()
    assert not (tmp_path / "t").exists()


def test_a_disk_that_refuses_ends_the_recording_with_the_reason() -> None:
    spool = Spool("/dev/null/t", 100)
    spool.append(memoryview(b"lost"))
    assert spool.unrecorded is not None
    assert "/dev/null/t" in spool.unrecorded
    spool.append(memoryview(b"more"))
    assert spool.size == 0


def test_a_segment_that_someone_removed_is_no_fault(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path / "t"), 80)
    for _ in range(7):
        spool.append(memoryview(b"0123456789"))
    (tmp_path / "t" / segment_name(0)).unlink()
    for _ in range(7):
        spool.append(memoryview(b"0123456789"))
    assert (spool.size, spool.unrecorded) == (140, None)
    spool.close()
