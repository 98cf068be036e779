"""A running agent: its sessions, new and taken up again, and logging in."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.agent_host import RecordingHandler, agent_host, prompt
from tests.support.keeper_terminals import until
from tests.support.scripted_agent import CAPABILITIES

from handrail.agents.acp.agent_errors import AgentError, Login
from handrail.agents.acp.capabilities import Folder, McpEntry

DOOR = McpEntry(url="http://127.0.0.1:1/mcp", bearer="secret", command=("handrail", "mcp"), env={"A": "b"})
MODES = {
    "currentModeId": "ask",
    "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}],
}
OPTIONS = [
    {
        "id": "model",
        "name": "Model",
        "category": "model",
        "type": "select",
        "currentValue": "small",
        "options": [{"value": "small", "name": "Small"}, {"value": "large", "name": "Large"}],
    },
    {"id": "fast", "name": "Fast", "type": "boolean", "currentValue": False},
]


async def test_an_agent_is_greeted_with_what_we_are_and_told_of(home: Path) -> None:
    async with agent_host(home) as stage:
        agent, desk = await stage.agent(), RecordingHandler()
        session = await agent.open(Folder(cwd=str(stage.cwd)), desk)
        await prompt(session, {"tell_client": True})

        assert (agent.about.name, agent.about.version) == ("The scripted agent", "1.2.3")
        assert desk.told["protocolVersion"] == 1
        assert desk.told["clientInfo"]["name"] == "handrail"
        assert desk.told["clientCapabilities"] == {
            "fs": {"readTextFile": True, "writeTextFile": True},
            "terminal": True,
            "elicitation": {"form": {}},
            "_meta": {"handrail": {"activities": True}},
        }
        assert "_meta" not in desk.told, "no key is told to anybody else's agent"


@pytest.mark.parametrize("takes_http", [True, False])
async def test_a_session_gets_its_folder_and_our_server_in_the_way_it_takes_it(
    home: Path, takes_http: bool
) -> None:
    async with agent_host(home) as stage:
        stage.add("some", capabilities={**CAPABILITIES, "mcpCapabilities": {"http": takes_http}})
        agent, desk = await stage.agent("some"), RecordingHandler()
        session = await agent.open(Folder(cwd=str(stage.cwd), mcp=DOOR), desk)
        await prompt(session, {"tell_session": True})

        assert desk.told["cwd"] == str(stage.cwd)
        [server] = desk.told["mcpServers"]
        assert server["name"] == "handrail"
        assert ("url" in server, "command" in server) == (takes_http, not takes_http)


async def test_settings_and_early_updates_come_to_the_desk_once_the_session_is_open(home: Path) -> None:
    async with agent_host(home) as stage:
        stage.add(
            "rich",
            modes=MODES,
            options=OPTIONS,
            commands=[{"name": "web", "description": "Search"}],
            at_new=[{"say": "before the answer"}, {"ask": {}, "wait": False}],
        )
        agent, desk = await stage.agent("rich"), RecordingHandler()
        session = await agent.open(Folder(cwd=str(stage.cwd)), desk)
        await prompt(session, {"say": "done"})

        assert desk.kinds() == [
            *(
                "agent_message_chunk",
                "_modes",
                "_options",
                "available_commands_update",
                "agent_message_chunk",
            ),
        ]
        assert desk.updates[1] == {"sessionUpdate": "_modes", **MODES}
        assert desk.updates[2] == {"sessionUpdate": "_options", "configOptions": OPTIONS}
        assert [method for method, _ in desk.requests] == ["session/request_permission"]


@pytest.mark.parametrize(("takes_up", "how"), [("resume", "resumed"), ("load", "loaded")])
async def test_a_session_is_taken_up_again_after_a_restart_without_a_repetition(
    home: Path, takes_up: str, how: str
) -> None:
    kept = home / "kept"
    kept.mkdir()
    offered: dict[str, Any] = {"resume": {}} if takes_up == "resume" else {}
    can = {"loadSession": takes_up == "load", "sessionCapabilities": offered}
    folder = Folder(cwd=str(home))
    async with agent_host(home) as stage:
        stage.add("lasting", sessions=str(kept), capabilities=can, modes=MODES, at_load=[{"say": "read out"}])
        first = await stage.agent("lasting")
        session = await first.open(folder, RecordingHandler())
        await prompt(session, {"say": "the first answer"})
        await first.end("a restart")

        second, desk = await stage.agent("lasting"), RecordingHandler()
        assert second is not first
        taken_up = await second.resume(session.id, folder, desk)
        assert taken_up is not None
        assert (taken_up[0].id, taken_up[1]) == (session.id, how)
        await prompt(taken_up[0], {"say": "the second answer"}, {"tell_session": True})

        assert desk.kinds()[0] == "_modes"
        assert desk.texts[:-1] == ["the second answer"]
        assert desk.told["sessionId"] == session.id


@pytest.mark.parametrize("can", [CAPABILITIES, {}], ids=["it does not know it", "it cannot"])
async def test_what_an_agent_cannot_take_up_is_none(home: Path, can: dict[str, Any]) -> None:
    async with agent_host(home) as stage:
        stage.add("some", capabilities=can)
        agent, desk = await stage.agent("some"), RecordingHandler()

        assert await agent.resume("long-gone", Folder(cwd="/"), desk) is None
        assert desk.updates == []


async def test_sessions_are_closed_and_deleted_where_that_is_offered(home: Path) -> None:
    kept = home / "kept"
    kept.mkdir()
    async with agent_host(home) as stage:
        stage.add("keeps", sessions=str(kept))
        stage.add("plain", capabilities={})
        agent, desk, folder = await stage.agent("keeps"), RecordingHandler(), Folder(cwd=str(stage.cwd))
        session = await agent.open(folder, desk)
        other = await agent.open(folder, RecordingHandler())
        await other.close()
        await other.delete()
        await session.delete()
        assert list(kept.iterdir()) == []

        plain = await stage.agent("plain")
        session = await plain.open(folder, desk)
        await session.close()
        await session.delete()


async def test_nothing_is_heard_of_a_session_that_was_closed(home: Path) -> None:
    async with agent_host(home) as stage:
        agent, desk, other = await stage.agent(), RecordingHandler(), RecordingHandler()
        session = await agent.open(Folder(cwd="/"), desk)
        second = await agent.open(Folder(cwd="/"), other)
        await session.close()
        await prompt(second, {"say": "late", "session": session.id}, {"say": "here"})

        assert (desk.texts, other.texts) == ([], ["here"])


async def test_an_agent_that_needs_a_login_says_so_with_the_ways_and_works_after_it(home: Path) -> None:
    logins = [
        {"id": "web", "name": "With a browser", "description": "opens one"},
        {"id": "cli", "name": "In a terminal", "type": "terminal", "args": ["login"]},
    ]
    async with agent_host(home) as stage:
        stage.add("shut", login_needed=True, logins=logins)
        agent, desk = await stage.agent("shut"), RecordingHandler()
        with pytest.raises(AgentError, match="shut needs you to log in first") as needed:
            await agent.open(Folder(cwd="/"), desk)
        web, cli = needed.value.logins
        assert web == Login("web", "With a browser", "opens one")
        assert cli.command is not None
        assert cli.command.endswith(" login")
        with pytest.raises(AgentError, match=r"run this in a terminal: .* login"):
            await agent.login("cli")
        with pytest.raises(AgentError, match="no way to log in that is called other"):
            await agent.login("other")
        await agent.login("web")
        session = await agent.open(Folder(cwd="/"), desk)

        assert (await prompt(session, {"say": "in"})).stop == "end_turn"


async def test_an_agent_that_says_itself_what_it_needs_first_is_heard(home: Path) -> None:
    async with agent_host(home) as stage:
        stage.add("shut", login_needed=True, login_says="There is no key. Set one with `shut key`.")
        with pytest.raises(AgentError) as needed:
            await (await stage.agent("shut")).open(Folder(cwd="/"), RecordingHandler())
        assert str(needed.value) == "shut cannot answer yet. There is no key. Set one with `shut key`."


async def test_a_login_that_fails_says_why(home: Path) -> None:
    async with agent_host(home) as stage:
        stage.add("shut", login_needed=True, login_fails=True, logins=[{"id": "web", "name": "Web"}])
        agent = await stage.agent("shut")
        with pytest.raises(AgentError, match="shut refused `authenticate`: The password is wrong"):
            await agent.login("web")


async def test_a_session_that_cannot_be_opened_says_why(home: Path) -> None:
    error = {"code": -32603, "message": "Internal error", "data": {"details": "no model is configured"}}
    async with agent_host(home) as stage:
        stage.add("sad", at_new=[{"fail": error}])
        stage.add("mute", answers={"session/new": '{"id": ID, "result": {}}'})
        with pytest.raises(AgentError) as failed:
            await (await stage.agent("sad")).open(Folder(cwd="/"), RecordingHandler())
        assert (
            str(failed.value) == "sad refused `session/new`: Internal error (-32603): no model is configured"
        )
        with pytest.raises(AgentError, match="mute opened a session without an id"):
            await (await stage.agent("mute")).open(Folder(cwd="/"), RecordingHandler())


async def test_an_agent_of_another_version_is_ended_and_says_which(home: Path) -> None:
    async with agent_host(home) as stage:
        stage.add("next", protocol=2)
        with pytest.raises(AgentError, match=r"next speaks version 2 .* Handrail speaks version 1"):
            await stage.agent("next")
        await until(lambda: not stage.terminals.live)
