"""Segments on disk: offsets are absolute, the cap holds, and a refusing disk ends the recording."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.keeper.spool import Spool, after_lines, index_name, segment_name
from handrail.terminal.output.tail import Tail


@settings(deadline=None)
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


LINES = st.lists(
    st.lists(st.sampled_from([b"\n", b"a line\n", b"no end"]), max_size=60).map(b"".join), max_size=30
)


@settings(deadline=None)
@given(LINES, st.integers(80, 800), st.integers(8, 100))
def test_no_more_lines_are_kept_than_the_cap_and_those_dropped_are_counted(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], cap: int, cap_lines: int
) -> None:
    directory = tmp_path_factory.mktemp("spool") / "t"
    spool, written = Spool(str(directory), cap, cap_lines), b"".join(pieces)
    for piece in pieces:
        spool.append(memoryview(piece))
    spool.close()
    kept = b"".join(path.read_bytes() for path in sorted(directory.glob("*.seg")))
    assert written.endswith(kept)
    assert len(kept) == len(written) - spool.first <= cap
    assert kept.count(b"\n") <= cap_lines
    assert spool.lines == written.count(b"\n")
    assert spool.lines_dropped == written[: spool.first].count(b"\n")
    # Nothing is dropped for less than a segment's worth of reason.
    dropped = spool.first > 0
    assert (
        not dropped
        or len(kept) > cap - 2 * (cap // 8)
        or kept.count(b"\n") > cap_lines - 2 * (cap_lines // 8)
    )


@given(st.lists(st.binary(max_size=9).filter(lambda each: b"\n" not in each), min_size=1))
def test_the_end_of_a_line_is_found_by_halving(lines: list[bytes]) -> None:
    whole, wanted = b"".join(line + b"\n" for line in lines), (len(lines) + 1) // 2
    assert after_lines(whole, wanted) == sum(len(line) + 1 for line in lines[:wanted])


def test_a_dropped_segment_takes_its_index_with_it(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path / "t"), 80)
    for _ in range(50):
        spool.append(memoryview(b"0123456789"))
    spool.close()
    names = sorted(path.name for path in (tmp_path / "t").iterdir())
    starts = range(spool.first, spool.size, 10)
    assert names == sorted([*map(segment_name, starts), *map(index_name, starts)])


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
