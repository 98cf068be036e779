"""The program as its hosts meet it: a process, the official SDK's client, a scripted model, real MCP servers."""

import base64
import json
import os
import signal
from pathlib import Path

import acp
import anyio
import pytest
from acp.exceptions import RequestError
from tests.support.acp_client import PATIENCE, HostedAgent, hosted_agent, sample_mcp_server
from tests.support.daemon_home import until
from tests.support.model_server.script import Turn, script
from tests.support.model_server.server import ModelServer
from tests.support.processes import is_alive

from handrail.own_agent.session_files import SessionFiles

pytestmark = pytest.mark.anyio


async def test_a_prompt_is_answered_with_the_help_of_a_tool(
    home: Path, root: Path, model: ModelServer, way: dict[str, str], tmp_path: Path
) -> None:
    async with hosted_agent(home, root, way) as host:
        host.servers = [sample_mcp_server(tmp_path / "log", "handrail")]
        session = await host.new()
        stop = await host.prompt(
            session,
            script(
                Turn("Let me see. ", tool="echo", input={"text": "forty-two"}),
                Turn("It is so.", think="Good."),
                prompt="What is it?\nSay.",
            ),
        )

    assert stop == "end_turn"
    assert host.client.said() == "Let me see. It is so."
    assert host.client.said("agent_thought_chunk") == "Good."
    (started,), ended = host.client.of("tool_call"), host.client.of("tool_call_update")[-1]
    assert (started["_meta"], started["rawInput"]) == ({"toolName": "echo"}, {"text": "forty-two"})
    assert (ended["status"], ended["content"][0]["content"]["text"]) == ("completed", "forty-two")
    assert host.client.of("session_info_update")[0]["title"] == "What is it?"
    assert host.client.of("usage_update")[-1]["used"] == 15
    assert (model.refused, model.strange) == ([], [])


async def test_where_no_server_of_ours_is_named_our_own_door_is_opened(
    home: Path, root: Path, model: ModelServer, way: dict[str, str]
) -> None:
    (root / "a.txt").write_text("hello\n")
    try:
        async with hosted_agent(home, root, way) as host:
            session = await host.new()
            await host.prompt(
                session, script(Turn(tool="read_file", input={"path": "a.txt"}), Turn("It says hello."))
            )
        read = host.client.of("tool_call_update")[-1]
        assert read["content"][0]["content"]["text"].endswith("hello")
        assert host.client.of("tool_call")[0]["locations"] == [{"path": str(root / "a.txt")}]
        assert "# How to work" in str(model.asked[0].body["system"])
    finally:
        await end_daemon(home)


async def end_daemon(home: Path) -> None:
    """End the daemon that the agent's door started. `handrail down` refuses: this process counts as an agent now."""
    pid = json.loads((home / "daemon.json").read_text())["pid"]
    os.kill(pid, signal.SIGTERM)
    await until(lambda: not is_alive(pid))


async def test_it_says_what_it_can_do_and_speaks_version_1(home: Path, root: Path) -> None:
    async with hosted_agent(home, root) as host:
        about = host.about

    told = about.agent_capabilities
    assert about.protocol_version == 1
    assert told is not None
    assert told.load_session
    assert told.session_capabilities is not None
    assert told.session_capabilities.resume is not None
    assert told.mcp_capabilities is not None
    assert told.mcp_capabilities.http
    assert told.session_capabilities.fork is not None
    assert told.field_meta == {"handrail": {"activities": True}}
    assert about.field_meta == {"steering": {"supported": True}}


async def test_without_a_key_a_session_opens_and_its_prompt_says_every_way_to_give_one(
    home: Path, root: Path, tmp_path: Path
) -> None:
    nowhere = {"OLLAMA_BASE_URL": "http://127.0.0.1:1/v1"}
    async with hosted_agent(home, root, nowhere) as host:
        host.servers = [sample_mcp_server(tmp_path / "log", "handrail")]
        session = await host.new()
        with pytest.raises(RequestError) as refused:
            await host.prompt(session, "Hello?")

    assert refused.value.code == -32000
    for way in ("ANTHROPIC_API_KEY", "handrail keys set", "OPENAI_BASE_URL", "handrail chat"):
        assert way in str(refused.value)


async def test_an_error_of_the_model_is_the_prompts_and_the_next_prompt_works(
    home: Path, root: Path, model: ModelServer, way: dict[str, str], tmp_path: Path
) -> None:
    async with hosted_agent(home, root, way) as host:
        host.servers = [sample_mcp_server(tmp_path / "log", "handrail")]
        session = await host.new()
        with pytest.raises(RequestError) as refused:
            await host.prompt(session, script(Turn("never", trouble=(404,))))
        assert refused.value.code == -32603
        assert await host.prompt(session, script(Turn("Here I am."))) == "end_turn"

    assert host.client.said() == "Here I am."
    assert model.refused == []


async def test_a_conversation_is_loaded_as_it_was_and_goes_on(
    home: Path, root: Path, model: ModelServer, way: dict[str, str], tmp_path: Path
) -> None:
    server = sample_mcp_server(tmp_path / "log", "handrail")
    async with hosted_agent(home, root, way) as host:
        host.servers = [server]
        session = await host.new()
        turns = (Turn("Look: ", tool="echo", input={"text": "x"}, think="Hm."), Turn("Done."))
        await host.prompt(session, script(*turns, prompt="First."))
        before = host.client.updates

    async with hosted_agent(home, root, way) as host:
        with anyio.fail_after(PATIENCE):
            await host.agent.load_session(session_id=session, cwd=str(root), mcp_servers=[server])
        heard = list(host.client.updates)
        assert await host.prompt(session, script(Turn("Again."))) == "end_turn"

    assert "First." in "".join(
        e["content"]["text"] for e in heard if e["sessionUpdate"] == "user_message_chunk"
    )
    kinds = [each["sessionUpdate"] for each in heard]
    assert kinds.index("user_message_chunk") < kinds.index("agent_thought_chunk") < kinds.index("tool_call")
    shown = ("toolCallId", "title", "kind", "rawInput", "_meta")
    (call_then,), (call_now,) = (
        [each for each in updates if each["sessionUpdate"] == "tool_call"] for updates in (before, heard)
    )
    assert {name: call_then.get(name) for name in shown} == {name: call_now.get(name) for name in shown}
    assert model.asked[-1].body["messages"][-2]["content"][-1]["text"] == "Done."
    assert model.refused == []


async def test_a_forked_conversation_goes_on_beside_the_first(
    home: Path, root: Path, model: ModelServer, way: dict[str, str], tmp_path: Path
) -> None:
    server = sample_mcp_server(tmp_path / "log", "handrail")
    async with hosted_agent(home, root, way) as host:
        host.servers = [server]
        session = await host.new()
        await host.prompt(session, script(Turn("Done."), prompt="First."))
        with anyio.fail_after(PATIENCE):
            answer = await host.agent.fork_session(session_id=session, cwd=str(root), mcp_servers=[server])
        fork = answer.session_id
        assert (fork != session, answer.config_options is not None) == (True, True)
        await host.prompt(fork, script(Turn("Forked."), prompt="Second."))
        await host.prompt(session, script(Turn("First again."), prompt="Third."))
        with anyio.fail_after(PATIENCE):
            listed = (await host.agent.list_sessions(cwd=str(root))).sessions
            with pytest.raises(RequestError) as refused:
                await host.agent.fork_session(session_id="20260101-00", cwd=str(root), mcp_servers=[])

    of_fork, of_first = (str(asked.body["messages"]) for asked in model.asked[-2:])
    assert all("First." in words and "Done." in words for words in (of_fork, of_first))
    assert ("Second." in of_first, "Second." in of_fork) == (False, True)
    assert {each.session_id for each in listed} == {session, fork}
    assert refused.value.code == -32002


async def test_a_conversation_is_resumed_without_a_word_and_goes_on(
    home: Path, root: Path, model: ModelServer, way: dict[str, str], tmp_path: Path
) -> None:
    server = sample_mcp_server(tmp_path / "log", "handrail")
    async with hosted_agent(home, root, way) as host:
        host.servers = [server]
        session = await host.new()
        await host.prompt(session, script(Turn("Done."), prompt="First."))

    async with hosted_agent(home, root, way) as host:
        with anyio.fail_after(PATIENCE):
            await host.agent.resume_session(session_id=session, cwd=str(root), mcp_servers=[server])
        assert host.client.of("user_message_chunk") == []
        await host.prompt(session, script(Turn("Again.")))

    assert len(model.asked[-1].body["messages"]) == 3


async def test_what_a_killed_program_left_behind_goes_on(
    home: Path, root: Path, model: ModelServer, way: dict[str, str], tmp_path: Path
) -> None:
    server = sample_mcp_server(tmp_path / "log", "handrail")
    async with hosted_agent(home, root, way) as host:
        host.servers = [server]
        session = await host.new()
        async with anyio.create_task_group() as group:
            group.start_soon(lost, host, session, script(Turn("I wait. ", tool="waits", input={"name": "w"})))
            await host.client.until(lambda: host.client.of("tool_call"))
            host.process.kill()

    async with hosted_agent(home, root, way) as host:
        with anyio.fail_after(PATIENCE):
            await host.agent.load_session(session_id=session, cwd=str(root), mcp_servers=[server])
        assert await host.prompt(session, script(Turn("Here again."))) == "end_turn"

    assert model.refused == []
    assert host.client.of("tool_call_update")[0]["status"] == "failed"


async def lost(host: HostedAgent, session: str, text: str) -> None:
    with pytest.raises(ConnectionError):
        await host.prompt(session, text)


async def test_conversations_are_listed_closed_and_deleted(
    home: Path, root: Path, way: dict[str, str], tmp_path: Path
) -> None:
    async with hosted_agent(home, root, way) as host:
        host.servers = [sample_mcp_server(tmp_path / "log", "handrail")]
        session, other = await host.new(), await host.new()
        await host.prompt(session, script(Turn("Done."), prompt="First.\n"))
        with anyio.fail_after(PATIENCE):
            listed = (await host.agent.list_sessions(cwd=str(root))).sessions
            assert [(each.session_id, each.title, each.cwd) for each in listed] == [
                (session, "First.", str(root))
            ]
            assert (await host.agent.list_sessions(cwd="/elsewhere")).sessions == []
            await host.agent.close_session(session_id=session)
            with pytest.raises(RequestError) as closed:
                await host.prompt(session, "Hello?")
            await host.agent.close_session(session_id=other)
            await host.ask("session/delete", {"sessionId": session})
            assert (await host.agent.list_sessions()).sessions == []
            with pytest.raises(RequestError) as gone:
                await host.agent.load_session(session_id=session, cwd=str(root), mcp_servers=[])

    assert (closed.value.code, gone.value.code) == (-32002, -32002)


async def test_files_and_pictures_reach_the_model(
    home: Path, root: Path, model: ModelServer, way: dict[str, str], tmp_path: Path
) -> None:
    png = base64.b64encode(b"\x89PNG\r\n").decode()
    blocks = [
        acp.image_block(png, "image/png"),
        acp.resource_block(acp.embedded_text_resource("file:///a.py", "x = 1")),
        acp.text_block(script(Turn("I see."))),
    ]
    async with hosted_agent(home, root, way) as host:
        host.servers = [sample_mcp_server(tmp_path / "log", "handrail")]
        session = await host.new()
        with anyio.fail_after(PATIENCE):
            await host.agent.prompt(session_id=session, prompt=blocks)

    sent = model.asked[0].body["messages"][0]["content"]
    assert [each["type"] for each in sent] == ["image", "text", "text"]
    assert sent[0]["source"]["data"] == png
    assert "/a.py" in sent[1]["text"]


async def test_a_server_that_cannot_be_had_is_said_and_left_out(
    home: Path, root: Path, way: dict[str, str], tmp_path: Path
) -> None:
    broken = sample_mcp_server(tmp_path / "log", "broken")
    broken.command = str(tmp_path / "nothing")
    async with hosted_agent(home, root, way) as host:
        host.servers = [sample_mcp_server(tmp_path / "log", "handrail"), broken]
        session = await host.new()
        assert await host.prompt(session, script(Turn("Still here."))) == "end_turn"
        assert await host.prompt(session, script(Turn("And here."))) == "end_turn"

    notes = [each for each in host.client.of("agent_message_chunk") if each.get("_meta")]
    assert len(notes) == 1
    assert "broken" in notes[0]["content"]["text"]


async def test_a_conversation_that_cannot_be_kept_goes_on_and_is_kept_once_it_can(
    home: Path, root: Path, model: ModelServer, way: dict[str, str], tmp_path: Path
) -> None:
    async with hosted_agent(home, root, way) as host:
        host.servers = [sample_mcp_server(tmp_path / "log", "handrail")]
        session = await host.new()
        (home / "agent").rename(home / "away")
        assert await host.prompt(session, script(Turn("One."), prompt="First.\n")) == "end_turn"
        (home / "away").rename(home / "agent")
        assert await host.prompt(session, script(Turn("Two."))) == "end_turn"

    notes = [each["content"]["text"] for each in host.client.of("agent_message_chunk") if each.get("_meta")]
    assert len(notes) == 1
    assert "cannot be kept" in notes[0]
    kept = SessionFiles(home / "agent").open(session)
    assert (kept.record.title, len(kept.taken())) == ("First.", 4)


async def test_what_a_host_cannot_mean_is_refused_in_words(home: Path, root: Path) -> None:
    async with hosted_agent(home, root) as host:
        with anyio.fail_after(PATIENCE):
            with pytest.raises(RequestError) as relative:
                await host.agent.new_session(cwd="somewhere", mcp_servers=[])
            with pytest.raises(RequestError) as unknown:
                await host.prompt("20260101-0000", "Hello?")
            with pytest.raises(RequestError) as other:
                await host.ask("_somebody/else", {})

    assert "absolute" in str(relative.value)
    assert (unknown.value.code, other.value.code) == (-32002, -32601)
