"""The demo's little project."""

import subprocess
import sys

from handrail.demo.scene import APPLES, GATE, NEW_LOOP, OLD_LOOP, PEARS, scene


def test_the_project_is_there_while_it_is_needed() -> None:
    with scene() as made:
        assert (made.project / "apples.py").read_text() == APPLES
        assert (made.elsewhere / "old-harvests").is_dir()
    assert not made.project.exists()
    assert not made.elsewhere.exists()


def test_the_edit_fits_and_changes_nothing_that_is_printed() -> None:
    assert APPLES.count(OLD_LOOP) == 1
    edited = APPLES.replace(OLD_LOOP, NEW_LOOP)
    assert edited != APPLES
    assert printed(edited) == printed(APPLES) == "19\n"
    assert printed(PEARS) == "14 pears, most of them in the west\n"


def test_the_program_with_questions_is_one_that_python_takes() -> None:
    assert GATE.count("input(") == GATE.count("getpass(") == 1
    compile(GATE, "gate.py", "exec")


def printed(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=20, check=True
    )
    return done.stdout
