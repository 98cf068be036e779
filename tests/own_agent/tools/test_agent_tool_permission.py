"""Asking before somebody else's tool is used."""

from pathlib import Path

import anyio
from tests.support.agent_toolset import ToolHost, connected_servers, run_tool, stdio_server


async def test_somebody_else_s_tool_is_used_once_a_person_allowed_it(root: Path, log: Path) -> None:
    listener = ToolHost(answers=["allowed", "denied", "cancelled"])

    async with connected_servers(root, stdio_server(log)) as servers:
        wait = servers.tools["somebody__echo"]
        allowed = await run_tool(wait, listener, id="t1", text="one")
        denied = await run_tool(wait, listener, id="t2", text="two")
        cancelled = await run_tool(wait, listener, id="t3", text="three")

    assert [call for call, _, _ in listener.asked] == ["t1", "t2", "t3"]
    assert listener.asked[0][1:] == ("echo (somebody)", {"text": "one"})
    assert (allowed.text, allowed.ended) == ("one", "done")
    assert (denied.failed, denied.ended) == (True, "denied")
    assert "denied" in denied.text
    assert "two" not in denied.text
    assert (cancelled.failed, cancelled.ended) == (True, "cancelled")


async def test_always_is_remembered_for_that_tool_and_answers_those_that_wait(root: Path, log: Path) -> None:
    listener = ToolHost(answers=["always", "denied"])
    said: list[str] = []

    async with connected_servers(root, stdio_server(log)) as servers:
        tools = servers.tools

        async def ask(text: str) -> None:
            said.append((await run_tool(tools["somebody__echo"], listener, text=text)).text)

        async with anyio.create_task_group() as group:
            for number in range(4):
                group.start_soon(ask, str(number))
        later = await run_tool(servers.tools["somebody__echo"], listener, text="later")
        another = await run_tool(tools["somebody__huge"], listener, lines=1)

    assert sorted(said) == ["0", "1", "2", "3"]
    assert later.text == "later"
    assert another.ended == "denied", "another tool is another question"
    assert len(listener.asked) == 2


async def test_a_question_that_is_given_up_leaves_the_next_one_free(root: Path, log: Path) -> None:
    async with connected_servers(root, stdio_server(log)) as servers:
        tools = servers.tools
        with anyio.move_on_after(0.05) as scope:
            await run_tool(tools["somebody__echo"], ToolHost(answers=[None]), text="never")
        after = await run_tool(tools["somebody__echo"], ToolHost(answers=["allowed"]), text="after")

    assert scope.cancelled_caught
    assert after.text == "after"
