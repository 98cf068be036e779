"""One daemon per home; a stale lock is taken over."""

import subprocess
import sys
from pathlib import Path

import pytest

from handrail.daemon.state_files import AlreadyRunning, hold_lock


def test_a_second_holder_is_refused_with_a_sentence(tmp_path: Path) -> None:
    with (
        hold_lock(tmp_path / "lock"),
        pytest.raises(AlreadyRunning, match="handrail down"),
        hold_lock(tmp_path / "lock"),
    ):
        pass


def test_a_released_lock_can_be_held_again(tmp_path: Path) -> None:
    for _ in range(2):
        with hold_lock(tmp_path / "lock"):
            assert (tmp_path / "lock").exists()


def test_removing_the_lock_file_lets_no_second_holder_in(tmp_path: Path) -> None:
    with hold_lock(tmp_path / "lock"):
        (tmp_path / "lock").unlink()
        with pytest.raises(AlreadyRunning, match="handrail down"), hold_lock(tmp_path / "lock"):
            pass


def test_the_folder_of_the_database_is_held_too(tmp_path: Path) -> None:
    data, states = tmp_path / "data", [tmp_path / "state", tmp_path / "other"]
    for folder in (data, *states):
        folder.mkdir()
    with (
        hold_lock(states[0] / "lock", data),
        pytest.raises(AlreadyRunning),
        hold_lock(states[1] / "lock", data),
    ):
        pass


def test_the_lock_of_a_killed_holder_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    code = (
        "import sys\nfrom pathlib import Path\nfrom handrail.daemon.state_files import hold_lock\n"
        "with hold_lock(Path(sys.argv[1])):\n    print('held', flush=True)\n    sys.stdin.read()\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(AlreadyRunning), hold_lock(path):
            pass
        holder.kill()
        holder.wait(10)
        with hold_lock(path):
            assert path.exists()
