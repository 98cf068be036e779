"""Approvals from end to end: what a person is shown and answers, and what becomes of it, over restarts too."""

from pathlib import Path

from tests.support.daemon_home import Home, eventually, running_daemon
from tests.support.mcp_client import Agent, agent
from tests.support.person_client import Json, Person, person_of, reader

OPEN = 20


async def test_questions_that_were_open_at_a_kill_are_all_there_and_can_be_answered(
    home: Home, person: Person, workspace: Path
) -> None:
    async with agent(home, workspace) as client:
        before = await open_questions(client, person)
        home.kill()
        await client.use("list_calls")  # which brings the daemon back
        after: list[Json] = await person.get("approvals", open=True)
        for number, one in enumerate(after):
            (
                await person.answer(one, "deny" if number % 4 == 3 else "allow", f"number {number}")
            ).raise_for_status()
        settled = [await person.settled(one["call_id"]) for one in after]

    shown = ("id", "call_id", "digest", "title", "input", "claims", "risk", "reasons", "preview", "verdicts")
    assert [{name: one[name] for name in shown} for one in after] == [
        {name: one[name] for name in shown} for one in before
    ]
    assert all(not one["client_gone"] and one["status"] == "open" for one in after)
    state = await person.get("state")
    assert (state["started"]["crashed"], state["started"]["approvals_kept"]) == (True, OPEN)
    for number, (one, call) in enumerate(zip(after, settled, strict=True)):
        denied = number % 4 == 3
        assert call["status"] == ("denied" if denied else "done"), one["title"]
        assert call["message"] == (f"number {number}" if denied else "")
        asked: str = one["input"].get("path") or one["input"]["command"]
        assert (workspace / asked.removeprefix("touch ")).exists() is not denied, one["title"]


async def open_questions(client: Agent, person: Person) -> list[Json]:
    """Twenty calls that wait for a person: commands and writes in turn."""
    for number in range(OPEN):
        if number % 2:
            client.ask("execute_command", command=f"touch made-{number}", wait_seconds=50)
        else:
            client.ask("write_file", path=f"made-{number}", content=f"{number}\n")

    async def look() -> list[Json] | None:
        asked = await person.get("approvals", open=True)
        return asked if len(asked) == OPEN else None

    return await eventually(look)


async def test_an_edited_command_runs_as_it_was_shown_and_the_agent_is_told(
    shared_home: Home, shared_person: Person, workspace: Path
) -> None:
    person = shared_person
    async with agent(shared_home, workspace, person) as client:
        asked = client.ask("execute_command", command="touch wrong")
        question = await person.question("touch wrong")
        where = f"approvals/{question['id']}"
        edit = await person.post(f"{where}/edit", {"input": {"command": "touch right"}})
        assert edit["preview"]["command"] == "touch right"
        body = {"answer": "allow", "input": {"command": "touch right"}}
        unseen = await person.ask("POST", f"{where}/answer", {**body, "digest": question["digest"]})
        assert unseen.status_code == 409, "the digest is of what would run, not of what was asked"
        unfit = await person.ask("POST", f"{where}/edit", {"input": {"comand": "touch right"}})
        assert (unfit.status_code, "comand" in unfit.json()["detail"]) == (422, True)
        answered = await person.post(f"{where}/answer", {**body, "digest": edit["digest"]})
        told = await asked.told()
    assert (answered["status"], answered["edited"]) == ("allowed", True)
    assert told.data["edited"] == {"input": {"command": "touch right"}, "asked": {"command": "touch wrong"}}
    assert edit["tells"] in told.text
    call = await person.call(told.call)
    assert (call["input"]["command"], call["asked"]["command"]) == ("touch right", "touch wrong")
    assert [one["title"] for one in await person.get("calls", q=f"id:{told.call}")] == [call["title"]]
    assert call["title"] == "touch right"
    assert ((workspace / "right").exists(), (workspace / "wrong").exists()) == (True, False)


async def test_a_reviewed_proposal_is_written_as_the_person_left_it(
    shared_home: Home, shared_person: Person, workspace: Path
) -> None:
    person, file = shared_person, workspace / "poem.txt"
    file.write_text("one\ntwo\n")
    async with agent(shared_home, workspace, person) as client:
        asked = client.ask("write_file", path="poem.txt", content="ONE\ntwo\nthree\n")
        question = await person.question("poem.txt")
        where = f"approvals/{question['id']}"
        assert question["reviewable"] is True
        proposal = await person.get(f"{where}/proposal")
        assert (proposal["before"], proposal["after"]) == ("one\ntwo\n", "ONE\ntwo\nthree\n")
        assert proposal["changed"] is None
        review = {"content": "one\ntwo\nthree\n"}
        edit = await person.post(f"{where}/edit", review)
        comments = [{"line": 1, "text": "Keep it small."}]
        body = {"answer": "allow", "digest": edit["digest"], "comments": comments, **review}
        (await person.ask("POST", f"{where}/answer", body)).raise_for_status()
        told = await asked.told()
    assert file.read_text() == "one\ntwo\nthree\n"
    assert "Keep it small." in told.text
    with reader(shared_home) as bearer:
        watcher = Person(shared_home, bearer)
        entries = (await watcher.get("events", after=0))["entries"]
        assert (await watcher.ask("GET", f"{where}/proposal")).status_code == 403
        detail = await watcher.call(question["call_id"])
        assert "Keep it small." not in str([entries, detail]), "the result is for the agent and for people"
    (fact,) = [
        entry["event"]
        for entry in entries
        if entry["event"]["kind"] == "ApprovalAnswered" and entry["event"]["approval"] == question["id"]
    ]
    assert (fact["content"], fact["comments"]) == (None, [])


async def test_a_file_that_changed_since_is_shown_and_never_written_over(
    shared_home: Home, shared_person: Person, workspace: Path
) -> None:
    person, file = shared_person, workspace / "shared.txt"
    file.write_text("old\n")
    async with agent(shared_home, workspace, person) as client:
        asked = client.ask("write_file", path="shared.txt", content="new\n")
        question = await person.question("shared.txt")
        file.write_text("somebody's\n")
        proposal = await person.get(f"approvals/{question['id']}/proposal")
        (await person.answer(question, "allow")).raise_for_status()
        told = await asked.told()
    assert "shared.txt" in proposal["changed"]
    assert "+somebody's" in proposal["difference"]
    assert told.status == "failed"
    assert file.read_text() == "somebody's\n"


async def test_a_question_stands_beside_what_helps_to_answer_it(
    shared_home: Home, shared_person: Person, workspace: Path
) -> None:
    person = shared_person
    async with agent(shared_home, workspace, person) as client:
        for _ in range(3):
            done = client.ask("execute_command", command="touch often")
            await person.allow("touch often")
            assert (await done.told()).status == "done"
        client.ask("execute_command", command="touch often")
        listed = await person.question("touch often")
        looked = await person.get(f"approvals/{listed['id']}")
        rules = await person.get("rules")
        proposed = await person.post(
            "rules/propose", {"rule": {"command": "touch often"}, "approval": listed["id"]}
        )
        await person.deny("touch often")
    assert listed["suggestions"] == looked["suggestions"]
    (suggestion,) = listed["suggestions"]
    assert (suggestion["rule"]["tool"], suggestion["rule"]["workspace"]) == (
        "execute_command",
        str(workspace),
    )
    assert suggestion["claims"] == [0]
    assert (listed["usual"]["of"], listed["trusted"]) == (3, False)
    repeated = [one for one in rules["suggestions"] if one["rule"]["workspace"] == str(workspace)]
    assert [(one["rule"]["command"], one["answers"]) for one in repeated] == [
        (suggestion["rule"]["command"], 3)
    ]
    assert proposed["problem"] == ""
    assert proposed["decided"] == 4
    assert proposed["examples"][0] == "touch often"


async def test_a_question_that_nobody_answers_in_time_expires_and_says_so(tmp_path: Path) -> None:
    with running_daemon("[approvals]\nexpire_seconds = 0.3\n") as home:
        person, workspace = person_of(home), tmp_path / "expiring"
        workspace.mkdir()
        async with agent(home, workspace, person) as client:
            told = await client.use("write_file", path="late.txt", content="late\n")
        (approval,) = await person.get("approvals")
        late = await person.answer(approval, "allow")
    assert told.status == "failed"
    assert "nobody answered" in told.text.lower()
    assert (approval["status"], approval["by"]) == ("expired", None)
    assert (late.status_code, "Already expired" in late.json()["detail"]) == (409, True)
    assert not (workspace / "late.txt").exists()
