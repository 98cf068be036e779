"""Undo from the command line: shown, asked for, done as shown."""

import pytest
from tests.support.cli_home import Agent, Home, Screen

from handrail.cli.interactive.keyboard import GUARD_SECONDS

pytestmark = pytest.mark.e2e


def written(handrail: Home, agent: Agent, path: str, content: str) -> str:
    """Let the agent write a file; the id of its call."""
    request = agent.call("write_file", path=path, content=content)
    handrail.ok("approve", handrail.asked()[0]["id"])
    answer = agent.answer(request)["structuredContent"]
    assert answer["status"] == "done"
    return answer["call_id"]


def test_a_dry_run_shows_what_would_be_done_and_does_nothing(handrail: Home, agent: Agent) -> None:
    file = handrail.workspace / "notes.txt"
    file.write_text("mine\n")
    call = written(handrail, agent, "notes.txt", "theirs\n")
    out = handrail.ok("undo", call[:6], "--dry-run").out
    assert out.startswith(f"Undo of the call {call}  Write notes.txt\n")
    assert f"restore  {file}  +1 \N{MINUS SIGN}1  It gets back what it held before" in out
    assert "  -theirs\n  +mine\n" in out
    told = handrail.ok("undo", call, "--dry-run", "--json").json
    assert (told["of"], told["what"], told["undo"]) == ("call", call, None)
    assert [one["does"] for one in told["files"]] == ["restore"]
    assert file.read_text() == "theirs\n"


def test_files_are_put_back_and_the_undo_can_be_undone(handrail: Home, agent: Agent) -> None:
    file = handrail.workspace / "notes.txt"
    file.write_text("mine\n")
    call = written(handrail, agent, "notes.txt", "theirs\n")
    out = handrail.ok("undo", call).out
    assert file.read_text() == "mine\n"
    undo = out.rpartition("`handrail undo ")[2].partition("`")[0]
    assert f"restored  {file}" in out
    done = handrail.ok("undo", undo, "--json").json
    assert file.read_text() == "theirs\n"
    assert done["undo"] is not None


def test_somebody_elses_change_is_left_alone_and_said(handrail: Home, agent: Agent) -> None:
    call = written(handrail, agent, "new.txt", "made\n")
    file = handrail.workspace / "new.txt"
    file.write_text("made, then mine\n")
    refused = handrail.run("undo", call)
    assert refused.code == 1
    assert f"leave alone  {file}" in refused.out
    assert "It was changed since, by hand or by a command" in refused.out
    assert refused.err.startswith("1 file left alone; nothing was undone.")
    assert file.read_text() == "made, then mine\n"
    assert handrail.run("undo", call, "--dry-run").code == 0


def test_what_commands_did_is_not_covered_and_said(handrail: Home, agent: Agent) -> None:
    request = agent.call("execute_command", command="touch made-by-a-command", wait_seconds=600)
    handrail.ok("approve", handrail.asked()[0]["id"])
    call = agent.answer(request)["structuredContent"]["call_id"]
    done = handrail.run("undo", call)
    assert "Not covered:\n  Whatever this changed: " in done.out
    assert "touch made-by-a-command" in done.out
    assert (done.code, done.err.startswith("Nothing was undone")) == (1, True)
    assert (handrail.workspace / "made-by-a-command").exists()


def test_an_id_that_is_not_there_is_told(handrail: Home) -> None:
    done = handrail.run("undo", "nope")
    assert (done.code, "There is no call, operation, thread or undo nope." in done.err) == (1, True)


def test_on_a_terminal_it_is_asked_for_and_keys_from_before_answer_nothing(
    handrail: Home, agent: Agent
) -> None:
    call = written(handrail, agent, "new.txt", "made\n")
    file = handrail.workspace / "new.txt"
    with Screen(handrail, "undo", call) as screen:
        screen.type("yyyy")
        assert "remove" in screen.shows("Undo 1 file?")
        screen.shows("[n]o")
        screen.type("y")
        assert screen.stays_without("removed", GUARD_SECONDS + 0.2)
        screen.press("\n", "Nothing was changed.")
        assert screen.ends() == 1
    assert file.exists()
    with Screen(handrail, "undo", call) as screen:
        screen.shows("[n]o")
        assert screen.stays_without("removed", GUARD_SECONDS + 0.2)
        screen.press("y", "removed")
    assert not file.exists()
    written(handrail, agent, "new.txt", "again\n")
    last = handrail.calls()[0]["id"]
    with Screen(handrail, "undo", last, "--yes") as screen:
        screen.shows("removed")


def test_what_changes_while_it_is_looked_at_is_not_undone_over(handrail: Home, agent: Agent) -> None:
    call = written(handrail, agent, "new.txt", "made\n")
    file = handrail.workspace / "new.txt"
    with Screen(handrail, "undo", call) as screen:
        screen.shows("[n]o")
        file.write_text("mine\n")
        assert screen.stays_without("removed", GUARD_SECONDS + 0.2)
        screen.press("y", "is no longer what you were shown.")
        assert screen.ends() == 1
    assert file.read_text() == "mine\n"
