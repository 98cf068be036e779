"""A session that is steered over the protocol, by the official SDK's client, with a scripted model."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from acp.exceptions import RequestError
from tests.support.acp_client import PATIENCE, HostedAgent, hosted_agent, sample_mcp_server
from tests.support.model_server.script import Turn, script
from tests.support.model_server.server import ModelServer

pytestmark = pytest.mark.anyio

STEER = "_session/steering"


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


async def steer(host: HostedAgent, session: str, words: str) -> Any:
    with anyio.fail_after(PATIENCE):
        return await host.ask(STEER, {"sessionId": session, "prompt": [text(words)]})


async def test_a_message_reaches_the_model_with_the_next_request_of_the_same_prompt(
    home: Path, root: Path, model: ModelServer, way: dict[str, str], tmp_path: Path
) -> None:
    async with hosted_agent(home, root, way) as host:
        host.servers = [sample_mcp_server(tmp_path / "log", "handrail")]
        session = await host.new()
        turns = (Turn("First. ", tool="echo", input={"text": "x"}, hold="one"), Turn("With tabs."))
        with anyio.fail_after(PATIENCE):
            asked = await host.send(
                "session/prompt", {"sessionId": session, "prompt": [text(script(*turns))]}
            )
            await model.until(lambda: len(model.asked) == 1, PATIENCE)
            assert await steer(host, session, "use tabs") == {"outcome": "injected"}
            model.let_go("one")
            assert (await asked)["stopReason"] == "end_turn"
        assert await steer(host, session, "too late") == {
            "outcome": "promptRequired",
            "reason": "noRunningTurn",
        }
        await host.prompt(session, script(Turn("Yes."), prompt="And now?"))

    first, second, third = (str(each.body["messages"]) for each in model.asked)
    assert ("use tabs" in first, "use tabs" in second) == (False, True)
    assert host.client.said() == "First. With tabs.Yes."
    assert ("use tabs" in third, "too late" in third) == (True, False)
    assert model.refused == []


async def test_a_message_that_a_cancel_overtakes_is_in_the_next_prompt(
    home: Path, root: Path, model: ModelServer, way: dict[str, str], tmp_path: Path
) -> None:
    async with hosted_agent(home, root, way) as host:
        host.servers = [sample_mcp_server(tmp_path / "log", "handrail")]
        session = await host.new()
        with anyio.fail_after(PATIENCE):
            prompt = [text(script(Turn("I begin and", hang=True)))]
            asked = await host.send("session/prompt", {"sessionId": session, "prompt": prompt})
            await host.client.until(lambda: "and" in host.client.said())
            assert await steer(host, session, "use tabs") == {"outcome": "injected"}
            await host.agent.cancel(session_id=session)
            assert (await asked)["stopReason"] == "cancelled"
        await host.prompt(session, script(Turn("Yes."), prompt="And now?"))

    assert "use tabs" in str(model.asked[-1].body["messages"])
    assert model.refused == []


async def test_bad_steering_is_refused(home: Path, root: Path) -> None:
    async with hosted_agent(home, root) as host:
        session = await host.new()
        for params, code in (
            ({"sessionId": "none", "prompt": [text("x")]}, -32002),
            ({"sessionId": session, "prompt": "x"}, -32602),
        ):
            with pytest.raises(RequestError) as refused, anyio.fail_after(PATIENCE):
                await host.ask(STEER, params)
            assert refused.value.code == code
