"""Results of MCP servers that wait for a person before the agent gets them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from tests.support.daemon_home import Home, eventually, running_daemon
from tests.support.mcp_client import agent
from tests.support.person_client import Person, person_of, reader
from tests.support.relayed_servers import call, said, section, tasks, value
from tests.support.task_client import MODERN, task_client

Json = dict[str, Any]
RULES = '[[rules]]\neffect = "allow"\nserver = "seen"\n'


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A daemon with a server that a rule allows in trusted folders, and whose results are reviewed."""
    folder = tmp_path_factory.mktemp("servers")
    config = "[command]\nwait_seconds = 1\n" + section("seen", folder / "seen", "review_results = true")
    with running_daemon(config + RULES) as home:
        yield home


@pytest.fixture(scope="module")
def person(served: Home) -> Person:
    return person_of(served)


async def use(
    home: Home, workspace: Path, person: Person, tool: str, answer: Json, **arguments: Any
) -> tuple[Json, types.CallToolResult, Json]:
    """Call a tool and answer the question about its result: the question, what the client got, and the record."""
    async with agent(home, workspace) as client, tasks() as group:
        results: list[types.CallToolResult] = []

        async def work() -> None:
            result = await call(client.client, f"seen__{tool}", **arguments)
            await client.client.session.validate_tool_result(f"seen__{tool}", result)
            results.append(result)

        group.start_soon(work)
        question = await person.question(f"seen {tool}")
        reply = await person.ask(
            "POST", f"approvals/{question['id']}/answer", answer | {"digest": question["digest"]}
        )
        reply.raise_for_status()
        await eventually(lambda: value(results))
    return question, results[0], await person.settled(question["call_id"])


async def test_a_reviewed_result_is_passed_on_as_the_server_sent_it(
    served: Home, person: Person, trusted: Path
) -> None:
    question, result, record = await use(served, trusted, person, "add", {"answer": "allow"}, a=1, b=2)

    assert question["preview"] == {
        "kind": "result",
        "server": "seen",
        "text": "3",
        "structured": '{\n "sum": 3\n}',
        "is_error": False,
        "notes": [],
    }
    assert (question["risk"], question["can_edit"], question["suggestions"]) == ("medium", False, [])
    assert "seen returned this" in question["reasons"][0]
    assert (said(result), result.structured_content) == ("3", {"sum": 3})
    assert record["status"] == "done"
    waited = record["answered_at"] - record["reviewed_at"]
    assert (record["asked_at"], record["waited_ms"]) == (None, waited)
    assert record["ran_ms"] == record["ended_at"] - record["ran_at"] - waited


async def test_an_edited_result_replaces_all_that_the_server_sent(
    served: Home, person: Person, trusted: Path
) -> None:
    changed: Json = {"answer": "allow", "content": "It is about 3."}
    _, result, record = await use(served, trusted, person, "add", changed, a=1, b=2)

    assert said(result) == "A person changed this result before you got it.\n\nIt is about 3."
    assert result.structured_content is not None
    assert "sum" not in result.structured_content
    assert "3." in record["result"]["text"]
    assert record["preview"]["text"] == "3"  # what the server returned stays on record


async def test_a_withheld_result_says_why_and_that_the_call_has_run(
    served: Home, person: Person, trusted: Path
) -> None:
    denied: Json = {"answer": "deny", "reason": "it has a name in it"}
    _, result, record = await use(served, trusted, person, "add", denied, a=1, b=2)

    assert result.is_error
    assert "it has a name in it" in said(result)
    assert "has run" in said(result)
    assert "3" not in said(result)
    assert (record["status"], record["ran_at"] is not None) == ("denied", True)


async def test_an_error_of_the_server_is_reviewed_too(served: Home, person: Person, trusted: Path) -> None:
    question, result, _ = await use(served, trusted, person, "fails", {"answer": "allow", "content": "No."})

    assert (question["preview"]["text"], question["preview"]["is_error"]) == ("It did not work.", True)
    assert result.is_error
    assert "It did not work." not in said(result)
    assert "No." in said(result)


@pytest.mark.parametrize("completes", [False, True])
async def test_a_call_can_be_ended_while_its_result_waits(
    served: Home, person: Person, trusted: Path, completes: bool
) -> None:
    async with task_client(served, trusted, MODERN) as client:
        task = await client.start("seen__echo", text="secret")
        question = await person.question("seen echo")
        if completes:
            await person.complete(task["taskId"], text="Enough.")
        else:
            await person.cancel(task["taskId"])
        result = await client.result(task)
        late = await person.answer(question, "allow")

    assert question["call_id"] == task["taskId"]
    assert "secret" not in said(result)
    assert ("Enough." in said(result)) == completes
    assert late.status_code == 409


async def test_the_input_cannot_be_changed_and_no_rule_made_after_the_call_has_run(
    served: Home, person: Person, trusted: Path
) -> None:
    async with task_client(served, trusted, MODERN) as client:
        task = await client.start("seen__echo", text="hello")
        question = await person.question("seen echo")
        body: Json = {"answer": "allow", "digest": question["digest"]}
        path = f"approvals/{question['id']}/answer"
        refused = [
            await person.ask("POST", path, body | more)
            for more in ({"input": {"text": "x"}}, {"rule": {"tool": "seen__echo"}})
        ]
        preview = await person.post(f"approvals/{question['id']}/edit", {"content": "new"})
        await person.cancel(task["taskId"])

    assert [each.status_code for each in refused] == [422, 422]
    assert preview["digest"] == question["digest"]
    assert preview["preview"]["text"] == "new"


async def test_a_result_that_waits_as_the_daemon_is_killed_is_withheld(
    workspace: Path, tmp_path: Path
) -> None:
    config = section("seen", tmp_path / "seen", "review_results = true")
    with running_daemon("[daemon]\nrestart = true\n[command]\nwait_seconds = 1\n" + config) as home:
        person = person_of(home)
        async with task_client(home, workspace, MODERN) as client:
            task = await client.start("seen__echo", text="hello")
            await person.allow("seen echo")

            async def review() -> Json | None:
                question = await person.question("seen echo")
                preview = question["preview"]
                return question if preview is not None and preview["kind"] == "result" else None

            await eventually(review)
            home.kill()

            async def settled() -> Json | None:
                return await person.settled(task["taskId"]) if home.is_ready() else None

            record = await eventually(settled)

    assert record["status"] == "interrupted"
    assert "result, which is withheld" in record["message"]


async def test_a_command_line_that_only_watches_does_not_see_what_is_reviewed(
    served: Home, person: Person, trusted: Path
) -> None:
    """An agent runs such a one: it must not get there what is held back from it."""
    with reader(served) as bearer:
        watcher = Person(served, bearer)
        async with task_client(served, trusted, MODERN) as client:
            task = await client.start("seen__echo", text="hello")
            question = await person.question("seen echo")
            path = f"approvals/{question['id']}"
            seen = [
                (await watcher.get(path))["preview"],
                *(each["preview"] for each in await watcher.get("approvals", open="true")),
                *(each["preview"] for each in (await watcher.get("state"))["approvals"]),
            ]
            await person.answer(question, "deny")
            await client.result(task)
            seen += [(await watcher.get(path))["preview"]]
            seen += [(await watcher.get(f"calls/{task['taskId']}"))["preview"]]

    assert question["preview"]["text"] == "hello"
    assert [(each["kind"], each["text"]) for each in seen] == [("result", "")] * 5
