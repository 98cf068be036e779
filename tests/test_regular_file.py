"""A small file is read without waiting, whatever was put in its place."""

import os
from pathlib import Path

import pytest

from handrail.regular_file import NotRegular, read_regular_file


def test_the_content_of_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"words")
    (tmp_path / "link").symlink_to("file")
    assert read_regular_file(tmp_path / "file") == b"words"
    assert read_regular_file(tmp_path / "link") == b"words"


@pytest.mark.timeout(10)
def test_a_fifo_a_folder_and_a_device_are_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", tmp_path, Path("/dev/zero")):
        with pytest.raises(NotRegular, match="is not a regular file"):
            read_regular_file(path)


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    with pytest.raises(NotRegular, match="more than 4 bytes"):
        read_regular_file(tmp_path / "file", most=4)
