"""Rules over HTTP: made by an answer or by hand, told apart by where they hold, tested without any effect."""

import hashlib
from pathlib import Path
from typing import Any

import pytest
from tests.support.daemon_home import Home
from tests.support.mcp_client import agent
from tests.support.person_client import Json, Person


async def rules_made(person: Person, workspace: Path) -> list[Json]:
    """Those that a person made and that hold in this folder, by their id."""
    found: list[Json] = (await person.get("rules", workspace=str(workspace)))["rules"]
    return [one for one in found if one["removable"] and one["in_force"]]


async def test_a_rule_made_with_an_answer_lets_the_next_such_call_pass_and_says_so(
    shared_home: Home, shared_person: Person, workspace: Path
) -> None:
    person = shared_person
    async with agent(shared_home, workspace, person, name="ruled") as client:
        first = client.ask("execute_command", command="touch a")
        asked = await person.question("touch a")
        body = {
            "answer": "allow",
            "digest": asked["digest"],
            "rule": {"command": "touch", "scope": "project"},
        }
        (await person.ask("POST", f"approvals/{asked['id']}/answer", body)).raise_for_status()
        assert (await first.told()).status == "done"
        (made,) = await rules_made(person, workspace)
        second = await client.use("execute_command", command="touch b")
    assert second.status == "done"
    call = await person.call(second.call)
    rule = made["rule"]
    assert call["allowed_by"] == f"rule {rule['id']}"
    assert (rule["effect"], rule["command"], rule["workspace"]) == ("allow", "touch", str(workspace))
    assert made["added_by"].startswith("a person")
    (used,) = await rules_made(person, workspace)
    assert (used["hits"] - made["hits"], used["last_call"]) == (1, second.call)


async def test_a_new_rule_answers_what_is_still_open_and_one_that_is_removed_asks_again(
    shared_home: Home, shared_person: Person, workspace: Path
) -> None:
    person, where = shared_person, str(workspace)
    async with agent(shared_home, workspace, person) as client:
        waiting = client.ask("execute_command", command="touch waiting")
        asked = await person.question("touch waiting")
        rule = (await person.post("rules", {"command": "touch", "workspace": where}))["rule"]
        assert (await waiting.told()).status == "done"
        answered = await person.get(f"approvals/{asked['id']}")
        assert (answered["status"], answered["by"]) == ("allowed", f"rule {rule['id']}")
        assert (await person.ask("DELETE", f"rules/{rule['id']}")).status_code == 204
        again = client.ask("execute_command", command="touch again")
        await person.deny("touch again", "not any more")
        assert (await again.told()).status == "denied"
    assert (await person.ask("DELETE", f"rules/{rule['id']}")).status_code == 404
    assert await rules_made(person, workspace) == []


async def test_a_session_rule_is_for_the_client_that_asked_and_no_other(
    shared_home: Home, shared_person: Person, workspace: Path
) -> None:
    person = shared_person
    async with agent(shared_home, workspace, person) as one, agent(shared_home, workspace, person) as other:
        first = one.ask("execute_command", command="touch mine")
        asked = await person.question("touch mine")
        body = {
            "answer": "allow",
            "digest": asked["digest"],
            "rule": [{"command": "touch", "scope": "session"}],
        }
        (await person.ask("POST", f"approvals/{asked['id']}/answer", body)).raise_for_status()
        await first.told()
        assert (await one.use("execute_command", command="touch more")).status == "done"
        stranger = other.ask("execute_command", command="touch theirs")
        await person.deny("touch theirs")
        assert (await stranger.told()).status == "denied"


async def test_a_rule_that_refuses_is_told_to_the_agent_and_no_answer_overrides_it(
    shared_home: Home, shared_person: Person, workspace: Path
) -> None:
    person, where = shared_person, str(workspace)
    async with agent(shared_home, workspace, person) as client:
        asked = client.ask("execute_command", command="touch kept")
        question = await person.question("touch kept")
        edited = await person.post(f"approvals/{question['id']}/edit", {"input": {"command": "touch worse"}})
        rule = {"effect": "deny", "command": "touch worse", "workspace": where, "note": "Never that."}
        made = (await person.post("rules", rule))["rule"]
        refused = await client.use("execute_command", command="touch worse")
        body = {"answer": "allow", "digest": edited["digest"], "input": {"command": "touch worse"}}
        answer = await person.ask("POST", f"approvals/{question['id']}/answer", body)
        await person.deny("touch kept")
        await asked.told()
    assert (refused.status, "Never that." in refused.text) == ("denied", True)
    assert answer.status_code == 409
    assert made["id"] in (await person.call(refused.call))["by"]
    assert not (workspace / "worse").exists()


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"effect": "allow"}, "does not say what it is about"),
        ({"command": "*"}, "would allow many programs"),
        ({"command": "git status", "scope": "project"}, "needs a folder"),
        ({"command": "git status", "scope": "session"}, "session"),
        ({"command": "git status", "scope": "user", "match": ["git push"]}, "git push"),
        ({"command": "git status", "workspace": "somewhere"}, "names no folder"),
        ({"path": "../up", "scope": "user"}, "goes up"),
        ({"effect": "deny", "server": "github", "host": "a.org", "scope": "user"}, "takes no command"),
    ],
)
async def test_a_rule_that_cannot_be_is_refused_with_a_sentence(
    shared_person: Person, rule: dict[str, Any], words: str
) -> None:
    refused = await shared_person.ask("POST", "rules", rule)
    assert refused.status_code == 422
    assert words in refused.json()["detail"]


async def test_a_tried_call_is_explained_with_the_whole_chain_and_does_nothing(
    shared_person: Person, workspace: Path
) -> None:
    person, where = shared_person, str(workspace)
    rule = {"command": "git status", "workspace": where}
    line = {"command": "git status && touch x", "workspace": where, "rule": rule}
    told = await person.post("rules/test", line)
    assert told["effect"] == "ask"
    status, touch = told["parts"]
    assert (status["text"], status["effect"]) == ("git status", "allow")
    assert (touch["text"], touch["effect"], touch["rule"]) == ("touch x", "ask", "untrusted folder")
    deciding = [step["name"] for step in told["chain"] if step["decides"]]
    assert deciding == [status["rule"], "untrusted folder"]
    assert [step["name"] for step in told["chain"]][-1] == "default policy"
    assert (told["risk"], told["trusted"]) == ("medium", False)
    assert not (workspace / "x").exists()
    assert await rules_made(person, workspace) == []

    read = await person.post("rules/test", {"tool": "read_file", "input": {"path": "x"}, "workspace": where})
    assert (read["effect"], read["rule"]) == ("allow", "reads in the workspace")
    nowhere = await person.post("rules/test", {"command": "git status"})
    assert (nowhere["effect"], nowhere["why"]) == ("ask", "The caller has no workspace, so everything asks.")
    for amiss in ({}, {"command": "a", "tool": "read_file"}, {"tool": "nope", "workspace": where}):
        assert (await person.ask("POST", "rules/test", amiss)).status_code == 422


async def test_a_folder_is_trusted_with_its_file_as_it_was_seen(
    shared_home: Home, shared_person: Person, workspace: Path
) -> None:
    person, where = shared_person, str(workspace)
    (workspace / ".handrail").mkdir()
    file = workspace / ".handrail" / "config.toml"
    file.write_text('[[rules]]\neffect = "allow"\ncommand = "touch"\n')
    seen = hashlib.sha256(file.read_bytes()).hexdigest()
    stale = await person.ask("POST", "folders/trust", {"folder": where, "config": "0" * 64})
    assert (stale.status_code, "not as you saw it" in stale.json()["detail"]) == (409, True)
    trusted = await person.post("folders/trust", {"folder": where, "config": seen})
    assert (trusted["trusted"], trusted["config"], trusted["problem"]) == (True, seen, "")
    assert trusted["by"].startswith("a person")
    async with agent(shared_home, workspace, person) as client:
        assert (await client.use("execute_command", command="touch by-the-file")).status == "done"
        file.write_text('[[rules]]\neffect = "allow"\ncommand = "touch"\n# changed\n')
        asked = client.ask("execute_command", command="touch unseen")
        question = await person.question("touch unseen")
        assert question["trusted"] is True
        await person.deny("touch unseen")
        await asked.told()
    (folder,) = [one for one in await person.get("folders") if one["folder"] == where]
    assert "not the one that was trusted" in folder["problem"]
    assert (await person.post("folders/distrust", {"folder": where}))["trusted"] is False


async def test_several_questions_of_low_risk_are_allowed_in_one_step_and_others_are_not(
    shared_home: Home, shared_person: Person, workspace: Path
) -> None:
    person = shared_person
    async with agent(shared_home, workspace, person) as client:
        client.ask("execute_command", command="cat low.txt")
        client.ask("execute_command", command="touch medium.txt")
        low, medium = await person.question("low.txt"), await person.question("medium.txt")
        told = await person.post(
            "approvals/allow-low",
            {"approvals": [{"id": one["id"], "digest": one["digest"]} for one in (medium, low)]},
        )
        again = await person.post(
            "approvals/allow-low", {"approvals": [{"id": low["id"], "digest": low["digest"]}]}
        )
        await person.deny("medium.txt")
    assert (low["risk"], medium["risk"]) == ("low", "medium")
    assert [(one["id"], one["won"]) for one in told] == [(medium["id"], False), (low["id"], True)]
    assert "risk is medium" in told[0]["message"]
    assert again[0]["won"] is False
    assert again[0]["message"].startswith("Already allowed by a person on the page")
