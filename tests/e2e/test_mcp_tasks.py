"""Calls as MCP tasks: the official client of both generations, a real daemon, and a real server behind it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError
from tests.support.daemon_home import Home, eventually, running_daemon
from tests.support.mcp_client import Generation, Transport, agent
from tests.support.person_client import Person, person_of
from tests.support.relayed_servers import Counterpart, lines, said, section, tasks, value
from tests.support.task_client import EXTENSION, MODERN, task_client

Json = dict[str, Any]
RULES = """[[rules]]
effect = "allow"
server = "free"
[[rules]]
effect = "ask"
tool = "free__asks"
"""
QUICK = "[command]\nwait_seconds = 1\nstop_grace = 0.3\n"

generations = pytest.mark.parametrize("generation", ["legacy", "2026-07-28"])
transports = pytest.mark.parametrize("transport", ["stdio", "http"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("servers")


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[Home]:
    """A daemon with little patience, and a server whose tools a rule allows in trusted folders."""
    with running_daemon(QUICK + section("free", folder / "free") + RULES) as home:
        yield home


@pytest.fixture(scope="module")
def person(served: Home) -> Person:
    return person_of(served)


@transports
@generations
async def test_a_call_that_waits_for_a_person_is_a_task_with_the_call_id(
    served: Home, person: Person, workspace: Path, transport: Transport, generation: Generation
) -> None:
    async with task_client(served, workspace, generation, person, transport) as client:
        task = await client.start("execute_command", command="echo task")
        question = await person.question("echo task")

        async def waits() -> Json | None:
            state = await client.get(task)
            return state if state["statusMessage"] == "waiting for a person" else None

        open_state = await eventually(waits)
        await person.answer(question, "allow")
        result = await client.result(task)
        state = await client.get(task)

    assert task["taskId"] == question["call_id"]
    assert (task["status"], open_state["status"], state["status"]) == ("working", "working", "completed")
    ttl = "ttlMs" if generation == MODERN else "ttl"
    assert open_state[ttl] is None
    assert (result.is_error, said(result).split("\n")[0]) == (False, "task")
    assert result.structured_content is not None
    assert result.structured_content["call_id"] == task["taskId"]


@generations
async def test_a_denied_task_is_completed_with_the_reason(
    served: Home, person: Person, workspace: Path, generation: Generation
) -> None:
    async with task_client(served, workspace, generation) as client:
        task = await client.start("execute_command", command="echo no")
        await person.deny("echo no", "not today")
        state = await client.ended(task)
        result = await client.result(task)

    assert state["status"] == "completed"
    assert result.is_error
    assert "not today" in said(result)


@generations
async def test_a_task_of_a_server_gets_the_answer_of_the_server(
    served: Home, trusted: Path, generation: Generation, person: Person
) -> None:
    """A call that ends at once becomes a task only if its request asks for one."""
    async with task_client(served, trusted, generation) as client:
        listed = (await client.client.list_tools()).tools
        if generation == MODERN:
            echoed = await client.client.session.call_tool("free__echo", {"text": "hello"})
            with pytest.raises(MCPError) as refused:
                await client.client.session.call_tool("free__refuses", {})
        else:
            task = await client.start("free__echo", text="hello")
            failed = await client.start("free__refuses")
            echoed = await client.result(task)
            with pytest.raises(MCPError) as refused:
                await client.result(failed)
            assert (await client.get(failed))["status"] == "failed"
            assert echoed.meta is not None
            assert echoed.meta["io.modelcontextprotocol/related-task"] == {"taskId": task["taskId"]}

    supports = {tool.name: tool.execution and tool.execution.task_support for tool in listed}
    support = None if generation == MODERN else "optional"
    assert (supports["free__echo"], supports["execute_command"], supports["approve"]) == (
        support,
        support,
        None,
    )
    assert said(echoed) == "hello"
    assert echoed.meta is not None
    assert echoed.meta["got"] == {"text": "hello"}
    assert (refused.value.code, refused.value.data) == (-32602, {"why": 1})


@generations
async def test_cancel_of_a_task_reaches_its_server_and_a_foreign_task_is_unknown(
    served: Home, trusted: Path, folder: Path, generation: Generation
) -> None:
    before = len(lines(folder / "free", "waits cancelled"))
    async with (
        task_client(served, trusted, generation) as client,
        task_client(served, trusted, generation) as other,
    ):
        task = await client.start("free__waits")
        methods = ["tasks/get", "tasks/cancel"]
        methods += ["tasks/update"] if generation == MODERN else ["tasks/result"]
        refused = list[int]()
        for method in methods:
            with pytest.raises(MCPError) as problem:
                await other.send(method, taskId=task["taskId"])
            refused.append(problem.value.code)
        still = await client.get(task)
        await client.send("tasks/cancel", taskId=task["taskId"])
        state = await client.ended(task)

        async def ended() -> bool | None:
            return len(lines(folder / "free", "waits cancelled")) > before or None

        await eventually(ended)

    assert refused == [-32602] * 3
    assert (still["status"], state["status"]) == ("working", "cancelled")


async def test_a_client_of_2025_lists_its_tasks_and_is_notified_of_their_end(
    served: Home, person: Person, workspace: Path
) -> None:
    async with task_client(served, workspace, "legacy") as client:
        capability = client.client.server_capabilities.tasks
        nothing = await client.send("tasks/list")
        first = await client.start("execute_command", command="echo first")
        second = await client.start("execute_command", command="echo second")
        listed = await client.send("tasks/list")
        async with tasks() as group:
            got = list[types.CallToolResult]()

            async def wait() -> None:
                got.append(await client.result(first))

            group.start_soon(wait)
            await person.allow("echo first")
        await eventually(lambda: value(client.notes))
        with pytest.raises(MCPError) as late:
            await client.send("tasks/cancel", taskId=first["taskId"])
        await client.send("tasks/cancel", taskId=second["taskId"])

    assert capability is not None
    assert capability.requests is not None
    assert nothing["tasks"] == []
    assert [task["taskId"] for task in listed["tasks"]] == [second["taskId"], first["taskId"]]
    assert said(got[0]).startswith("first\n")
    assert (client.notes[0]["taskId"], client.notes[0]["status"]) == (first["taskId"], "completed")
    assert late.value.code == -32602


@transports
async def test_a_stream_of_2026_tells_of_the_tasks_that_it_names(
    served: Home, person: Person, workspace: Path, transport: Transport
) -> None:
    async with task_client(served, workspace, MODERN, person, transport) as client, tasks() as group:
        discovered = await client.send("server/discover")
        task = await client.start("execute_command", command="echo heard")
        wanted: Json = {"notifications": {"taskIds": [task["taskId"], "c0000000000"]}}
        group.start_soon(lambda: client.send("subscriptions/listen", taskId="", **wanted))
        await eventually(lambda: value(client.notes))
        await person.allow("echo heard")

        async def ended() -> Json | None:
            return next((note for note in client.notes if note["status"] == "completed"), None)

        note = await eventually(ended)
        state = await client.get(task)
        group.cancel_scope.cancel()

    assert EXTENSION in discovered["capabilities"]["extensions"]
    assert client.notes[0]["status"] == "working"
    assert {name: note[name] for name in ("taskId", "result")} == {
        "taskId": task["taskId"],
        "result": state["result"],
    }


async def test_a_question_of_a_server_is_put_into_the_task_and_answered_there(
    served: Home, person: Person, trusted: Path
) -> None:
    """The server asks only after the client got a task: the call waited for a person first."""
    who = Counterpart()
    async with task_client(served, trusted, MODERN, elicitation_callback=who.elicit) as client:
        task = await client.start("free__asks")
        await person.allow("free asks")

        async def asks() -> Json | None:
            state = await client.get(task)
            return state if state["status"] == "input_required" else None

        asked = await eventually(asks)
        repeated = await client.start("free__asks")
        (name,) = asked["inputRequests"]
        answer = {name: {"action": "accept", "content": {"name": "Ada"}}, "q99": {}}
        await client.send("tasks/update", taskId=task["taskId"], inputResponses=answer)
        result = await client.result(task)

    assert asked["inputRequests"][name]["method"] == "elicitation/create"
    assert repeated["taskId"] == task["taskId"]
    assert who.asked == []
    assert "Ada" in said(result)


@generations
async def test_clients_that_declare_nothing_get_no_task(
    served: Home, person: Person, workspace: Path, generation: Generation
) -> None:
    async with agent(served, workspace, generation=generation) as client:
        reply = await client.use("execute_command", command="echo plain")
        codes = list[int]()
        for params in ({"taskId": reply.call}, {"taskId": "c0000000000"}):
            request = types.Request[dict[str, Any], str](method="tasks/update", params=params)
            with pytest.raises(MCPError) as refused:
                await client.client.session.send_request(request, types.EmptyResult)
            codes.append(refused.value.code)
        await person.cancel(reply.call)

    assert reply.status == "waiting"
    missing = types.MISSING_REQUIRED_CLIENT_CAPABILITY if generation == MODERN else types.METHOD_NOT_FOUND
    assert codes == [missing] * 2


@generations
async def test_a_task_goes_on_without_its_client_and_over_a_crash_of_the_daemon(
    workspace: Path, generation: Generation
) -> None:
    with running_daemon(QUICK + "[daemon]\nrestart = true\n") as home:
        person = person_of(home)
        async with task_client(home, workspace, generation) as client:
            task = await client.start("execute_command", command="echo kept")
            await person.question("echo kept")
            home.kill()

            async def allowed() -> str | None:
                return await person.allow("echo kept") if home.is_ready() else None

            await eventually(allowed)

            async def ended() -> Json | None:
                try:
                    state = await client.get(task)
                except MCPError:  # the door has no daemon yet
                    return None
                return state if state["status"] != "working" else None

            state = await eventually(ended)
            result = await client.result(task)

    assert state["status"] == "completed"
    assert said(result).startswith("kept\n")
