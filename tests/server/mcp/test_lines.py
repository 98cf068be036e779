"""Lines over a socket: whole ones, over-long ones, and a peer that does not read."""

from pathlib import Path

import anyio
import pytest
from anyio.abc import ByteReceiveStream
from tests.support.socket_pair import connected_pair

from handrail.server.mcp._lines import UNSENT_BYTES

pytestmark = pytest.mark.anyio

LARGE = b"x" * (4 * UNSENT_BYTES) + b"\n"
"""Far more than a socket holds."""


async def read_exactly(peer: ByteReceiveStream, count: int) -> bytes:
    found = bytearray()
    while len(found) < count:
        found += await peer.receive()
    return bytes(found)


async def test_a_line_comes_whole_however_it_arrives(tmp_path: Path) -> None:
    async with connected_pair(tmp_path) as pair:
        for part in (b"on", b"e\ntw", b"o\n\nthree\n"):
            await pair.peer.send(part)
        assert [await pair.lines.read() for _ in range(4)] == [b"one", b"two", b"", b"three"]


async def test_a_line_that_is_too_long_is_skipped_and_the_next_one_read(tmp_path: Path) -> None:
    async with connected_pair(tmp_path) as pair, anyio.create_task_group() as group:
        group.start_soon(pair.peer.send, LARGE + b"next\n")
        assert await pair.lines.read(100) is None
        assert await pair.lines.read(100) == b"next"


async def test_the_end_of_the_stream_is_told(tmp_path: Path) -> None:
    async with connected_pair(tmp_path) as pair:
        await pair.peer.send(b"last\nunfinished")
        await pair.peer.aclose()
        assert await pair.lines.read() == b"last"
        with pytest.raises(anyio.EndOfStream):
            await pair.lines.read()
        with pytest.raises(anyio.BrokenResourceError):
            await pair.lines.write(b"anybody?\n")


async def test_a_line_once_begun_is_finished_though_its_writer_stopped_waiting(tmp_path: Path) -> None:
    async with connected_pair(tmp_path) as pair, anyio.create_task_group() as group:
        group.start_soon(pair.lines.flush)
        with anyio.CancelScope() as scope:
            scope.cancel()
            await pair.lines.write(LARGE)
        with anyio.move_on_after(0):
            await pair.lines.write(b"given up before there was room\n")
        group.start_soon(pair.lines.write, b"second\n")
        assert await read_exactly(pair.peer, len(LARGE) + 7) == LARGE + b"second\n"
        group.cancel_scope.cancel()


async def test_whoever_has_more_to_say_waits_for_a_peer_that_does_not_read(tmp_path: Path) -> None:
    async with connected_pair(tmp_path) as pair, anyio.create_task_group() as group:
        group.start_soon(pair.lines.flush)
        pair.lines.put(LARGE)
        assert pair.lines.is_full
        with anyio.move_on_after(0.05) as waited:
            await pair.lines.write(b"more\n")
        assert waited.cancelled_caught
        assert await read_exactly(pair.peer, len(LARGE)) == LARGE
        await pair.lines.wait_sent()
        assert not pair.lines.is_full
        group.cancel_scope.cancel()


async def test_a_peer_that_ended_its_input_still_listens_until_it_hangs_up(tmp_path: Path) -> None:
    async with connected_pair(tmp_path) as pair:
        await pair.peer.send_eof()
        with pytest.raises(anyio.EndOfStream):
            await pair.lines.read()
        assert not pair.lines.is_hung_up
        await pair.peer.aclose()
        assert pair.lines.is_hung_up
