"""The runner of the whole suite counts every test, prints every failure, and never loses a lane silently."""

import os
import subprocess
import sys
from pathlib import Path

from tests.house.source import ROOT

BOUND = 100
FLICKERED = "Flickered (failed, then passed alone: find the race):\n"
FILES = {
    "good": "def test_one(): pass\ndef test_two(): pass\n",
    "bad": "def test_bad():\n    print('printed before')\n    assert 1 == 2\ndef test_good(): pass\n",
    "broken": "import there_is_no_such_module\n",
    "skipping": "import pytest\n@pytest.mark.skip(reason='too early')\ndef test_later(): pass\n",
    "serial": "import pytest\n@pytest.mark.serial\ndef test_alone(): pass\ndef test_beside(): pass\n",
    "fatal": "import os\ndef test_fatal(): os._exit(3)\n",
    "flickering": "from pathlib import Path\ndef test_flickering():\n    flag = Path(__file__).with_name('seen')\n"
    "    known = flag.exists()\n    flag.touch()\n    assert known, 'lost a race'\n",
    "needy": "from pathlib import Path\ndef test_needy(): assert Path(__file__).with_name('flag').exists()\n",
}


def run_suite(folder: Path, *names: str, options: tuple[str, ...] = ()) -> tuple[int, str]:
    """Run the suite on files of these names; its exit status and its output."""
    tests = folder / "tests"
    tests.mkdir()
    for name in names:
        (tests / f"test_{name}.py").write_text(FILES[name])
    argv = [sys.executable, "-m", "scripts.suite", "--records", str(folder / "records"), *options, str(tests)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=BOUND, check=False)
    return done.returncode, done.stdout + done.stderr


def last_line(output: str) -> str:
    return output.splitlines()[-1]


def test_two_lanes_and_the_checks_are_counted_in_the_last_line(tmp_path: Path) -> None:
    needs = f"{os.path.relpath(tmp_path / 'tests', ROOT)}=touch {tmp_path / 'tests' / 'flag'}"
    names = ("good", "skipping", "serial", "needy")
    code, output = run_suite(tmp_path, *names, options=("--lanes", "2", "--before", needs, "--check", "true"))
    assert (code, last_line(output)) == (0, "7 passed, 0 failed, 1 skipped")
    assert "too early" in output


def test_every_failure_is_printed_in_full_and_a_lane_that_dies_names_its_test(tmp_path: Path) -> None:
    ugly = "sh -c 'echo ugly; exit 1'"
    code, output = run_suite(
        tmp_path, "fatal", "bad", "broken", "flickering", options=("--lanes", "2", "--check", ugly)
    )
    assert (code, last_line(output)) == (1, "1 passed, 5 failed")
    wanted = (
        FLICKERED,
        "lost a race",
        "assert 1 == 2",
        "printed before",
        "there_is_no_such_module",
        "ugly",
        "ended with status 3 at ",
    )
    assert [words for words in wanted if words not in output] == []


def test_files_that_no_lane_could_run_are_a_failure(tmp_path: Path) -> None:
    code, output = run_suite(tmp_path, "good", options=("--lanes", "1", "--extra=--no-such-option"))
    assert (code, last_line(output)) == (1, "0 passed, 2 failed")
    assert "no-such-option" in output


def test_a_test_that_passes_alone_can_be_accepted_as_a_flicker_and_is_printed_all_the_same(
    tmp_path: Path,
) -> None:
    code, output = run_suite(tmp_path, "bad", "flickering", options=("--lanes", "1", "--flickers", "3"))
    assert (code, last_line(output)) == (1, "1 passed, 1 failed")
    assert "lost a race" in output
    assert FLICKERED in output
