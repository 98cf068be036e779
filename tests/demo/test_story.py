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
        asked = {row["title"]: row for row in alone.asked(4, anywhere=True)}
        counter = next(row for title, row in asked.items() if "tick" in title)
        stray = next(row for title, row in asked.items() if title.startswith("rm "))
        alone.ok("deny", stray["id"], "-m", "Stay in your folder.")
        for row in asked.values():
            if row is not stray:
                alone.ok("approve", row["id"])
        alone.printed(counter["call_id"])
        alone.ok("complete", counter["call_id"], "--stop")
        edit = alone.asked(anywhere=True)[0]
        assert "return sum(trees.values())" in alone.ok("approve", edit["id"]).out
        repeated = alone.asked(anywhere=True)[0]
        assert "apples.py" in alone.ok("approve", repeated["id"], "--always").out
        for _ in range(6):  # opening the terminal, four lines in it, one answer
            alone.ok("approve", alone.asked(anywhere=True)[0]["id"])
        terminal = asks_for_a_secret(alone)
        alone.ok("terminal", "send", terminal, "pippin")
        shown = wait_for_output(alone, terminal, "The gate to the north tree is open.")
        wait_for(lambda: has_ended(alone, "gate.py"), "the end of the program with questions")
        alone.ok("terminal", "close", terminal)
        told = demo.stdout.read()
        assert demo.wait(BOUND) == 0
    for line in (
        "reading apples.py is done",
        "reading a file that is not there failed: ",
        "the counter was completed by you",
        "the new file is done",
        "the edit is done",
        "the flood is done",
        f"`handrail undo {edit['call_id']}` takes it back",
        "counting the apples is done, exit code 0",
        "counting them again is done, exit code 0",
        "deleting outside its work was denied: Stay in your folder.",
        "a line in it is done, exit code 0",
        "a line that cannot work is done, exit code 2",
        "is open, held by pid ",
        "its answer is done",
        "the program with questions is done, exit code 0",
        "closing the terminal is done",
        "Every call has its outcome.",
    ):
        assert line in told, told
    assert "It printed 5," in told
    assert "#code=" in told
    assert "pippin" not in shown + told


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
