"""The demo's agent: told and untold calls, and which of them are still open."""

import anyio
import pytest
from tests.support.cli_home import BOUND, Home

from handrail.demo.mcp_client import ASKS, Agent, Reply, open_door, reply_from_record

pytestmark = pytest.mark.e2e


@pytest.mark.usefixtures("allowed")
@pytest.mark.anyio
async def test_an_outcome_is_told_with_its_exit_code_or_its_reason(alone: Home) -> None:
    said: list[str] = []
    with anyio.fail_after(BOUND):
        async with open_door(alone.workspace) as client:
            agent = Agent(client, said.append, set())
            await agent.do("a line", "execute_command", command="exit 3")
            await agent.do("a look", "read_file", path="none.txt")
            await agent.quietly("list_files")
    assert said[0] == "  a line is done, exit code 3"
    assert said[1].startswith("  a look failed: There is no none.txt")
    assert len(said) == 2


@pytest.mark.usefixtures("allowed")
@pytest.mark.anyio
async def test_a_call_that_is_handed_back_is_open_until_it_ends_and_told_of_once(alone: Home) -> None:
    said: list[str] = []
    left: set[str] = set()
    command = "until [ -e go ]; do sleep 0.1; done"
    with anyio.fail_after(BOUND):
        async with open_door(alone.workspace) as client, anyio.create_task_group() as group:
            agent = Agent(client, said.append, left)
            group.start_soon(lambda: agent.do("it", "execute_command", command=command, wait_seconds=0.2))
            while not left:  # noqa: ASYNC110 - it is told by no event
                await anyio.sleep(0.02)
            (alone.workspace / "go").touch()
    assert not left
    assert said == [
        "  it was handed back to the agent, which asks again for its outcome",
        "  it is done, exit code 0",
    ]


@pytest.mark.usefixtures("allowed")
@pytest.mark.anyio
async def test_a_question_comes_back_and_the_call_goes_on_after_its_answer(alone: Home) -> None:
    said: list[str] = []
    left: set[str] = set()
    with anyio.fail_after(BOUND):
        async with open_door(alone.workspace) as client:
            agent = Agent(client, said.append, left)
            reply = await agent.do("it", "execute_command", command="read -rp 'Who? ' x; echo $x")
            assert reply.status == ASKS
            assert (reply.data[ASKS]["prompt"].strip(), left) == ("Who?", {reply.data["call_id"]})
            await agent.quietly("send_to_terminal", terminalId=reply.data["terminal_id"], text="me")
            done = await agent.go_on("it", reply)
    assert (done.status, left, said) == ("done", set(), ["  it is done, exit code 0"])


def test_what_the_mailbox_does_not_know_of_a_call_is_found_in_its_result() -> None:
    record = {"status": "done", "terminal_id": None, "result": {"terminal_id": "t1", "pid": 7}}
    reply = reply_from_record("c1", Reply("", {"status": "done", "call": record}))
    assert (reply.data["call_id"], reply.data["terminal_id"], reply.data["pid"]) == ("c1", "t1", 7)


def test_a_mailbox_that_fails_is_told_as_a_failure() -> None:
    reply = reply_from_record("c1", Reply("There is no call c1.", {"status": "failed"}))
    assert (reply.status, reply.data["message"]) == ("failed", "There is no call c1.")
