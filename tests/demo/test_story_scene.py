"""The demo's little project."""

import subprocess
import sys

from handrail.demo.story import APPLES, EDIT, GATE, make_scene
from handrail.tools.files.diff import unified
from handrail.tools.files.edit_tools import apply
from handrail.tools.files.patch import parse


def test_the_project_is_there_while_it_is_needed() -> None:
    with make_scene() as made:
        assert (made.project / "apples.py").read_text() == APPLES
        assert (made.elsewhere / "old-harvests").is_dir()
    assert not made.project.exists()
    assert not made.elsewhere.exists()


def test_the_edit_fits_and_is_seen_as_three_hunks_of_which_the_last_prints_something_else() -> None:
    hunks = list(parse(EDIT).hunks)
    tidied, edited = (apply(APPLES, hunks[:most], "apples.py") for most in (2, 3))
    assert unified("apples.py", APPLES.encode(), edited.encode()).text.count("\n@@") == 3
    assert printed(tidied) == printed(APPLES) == "19\n"
    assert printed(edited).startswith("19 apples")


def test_the_program_with_a_question_is_one_that_python_takes() -> None:
    assert GATE.count("getpass(") == 1
    compile(GATE, "gate.py", "exec")


def printed(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=20, check=True
    )
    return done.stdout
