"""A tail read by cursor: gaps are shown, followers sleep until the bell, and the end is final."""

import time
from pathlib import Path

import anyio
import anyio.lowlevel
from tests.support.keeper_terminals import BOUND

from handrail.keeper.spool import Spool
from handrail.terminal.output.tail import KeptRange, Tail


def spool_with(directory: Path, data: bytes, cap: int = 800) -> Spool:
    spool = Spool(str(directory), cap)
    spool.append(memoryview(data))
    return spool


async def test_a_read_before_what_is_kept_begins_at_the_first_kept_byte(tmp_path: Path) -> None:
    spool_with(tmp_path / "t", bytes(range(256)) * 8).close()
    tail = Tail(tmp_path / "t")
    data, following = tail.read(10, 20)
    assert following - len(data) == tail.first > 10
    assert data == (bytes(range(256)) * 8)[tail.first : tail.first + 20]


async def test_a_read_at_or_past_the_end_gives_nothing_and_stays(tmp_path: Path) -> None:
    spool_with(tmp_path / "t", b"x" * 250).close()
    tail = Tail(tmp_path / "t")
    assert tail.read(250) == (b"", 250)
    for far in (999, 2**63, 2**70):
        assert tail.read(far) == (b"", far)


async def test_a_read_across_a_segment_goes_on_in_the_next(tmp_path: Path) -> None:
    spool_with(tmp_path / "t", b"a" * 100 + b"b" * 100).close()
    tail = Tail(tmp_path / "t")
    assert tail.read(90) == (b"a" * 10, 100)
    assert tail.read(100) == (b"b" * 100, 200)


async def test_a_terminal_that_never_printed_has_an_empty_tail(tmp_path: Path) -> None:
    tail = Tail(tmp_path / "none")
    assert (tail.first, tail.end, tail.read(0)) == (0, 0, (b"", 0))
    assert tail.kept_range == KeptRange(0, 0, 0)


async def test_one_look_tells_what_three_would(tmp_path: Path) -> None:
    spool_with(tmp_path / "t", b"a line\n" * 500).close()
    tail = Tail(tmp_path / "t")
    assert tail.kept_range == KeptRange(tail.first, tail.end, tail.lines_dropped)
    assert (tail.first > 0, tail.end, tail.lines_dropped) == (True, 3500, tail.first // 7)


async def test_followers_at_different_places_and_paces_all_get_the_rest(tmp_path: Path) -> None:
    spool, tail = spool_with(tmp_path / "t", b"0123"), Tail(tmp_path / "t")
    found: dict[int, bytes] = {0: b"", 2: b"", 7: b""}

    async def follow(start: int) -> None:
        async def take(data: bytes, offset: int) -> None:
            for _ in range(start):
                await anyio.lowlevel.checkpoint()
            assert offset == start + len(found[start])
            found[start] += data

        await tail.follow(start, take)

    async with anyio.create_task_group() as group:
        for start in (0, 2, 7):
            group.start_soon(follow, start)
        with anyio.fail_after(BOUND):
            for piece in (b"456", b"789"):
                await anyio.wait_all_tasks_blocked()
                spool.append(memoryview(piece))
                tail.ring()
            await anyio.wait_all_tasks_blocked()
            tail.close()
    assert found == {0: b"0123456789", 2: b"23456789", 7: b"789"}
    spool.close()


async def test_a_follower_of_a_closed_tail_gets_all_and_returns(tmp_path: Path) -> None:
    spool_with(tmp_path / "t", b"x" * 500).close()
    found: list[int] = []

    async def take(data: bytes, _offset: int) -> None:
        found.append(len(data))

    with anyio.fail_after(BOUND):
        assert await Tail(tmp_path / "t", closed=True).follow(0, take) == 500
    assert sum(found) == 500


async def test_what_was_dropped_is_counted_in_lines(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path / "t"), 1 << 20, cap_lines=80)
    for number in range(500):
        spool.append(memoryview(f"line {number}\n".encode()))
    spool.close()
    tail = Tail(tmp_path / "t")
    kept = tail.read(tail.first, 1 << 20)[0]
    assert tail.lines_dropped > 400
    assert kept.startswith(f"line {tail.lines_dropped}\n".encode())


async def test_the_last_pieces_begin_where_they_were_written(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path / "t"), 800)
    for size in (60, 60, 30, 10, 5):
        spool.append(memoryview(b"x" * size))
    spool.close()
    tail = Tail(tmp_path / "t")
    assert [tail.chunks(last) for last in range(6)] == [165, 160, 150, 120, 100, 60]
    assert tail.chunks(99) == 0


async def test_each_place_says_when_it_was_written(tmp_path: Path) -> None:
    before = time.time_ns() // 1_000_000
    spool_with(tmp_path / "t", b"x" * 250).close()
    tail = Tail(tmp_path / "t")
    times = [tail.time_of(offset) for offset in (0, 99, 100, 249)]
    assert all(at is not None and before <= at <= time.time_ns() // 1_000_000 for at in times)
    assert tail.last_at is not None
    assert tail.last_at * 1000 >= before - 1000  # a file system may round


async def test_a_spool_from_before_there_was_an_index_still_reads(tmp_path: Path) -> None:
    spool_with(tmp_path / "t", b"x" * 250).close()
    for index in (tmp_path / "t").glob("*.idx"):
        index.unlink()
    tail = Tail(tmp_path / "t")
    assert (tail.first, tail.end, tail.lines_dropped) == (0, 250, 0)
    assert (tail.time_of(10), tail.chunks(1), tail.chunks(2), tail.chunks(9)) == (None, 200, 100, 0)
    assert tail.read(200) == (b"x" * 50, 250)


async def test_an_index_cut_short_in_the_middle_of_a_note_is_read_up_to_there(tmp_path: Path) -> None:
    spool_with(tmp_path / "t", b"x" * 50).close()
    index = tmp_path / "t" / "00000000000000000000.idx"
    index.write_bytes(index.read_bytes() + b"\x00\x01")
    assert Tail(tmp_path / "t").chunks(1) == 0
    index.write_bytes(b"\x00")
    assert (Tail(tmp_path / "t").lines_dropped, Tail(tmp_path / "t").time_of(3)) == (0, None)
