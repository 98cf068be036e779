"""The agent host over its real socket, with a scripted agent."""

from pathlib import Path

import pytest
from tests.support.ahp_client import AHP, ahp_client, pair
from tests.support.daemon_home import running_daemon
from tests.support.person_client import person_of
from tests.support.scripted_agent import script
from tests.support.thread_client import SCRIPTED

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
            [session] = await client.sessions()
            assert session["resource"] == f"handrail-scripted:/{thread['id']}"
            chat = await client.open(session["resource"])
            turn = await chat.over()
            assert turn["responseParts"][0]["content"] == "Hello from the page"
            await chat.prompt(script({"say": "Hello "}, {"say": "editor"}))
            await chat.over()
            assert chat.text == "Hello editor"
            assert await client.same(chat.uri)
