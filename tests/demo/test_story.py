"""The scripted agent: a newcomer sees every part at work, and nothing of it is left behind."""

import subprocess
from pathlib import Path

import pytest
from tests.support.cli_home import BOUND, Home, Json, wait_for, wait_for_output

pytestmark = pytest.mark.e2e


def test_every_part_of_the_demo_ends_as_the_person_decides(alone: Home) -> None:
    with alone.start("demo", "--no-open", stdout=subprocess.PIPE, start_new_session=True) as demo:
        assert demo.stdout is not None
        alone.comes_up()
        questions = alone.asked(3, anywhere=True)
        asked = {row["title"]: row for row in questions}
        counter = next(row for title, row in asked.items() if "tick" in title)
        stray = next(row for title, row in asked.items() if title.startswith("rm "))
        edit = next(row for row in questions if row not in (counter, stray))
        assert (counter["risk"], stray["risk"]) == ("medium", "high")
        alone.ok("deny", stray["id"], "-m", "Stay in your folder.")
        alone.ok("approve", counter["id"])
        alone.printed(counter["call_id"])
        alone.ok("complete", counter["call_id"], "--stop")
        assert "return sum(trees.values())" in alone.ok("approve", edit["id"]).out
        repeated = alone.asked(anywhere=True)[0]
        assert "apples.py" in alone.ok("approve", repeated["id"], "--always").out
        for _ in range(2):  # opening the terminal, a line in it
            alone.ok("approve", alone.asked(anywhere=True)[0]["id"])
        terminal = asks_for_a_secret(alone)
        alone.ok("terminal", "send", terminal, "pippin")
        shown = wait_for_output(alone, terminal, "The gate to the orchard is open.")
        wait_for(lambda: has_ended(alone, "gate.py"), "the end of the program with a question")
        alone.ok("terminal", "close", terminal)
        told = demo.stdout.read()
        assert demo.wait(BOUND) == 0
    for line in (
        "reading apples.py is done",
        "reading a file that is not there failed: ",
        "the counter was completed by you",
        "the edit is done",
        "the flood is done",
        f"`handrail undo {edit['call_id']}` takes it back",
        "counting the apples is done, exit code 0",
        "counting them again is done, exit code 0",
        "deleting outside its work was denied: Stay in your folder.",
        "`ls -l` is done, exit code 0",
        "`ls cherries.py` is done, exit code 2",
        "the program with a question is done, exit code 0",
        "closing the terminal is done",
        "Every call has its outcome.",
    ):
        assert line in told, told
    assert "It printed 5," in told
    assert "#code=" in told
    assert "pippin" not in shown + told
    answered: list[Json] = alone.ok("approvals", "--all", "--json").json
    assert len(answered) == QUESTIONS, [row["title"] for row in answered]
    assert folders_trusted(alone) == []


QUESTIONS = 6
"""Approvals in the whole demo, if the person makes a rule where it says so. There were twelve before commands that only
read passed in trusted folders."""


def folders_trusted(home: Home) -> list[str]:
    rows: list[Json] = home.ok("trust", "--list", "--json").json
    return [row["folder"] for row in rows if row["trusted"]]


def test_the_demo_ends_by_itself_and_leaves_no_question_and_no_folder(alone: Home) -> None:
    alone.up()
    done = alone.ok("demo", "--no-open", "--minutes", "0.05")
    assert "Time is up" in done.out
    assert alone.ok("approvals", "--json").json == []
    project = next(word for word in done.out.split() if "handrail-demo-" in word).rstrip(".")
    assert not Path(project).exists()


def has_ended(home: Home, title: str) -> bool:
    rows: list[Json] = home.ok("calls", "--json").json
    return all(row["status"] not in ("running", "waiting") for row in rows if title in row["title"])


def asks_for_a_secret(home: Home) -> str:
    """The terminal that does, once there is one."""

    def look() -> str | None:
        rows: list[Json] = home.ok("terminals", "--json").json
        return next((row["id"] for row in rows if row["asks"] and row["asks"]["secret"]), None)

    return wait_for(look, "a hidden question")
