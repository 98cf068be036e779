"""Undo over HTTP: what calls did to files is shown, then taken back, and never over somebody else's change."""

from pathlib import Path

from tests.support.daemon_home import Home
from tests.support.mcp_client import Agent, agent
from tests.support.person_client import Person, reader


async def written(client: Agent, person: Person, path: str, content: str) -> str:
    """Let the agent write a file; the id of its call."""
    asked = client.ask("write_file", path=path, content=content)
    call = await person.allow(path)
    assert (await asked.told()).status == "done"
    return call


async def test_what_calls_wrote_is_shown_and_taken_back_and_the_undo_is_undone(
    shared_home: Home, shared_person: Person, workspace: Path
) -> None:
    person, file = shared_person, workspace / "notes.txt"
    file.write_text("mine\n")
    async with agent(shared_home, workspace, person) as client:
        call = await written(client, person, "notes.txt", "theirs\n")
    assert (await person.call(call))["files"][0]["path"] == str(file)
    shown = await person.get(f"undo/{call}")
    (one,) = shown["files"]
    assert (shown["of"], one["path"], one["does"]) == ("call", str(file), "restore")
    assert "-theirs" in one["diff"]
    assert "+mine" in one["diff"]
    stale = await person.ask("POST", f"undo/{call}", {"digest": "0" * 64})
    assert stale.status_code == 409
    assert file.read_text() == "theirs\n"
    done = await person.post(f"undo/{call}", {"digest": shown["digest"]})
    assert file.read_text() == "mine\n"
    again = await person.get(f"undo/{done['undo']}")
    await person.post(f"undo/{done['undo']}", {"digest": again["digest"]})
    assert file.read_text() == "theirs\n"
    entries = (await person.get("events", after=0))["entries"]
    facts = [entry["event"] for entry in entries if entry["event"]["kind"] == "FilesRestored"]
    assert [fact["by"] for fact in facts] == ["a person on the page"] * 2


async def test_a_later_change_of_somebody_elses_is_not_taken_back_over(
    shared_home: Home, shared_person: Person, workspace: Path
) -> None:
    person = shared_person
    async with agent(shared_home, workspace, person) as client:
        call = await written(client, person, "new.txt", "made\n")
    (workspace / "new.txt").write_text("made, then mine\n")
    shown = await person.get(f"undo/{call}")
    (one,) = shown["files"]
    assert (one["does"], bool(one["says"])) == ("refuse", True)
    await person.post(f"undo/{call}", {"digest": shown["digest"]})
    assert (workspace / "new.txt").read_text() == "made, then mine\n"


async def test_what_files_held_is_for_people_and_nothing_is_undone_that_never_was(
    shared_home: Home, shared_person: Person
) -> None:
    missing = await shared_person.ask("GET", "undo/nope")
    assert missing.status_code == 404
    assert "There is no call" in missing.json()["detail"]
    with reader(shared_home) as bearer:
        watcher = Person(shared_home, bearer)
        assert (await watcher.ask("GET", "undo/nope")).status_code == 403
        assert (await watcher.ask("POST", "undo/nope", {"digest": "0" * 64})).status_code == 403
        assert (await watcher.ask("GET", "rules")).status_code == 200
