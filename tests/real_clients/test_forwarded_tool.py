"""Real coding agents use a tool of another MCP server, through Handrail: what the person decides is what happens."""

from pathlib import Path

import pytest
from tests.real_clients.client_catalog import Client
from tests.real_clients.guarded_client import guarded_client
from tests.support.daemon_home import until
from tests.support.relayed_servers import lines, section

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]


async def test_a_forwarded_tool_is_allowed_edited_denied_and_cancelled_by_the_person(
    client: Client, tmp_path: Path
) -> None:
    server = tmp_path / "notes"
    with guarded_client(client, section("notes", server)) as guarded:
        connected = guarded.handrail("connect", client.name, "--yes")
        assert connected.returncode == 0, connected.stdout + connected.stderr
        person = guarded.person
        texts = ("the first", "the second", "the third")
        turns = [client.ours("notes__echo", {"text": text}) for text in texts]
        turns.append(client.ours("notes__waits", {}))
        async with guarded.running(*client.waits_for_ours, *turns) as run:
            asked = await person.question("the first")
            assert (asked["title"], asked["tool"]) == ("notes echo: text=the first", "notes__echo")
            assert asked["claims"][0]["server"] == "notes"
            (await person.answer(asked, "allow")).raise_for_status()
            await guarded.allow_edited("the second", "what a person wrote")
            denied = await person.deny("the third", "Ask the other server.")
            cancelled = await person.allow("notes waits")
            await until(lambda: bool(lines(server, "waits began")))
            await person.cancel(cancelled)
            await until(lambda: bool(lines(server, "waits cancelled")))
        allowed = await person.settled(asked["call_id"])
        statuses = [(await person.settled(call))["status"] for call in (denied, cancelled)]

    assert (allowed["status"], allowed["assurance"]) == ("done", "forwarded"), run.text
    assert statuses == ["denied", "cancelled"]
    # Neither is in the script that the model plays, so it can only have them from the results.
    assert guarded.is_told("what a person wrote"), run.text
    assert guarded.is_told("Ask the other server."), run.text
    assert guarded.is_told(cancelled), run.text
    assert guarded.model.refused == []
