"""The agent host over its real socket, with a scripted agent."""

from pathlib import Path

import anyio
import pytest
from tests.support.ahp_client import AHP, ahp_client, pair
from tests.support.daemon_home import BOUND, eventually, running_daemon
from tests.support.person_client import person_of
from tests.support.scripted_agent import script
from tests.support.thread_client import SCRIPTED

from handrail.server.ahp.ahp_server import AHEAD, AHEAD_BYTES, Inbox

pytestmark = [pytest.mark.anyio]


async def test_a_client_lists_threads_of_the_page_and_sends_a_prompt(tmp_path: Path) -> None:
    with running_daemon(SCRIPTED + AHP) as home:
        person = person_of(home)
        thread = await person.post("threads", {"agent": "scripted", "workspace": str(tmp_path)})
        await person.post(f"threads/{thread['id']}/prompt", {"text": script({"say": "Hello from the page"})})
        async with ahp_client(home) as client:
            result = await client.initialize()
            assert result["protocolVersion"] == "0.9.0"
            await pair(person)
            [session] = await eventually(client.sessions)
            assert session["resource"] == f"handrail-scripted:/{thread['id']}"
            chat = await client.open(session["resource"])
            turn = await chat.over()
            assert turn["responseParts"][0]["content"] == "Hello from the page"
            await chat.prompt(script({"say": "Hello "}, {"say": "editor"}))
            await chat.over()
            assert chat.text == "Hello editor"
            assert await client.same(chat.uri)


async def test_few_long_messages_wait_to_be_handled() -> None:
    inbox, long = Inbox(), "x" * AHEAD_BYTES
    with anyio.fail_after(BOUND):
        await inbox.put(long)
        async with anyio.create_task_group() as group:
            group.start_soon(inbox.put, "y")
            await anyio.wait_all_tasks_blocked()
            assert await inbox.next() == long
            assert await inbox.next() == "y", "it came when there was room"
        for number in range(AHEAD):
            await inbox.put(str(number))
        with anyio.move_on_after(0.01) as waited:
            await inbox.put("one more")
    assert waited.cancelled_caught
