"""Our own agent with the official SDK's client, and with the daemon whose gate its tools come through: cancel and load.

Nothing is handed over but a folder: the agent opens our door itself.
"""

import os
import signal
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from acp.exceptions import RequestError
from tests.e2e.conftest import SMALL_GRACE
from tests.support import processes
from tests.support.acp_client import HostedAgent, hosted_agent
from tests.support.daemon_home import Home, running_daemon, until
from tests.support.model_server.script import Turn, script
from tests.support.model_server.server import ModelServer, model_server
from tests.support.person_client import Person, person_of

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(180)]

SLOW = 90.0
"""Seconds for the agent to load all it needs; only a fault reaches this."""
SLEEPING = Turn("I run it.", "execute_command", {"command": "touch begun && sleep 3001"})
WRITING = Turn("I write it.", "write_file", {"path": "notes.txt", "content": "never"})


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    with running_daemon(SMALL_GRACE) as home:
        yield home


@pytest.fixture(scope="module")
def person(home: Home) -> Person:
    return person_of(home)


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with model_server() as model:
        yield model
        assert model.refused == [], "every conversation that is sent is one that providers take"


@pytest.fixture
async def host(
    home: Home, person: Person, model: ModelServer, workspace: Path
) -> AsyncGenerator[HostedAgent]:
    """A program; nothing that it started is left when it has ended."""
    began = processes.boot_ticks()
    async with hosted_agent(home.places.state, workspace, way(model), forked=False) as host:
        yield host
    await until(lambda: not processes.started_since(began, frozenset(), (workspace,)))


def way(model: ModelServer) -> dict[str, str]:
    return {"ANTHROPIC_API_KEY": "sk-for-nothing", "ANTHROPIC_BASE_URL": model.url}


async def goes_on(host: HostedAgent, session: str) -> None:
    """The next prompt simply works."""
    assert await prompted(host, session, Turn("Still here."), prompt="And now?") == "end_turn"
    assert host.client.said().endswith("Still here.")


async def prompted(host: HostedAgent, session: str, *turns: Turn, prompt: str) -> str | int:
    """To its end."""
    with anyio.fail_after(SLOW):
        return await begun(host, session, *turns, prompt=prompt)


def begun(
    host: HostedAgent, session: str, *turns: Turn, prompt: str = "Please."
) -> anyio.TaskHandle[str | int, Any]:
    """A prompt on its way; what comes of it is its stop reason, or the code of its error; 0 where nobody answers."""
    return host.group.start_soon(_ended, host, session, script(*turns, prompt=prompt))


async def _ended(host: HostedAgent, session: str, text: str) -> str | int:
    params = {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
    try:
        return (await host.agent._conn.send_request("session/prompt", params))["stopReason"]
    except RequestError as error:
        return error.code
    except ConnectionError:
        return 0


async def under_way(host: HostedAgent) -> None:
    """The agent has begun its first call."""
    with anyio.fail_after(SLOW):
        await host.client.until(lambda: host.client.of("tool_call"))


async def test_a_cancel_while_a_command_runs_stops_it_and_the_next_prompt_works(
    host: HostedAgent, person: Person, model: ModelServer, workspace: Path
) -> None:
    session = await host.new()
    asked = begun(host, session, SLEEPING, Turn("Never."))
    await under_way(host)
    call = await person.allow("sleep 3001")
    await until((workspace / "begun").exists)

    await host.agent.cancel(session_id=session)
    with anyio.fail_after(SLOW):
        assert await asked == "cancelled"

    assert (await person.stopped(call))["status"] == "cancelled"
    assert host.client.of("tool_call_update")[-1]["status"] == "failed"
    await goes_on(host, session)
    assert "ancelled" in str(model.asked[-1].body["messages"])


@pytest.mark.parametrize("how", ["session/cancel", "$/cancel_request"])
async def test_a_cancel_while_a_person_is_asked_takes_the_question_back(
    host: HostedAgent, person: Person, workspace: Path, how: str
) -> None:
    session = await host.new()
    asked = begun(host, session, WRITING, Turn("Never."))
    await under_way(host)
    question = await person.question("notes.txt")

    if how == "session/cancel":
        await host.agent.cancel(session_id=session)
    else:
        await cancel_request(host)
    with anyio.fail_after(SLOW):
        assert await asked == ("cancelled" if how == "session/cancel" else -32800)

    assert (await person.settled(question["call_id"]))["status"] == "cancelled"
    assert (await person.answer(question, "allow")).status_code == 409
    await goes_on(host, session)
    assert not (workspace / "notes.txt").exists()


@pytest.mark.parametrize("way_back", ["load", "resume"])
async def test_what_a_killed_program_was_at_is_stopped_and_its_conversation_is_taken_up_by_another(
    home: Home, host: HostedAgent, person: Person, model: ModelServer, workspace: Path, way_back: str
) -> None:
    session = await host.new()
    assert await prompted(host, session, Turn("First."), prompt="Begin.") == "end_turn"
    lost = begun(host, session, SLEEPING, Turn("Never."))
    await under_way(host)
    call = await person.allow("sleep 3001")
    await until((workspace / "begun").exists)

    os.kill(host.process.pid, signal.SIGKILL)
    with anyio.fail_after(SLOW):
        assert await lost == 0
    assert (await person.stopped(call))["status"] == "cancelled"

    async with hosted_agent(home.places.state, workspace, way(model), forked=False) as other:
        opened = other.agent.load_session if way_back == "load" else other.agent.resume_session
        with anyio.fail_after(SLOW):
            await opened(session_id=session, cwd=str(workspace), mcp_servers=[])
        shown = list(other.client.updates)
        await goes_on(other, session)

    told = str(model.asked[-1].body["messages"])
    for words in ("Begin.", "First.", "sleep 3001", "And now?"):
        assert words in told
    replayed = [each for each in shown if each["sessionUpdate"] == "user_message_chunk"]
    assert len(replayed) == (2 if way_back == "load" else 0)
    if way_back == "load":
        assert "First." in other.client.said()
        assert [each["status"] for each in shown if each["sessionUpdate"] == "tool_call_update"] == ["failed"]


async def test_two_sessions_of_one_program_have_each_their_folder_and_their_operation(
    host: HostedAgent, person: Person, model: ModelServer, workspace: Path
) -> None:
    beside = workspace / "beside"
    beside.mkdir()
    (workspace / "a.txt").write_text("of the first\n")
    (beside / "a.txt").write_text("of the second\n")
    first = await host.new()
    with anyio.fail_after(SLOW):
        second = (await host.agent.new_session(cwd=str(beside), mcp_servers=[])).session_id
    hanging = begun(host, first, SLEEPING, Turn("Never."), prompt="One.")
    await under_way(host)
    await person.allow("sleep 3001")

    reading = Turn("I read.", "read_file", {"path": "a.txt"})
    assert await prompted(host, second, reading, Turn("Done."), prompt="Two.") == "end_turn"
    assert "of the second" in str(model.asked[-1].body["messages"])
    assert "One." not in str(model.asked[-1].body["messages"])
    await host.agent.cancel(session_id=second)  # there is nothing to cancel in it, and nobody else is
    await goes_on(host, second)
    assert hanging.status is anyio.TaskHandle.Status.PENDING

    await host.agent.cancel(session_id=first)
    with anyio.fail_after(SLOW):
        assert await hanging == "cancelled"
    await goes_on(host, first)
    sessions = {each["session"] for each in host.client.of("tool_call")}
    assert sessions == {first, second}


async def test_a_session_that_is_loaded_again_while_it_works_ends_its_work_first(
    host: HostedAgent, person: Person, workspace: Path
) -> None:
    session = await host.new()
    lost = begun(host, session, SLEEPING, Turn("Never."))
    await under_way(host)
    call = await person.allow("sleep 3001")
    await until((workspace / "begun").exists)

    with anyio.fail_after(SLOW):
        await host.agent.load_session(session_id=session, cwd=str(workspace), mcp_servers=[])
        assert await lost == "cancelled"

    assert (await person.stopped(call))["status"] == "cancelled"
    await goes_on(host, session)


async def cancel_request(host: HostedAgent) -> None:
    """Of the prompt, which is the last request that was made."""
    number = host.agent._conn._next_request_id - 1
    await host.agent._conn.send_notification("$/cancel_request", {"requestId": number})
