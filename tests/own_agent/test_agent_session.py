"""One session: operations that are cancelled and replaced, its settings, and the words to the agent itself."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from acp.exceptions import RequestError
from tests.support.acp_client import PATIENCE, HostedAgent, hosted_agent, sample_mcp_server
from tests.support.model_server.script import Call, Turn, script
from tests.support.model_server.server import ModelServer

pytestmark = pytest.mark.anyio


def settled(host: HostedAgent) -> None:
    """Everything that began has ended."""
    began = [each["id"] for each in host.client.activities if each["how"] is None]
    ended = [each["id"] for each in host.client.activities if each["how"] is not None]
    assert sorted(began) == sorted(ended)
    over = ("completed", "failed")
    calls = {each["toolCallId"]: each["status"] for each in host.client.of("tool_call")}
    calls |= {
        each["toolCallId"]: each["status"] for each in host.client.of("tool_call_update") if "status" in each
    }
    assert all(status in over for status in calls.values())


async def test_a_cancel_while_the_model_speaks_ends_the_operation_and_the_next_prompt_works(
    home: Path, root: Path, model: ModelServer, way: dict[str, str], tmp_path: Path
) -> None:
    async with hosted_agent(home, root, way) as host:
        host.servers = [sample_mcp_server(tmp_path / "log", "handrail")]
        session, said = await host.new(), script(Turn("I begin and", hang=True))
        with anyio.fail_after(PATIENCE):
            asked = await host.send("session/prompt", {"sessionId": session, "prompt": [text(said)]})
            await host.client.until(lambda: "and" in host.client.said())
            await host.agent.cancel(session_id=session)
            stop = (await asked)["stopReason"]
        await model.until(lambda: model.asked[0].ended == "left", PATIENCE)
        again = await host.prompt(session, script(Turn("Here."), prompt="And now?"))

    assert (stop, again) == ("cancelled", "end_turn")
    assert model.refused == []
    words = str(model.asked[1].body["messages"])
    assert "I begin and" in words
    assert "incomplete" in words
    settled(host)
    assert host.client.activities[0]["sort"] == "operation"
    root_ended = next(e for e in host.client.activities if e["sort"] == "operation" and e["how"])
    assert root_ended["how"] == "cancelled"


async def test_a_cancel_that_follows_at_once_finds_its_prompt(
    home: Path, root: Path, model: ModelServer, way: dict[str, str], tmp_path: Path
) -> None:
    async with hosted_agent(home, root, way) as host:
        host.servers = [sample_mcp_server(tmp_path / "log", "handrail")]
        session = await host.new()
        for _ in range(5):
            asked = await host.send("session/prompt", {"sessionId": session, "prompt": [text("Hello?")]})
            await host.agent.cancel(session_id=session)
            assert (await asked)["stopReason"] == "cancelled"
        assert await host.prompt(session, script(Turn("Here."))) == "end_turn"

    assert model.refused == []
    settled(host)


async def test_a_prompt_during_an_operation_waits_until_that_has_ended(
    home: Path, root: Path, model: ModelServer, way: dict[str, str], tmp_path: Path
) -> None:
    turn = Turn("One ", calls=(Call("waits", {"name": "w"}), Call("ignores", {"name": "i", "seconds": 3})))
    async with hosted_agent(home, root, way) as host:
        host.servers = [sample_mcp_server(tmp_path / "log", "handrail")]
        session = await host.new()
        prompts = [script(turn), script(Turn("two ", hang=True)), script(Turn("three."))]
        with anyio.fail_after(PATIENCE):
            first = await host.send("session/prompt", {"sessionId": session, "prompt": [text(prompts[0])]})
            await host.client.until(lambda: len(host.client.of("tool_call")) == 2)
            second = await host.send("session/prompt", {"sessionId": session, "prompt": [text(prompts[1])]})
            third = await host.send("session/prompt", {"sessionId": session, "prompt": [text(prompts[2])]})
            stops = [(await each)["stopReason"] for each in (first, second, third)]

    assert stops == ["cancelled", "cancelled", "end_turn"]
    assert host.client.said().endswith("three.")
    assert model.refused == []
    settled(host)
    operations = [
        each["id"] for each in host.client.activities if each["sort"] == "operation" and each["how"]
    ]
    began = [each["id"] for each in host.client.activities if each["sort"] == "operation" and not each["how"]]
    assert operations == began


async def test_one_call_can_be_cancelled_while_the_operation_goes_on(
    home: Path, root: Path, model: ModelServer, way: dict[str, str], tmp_path: Path
) -> None:
    def call() -> dict[str, Any] | None:
        return next((each for each in host.client.activities if each["sort"] == "call"), None)

    async with hosted_agent(home, root, way) as host:
        host.servers = [sample_mcp_server(tmp_path / "log", "handrail")]
        session = await host.new()
        said = script(Turn(tool="waits", input={"name": "w"}), Turn("I go on."))
        with anyio.fail_after(PATIENCE):
            asked = await host.send("session/prompt", {"sessionId": session, "prompt": [text(said)]})
            await host.client.until(call)
            found = call()
            assert found is not None
            params = {"sessionId": session, "activity": found["id"]}
            assert await host.ask("_handrail/cancel_activity", params) == {"cancelled": True}
            assert (await asked)["stopReason"] == "end_turn"
            assert await host.ask("_handrail/cancel_activity", params) == {"cancelled": False}

    assert host.client.said() == "I go on."
    assert found["toolCallId"] == host.client.of("tool_call")[0]["toolCallId"]
    assert "Cancelled" in str(model.asked[1].body["messages"][-1])
    settled(host)


async def test_activities_are_not_told_to_a_host_that_never_heard_of_them(
    home: Path, root: Path, way: dict[str, str], tmp_path: Path
) -> None:
    async with hosted_agent(home, root, way, activities=False) as host:
        host.servers = [sample_mcp_server(tmp_path / "log", "handrail")]
        await host.prompt(await host.new(), script(Turn("Done.")))

    assert host.client.activities == []


@pytest.mark.parametrize(
    ("answer", "result"), [("allowed", "hi"), ("denied", "denied"), ("cancelled", "taken back")]
)
async def test_a_tool_of_somebody_else_is_asked_for(
    home: Path, root: Path, model: ModelServer, way: dict[str, str], tmp_path: Path, answer: str, result: str
) -> None:
    async with hosted_agent(home, root, way) as host:
        log = tmp_path / "log"
        host.servers = [sample_mcp_server(log, "handrail"), sample_mcp_server(log, "other")]
        host.client.answer = answer
        session = await host.new()
        turn = Turn(tool="other__echo", input={"text": "hi"})
        assert await host.prompt(session, script(turn, Turn("Then."))) == "end_turn"

    assert [each["rawInput"] for each in host.client.asked] == [{"text": "hi"}]
    assert result in str(model.asked[1].body["messages"][-1])


async def test_a_question_is_withdrawn_with_its_operation(
    home: Path, root: Path, model: ModelServer, way: dict[str, str], tmp_path: Path
) -> None:
    async with hosted_agent(home, root, way) as host:
        log = tmp_path / "log"
        host.servers = [sample_mcp_server(log, "handrail"), sample_mcp_server(log, "other")]
        host.client.answer = None
        session = await host.new()
        said = script(Turn(tool="other__echo", input={"text": "hi"}))
        with anyio.fail_after(PATIENCE):
            asked = await host.send("session/prompt", {"sessionId": session, "prompt": [text(said)]})
            await host.client.until(lambda: host.client.asked)
            await host.agent.cancel(session_id=session)
            assert (await asked)["stopReason"] == "cancelled"
        host.client.answer = "allowed"
        assert await host.prompt(session, script(Turn("Here."))) == "end_turn"

    assert any(each.get("method") == "$/cancel_request" for each in host.heard)
    assert model.refused == []
    settled(host)


async def test_the_model_and_how_long_it_thinks_can_be_set_and_stay_set(
    home: Path, root: Path, model: ModelServer, way: dict[str, str], tmp_path: Path
) -> None:
    server = sample_mcp_server(tmp_path / "log", "handrail")
    async with hosted_agent(home, root, way) as host:
        host.servers = [server]
        session = await host.new()
        await host.client.until(lambda: host.client.of("available_commands_update"))
        with anyio.fail_after(PATIENCE):
            chosen = await host.agent.set_config_option(
                session_id=session, config_id="model", value="anthropic:claude-haiku-5-5"
            )
            await host.agent.set_config_option(session_id=session, config_id="thought_level", value="high")
            with pytest.raises(RequestError) as level:
                await host.agent.set_config_option(session_id=session, config_id="thought_level", value="max")
            with pytest.raises(RequestError) as option:
                await host.agent.set_config_option(session_id=session, config_id="hat", value="red")
        await host.prompt(session, script(Turn("Done.")))

    values = {each.id: (each.category, each.current_value) for each in chosen.config_options}
    assert values["model"] == ("model", "anthropic:claude-haiku-5-5")
    assert (level.value.code, option.value.code) == (-32602, -32602)
    assert model.asked[0].body["model"] == "claude-haiku-5-5"
    assert model.asked[0].body["thinking"]["type"] != "disabled"

    async with hosted_agent(home, root, way) as host:
        with anyio.fail_after(PATIENCE):
            loaded = await host.agent.load_session(session_id=session, cwd=str(root), mcp_servers=[server])
    values = {each.id: each.current_value for each in loaded.config_options}
    assert values == {"model": "anthropic:claude-haiku-5-5", "thought_level": "high"}


async def test_the_commands_help_model_and_compact(
    home: Path, root: Path, model: ModelServer, way: dict[str, str], tmp_path: Path
) -> None:
    async with hosted_agent(home, root, way) as host:
        host.servers = [sample_mcp_server(tmp_path / "log", "handrail")]
        session = await host.new()
        await host.client.until(lambda: host.client.of("available_commands_update"))
        listed = host.client.of("available_commands_update")[0]["availableCommands"]

        helped = await said(host, session, "/help")
        models = await said(host, session, "/model")
        nothing = await said(host, session, "/compact")
        wrong = await said(host, session, "/model of a car")
        right = await said(host, session, "/model claude-haiku-5-5")
        assert model.requests == []
        await said(host, session, script(Turn("Done."), prompt="First."))
        model.play(Turn("All that was said."))
        compacted = await said(host, session, "/compact the names")
        await said(host, session, script(Turn("Then."), prompt="Second."))

    assert [each["name"] for each in listed] == ["help", "model", "compact"]
    assert "/compact" in helped
    assert "anthropic:claude-opus-5-5" in models
    assert nothing == "There is nothing to sum up yet."
    assert "provider:name" in wrong
    assert "anthropic:claude-haiku-5-5" in right
    assert "Summed up" in compacted
    changed = host.client.of("config_option_update")[-1]["configOptions"]
    assert changed[0]["currentValue"] == "anthropic:claude-haiku-5-5"
    assert "the names" in str(model.requests[1].body["messages"][-1])
    assert "All that was said." in str(model.asked[-1].body["messages"][0])
    assert "First." not in str(model.asked[-1].body["messages"])
    assert model.refused == []


async def said(host: HostedAgent, session: str, prompt: str) -> str:
    """All that is answered to it."""
    before = len(host.client.said())
    assert await host.prompt(session, prompt) == "end_turn"
    return host.client.said()[before:].strip()


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}
