"""The index beside a segment, read: written by the keeper, cut anywhere, or missing."""

import struct
from pathlib import Path

import pytest

from handrail.terminal.output.tail import index_path, lines_before, piece_at, pieces


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    return tmp_path / "00000000000000000100.seg"


def write(segment: Path, *numbers: int) -> None:
    index_path(segment).write_bytes(struct.pack(f">{len(numbers)}Q", *numbers))


def test_it_holds_the_lines_before_and_a_time_for_each_piece(segment: Path) -> None:
    write(segment, 7, 0, 100, 1_000, 130, 2_000)
    assert lines_before(segment) == 7
    assert pieces(segment) == [(100, 1_000), (130, 2_000)]


@pytest.mark.parametrize(
    ("offset", "piece"), [(99, None), (100, (100, 1)), (129, (100, 1)), (130, (130, 2)), (999, (130, 2))]
)
def test_a_place_belongs_to_the_piece_that_began_before_it(
    offset: int, piece: tuple[int, int] | None
) -> None:
    assert piece_at([(100, 1), (130, 2)], offset) == piece


def test_a_header_without_pieces_has_none(segment: Path) -> None:
    write(segment, 7, 0)
    assert (lines_before(segment), pieces(segment)) == (7, [])


def test_where_there_is_none_nothing_is_known(segment: Path) -> None:
    assert (lines_before(segment), pieces(segment)) == (None, [])
