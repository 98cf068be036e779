"""The program as its hosts meet it: a process, the official SDK's client, a scripted model, real MCP servers."""

from pathlib import Path

import pytest
from tests.agents.builtin.hosting import hosted, somebody
from tests.model.script import Turn, script
from tests.model.server import ModelServer

pytestmark = pytest.mark.anyio


async def test_a_prompt_is_answered_with_the_help_of_a_tool(
    home: Path, root: Path, model: ModelServer, way: dict[str, str], tmp_path: Path
) -> None:
    async with hosted(home, root, way) as host:
        host.servers = [somebody(tmp_path / "log", "handrail")]
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
