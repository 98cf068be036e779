"""A terminal's output read from disk, while the keeper goes on writing and dropping."""

import tempfile
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from handrail.door.attach_client import SpoolReader
from handrail.keeper.spool import Spool


@contextmanager
def written(directory: Path, at: int = 0, cap: int = 8000) -> Generator[tuple[Spool, SpoolReader]]:
    """A spool and its reader, both closed afterwards."""
    with (
        closing(Spool(str(directory / "t1"), cap)) as spool,
        closing(SpoolReader(spool.directory, at)) as reader,
    ):
        yield spool, reader


def all_of(reader: SpoolReader, most: int = 1 << 16) -> bytes:
    return b"".join(iter(lambda: reader.read(most), b""))


def test_nothing_is_there_before_the_first_byte(tmp_path: Path) -> None:
    assert SpoolReader(str(tmp_path / "t1")).read(100) == b""


def test_it_reads_on_over_the_ends_of_segments(tmp_path: Path) -> None:
    with written(tmp_path) as (spool, reader):
        got = expected = b""
        for number in range(3000):
            line = b"line %d\n" % number
            spool.append(memoryview(line))
            expected += line
            got += reader.read(5) if number % 2 else all_of(reader)
        assert got + all_of(reader) == expected
        assert (reader.lost, reader.at) == (0, len(expected))
        assert reader.read(10) == b""


def test_what_was_dropped_before_it_was_read_is_counted(tmp_path: Path) -> None:
    with written(tmp_path) as (spool, reader):
        spool.append(memoryview(b"a" * 500))
        assert reader.read(100) == b"a" * 100
        for _ in range(10):
            spool.append(memoryview(b"b" * 4000))
        rest = all_of(reader)
        assert rest.startswith(b"a" * 400)  # a file that is being read is still there for the reader
        assert reader.lost > 0
        assert 100 + len(rest) + reader.lost == spool.size == reader.at


def test_it_can_begin_in_the_middle(tmp_path: Path) -> None:
    with written(tmp_path, at=3000) as (spool, reader):
        spool.append(memoryview(bytes(range(256)) * 20))
        assert all_of(reader) == (bytes(range(256)) * 20)[3000:]


def test_it_passes_over_all_but_the_last_bytes(tmp_path: Path) -> None:
    data = bytes(range(256)) * 200
    with written(tmp_path, cap=80_000) as (spool, reader):
        spool.append(memoryview(data))
        reader.read(1000)
        assert reader.skip(700) == len(data) - 1000 - 700
        assert all_of(reader) == data[-700:]
        assert reader.skip(700) == 0
        spool.append(memoryview(b"more"))
        assert all_of(reader) == b"more"
        assert reader.lost == 0


@given(st.lists(st.tuples(st.integers(1, 3000), st.integers(0, 4000)), max_size=40))
def test_every_byte_is_read_once_or_counted_as_lost(steps: list[tuple[int, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder, written(Path(folder)) as (spool, reader):
        got, everything = 0, b""
        for size, most in steps:
            data = bytes((len(everything) + index) % 251 for index in range(size))
            spool.append(memoryview(data))
            everything += data
            if most:
                piece = reader.read(most)
                assert piece == everything[reader.at - len(piece) : reader.at]
                got += len(piece)
        got += len(all_of(reader))
        assert got + reader.lost == len(everything) == reader.at
