"""What an agent tells of itself is read leniently; what it is offered is what it takes."""

from typing import Any

import pytest
from acp.schema import InitializeRequest, NewSessionRequest

from handrail.agents.acp.agent_errors import AgentError, Login
from handrail.agents.acp.capabilities import INITIALIZE_PARAMS, AgentInfo, Folder, McpEntry, parse_agent_info

DOOR = McpEntry(
    url="http://127.0.0.1:4000/mcp",
    bearer="b",
    command=("/usr/bin/handrail", "mcp", "--workspace", "/w"),
    env={"HANDRAIL_CREDENTIAL": "b"},
)


def test_we_say_what_we_can_do_and_no_more() -> None:
    told = InitializeRequest.model_validate(INITIALIZE_PARAMS)
    can = told.client_capabilities
    assert told.protocol_version == 1
    assert can is not None
    assert can.fs is not None
    assert (can.fs.read_text_file, can.fs.write_text_file, can.terminal) == (True, True, True)
    assert can.elicitation is not None
    assert can.elicitation.form is not None
    assert can.elicitation.url is None
    assert (can.plan, can.nes) == (None, None)


def test_an_agent_is_read_with_all_that_it_offers() -> None:
    about = parse_agent_info(
        {
            "protocolVersion": 1,
            "agentInfo": {"name": "claude", "title": "Claude", "version": "2.1"},
            "agentCapabilities": {"loadSession": True, "sessionCapabilities": {"resume": {}, "list": None}},
            "authMethods": [
                {"id": "web", "name": "With a browser", "description": "opens one"},
                {"id": "cli", "name": "In a terminal", "type": "terminal", "args": ["login", "--now"]},
            ],
            "newField": 1,
        },
        "claude",
        ("claude-acp", "--x"),
    )

    assert (about.name, about.version, about.loads) == ("Claude", "2.1", True)
    assert (about.session("resume"), about.session("list"), about.session("close")) == (True, False, False)
    assert about.logins == (
        Login("web", "With a browser", "opens one"),
        Login("cli", "In a terminal", "", "claude-acp --x login --now"),
    )


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"agentInfo": "x", "agentCapabilities": [], "authMethods": {}},
        {"agentInfo": {"name": 5, "version": None}, "authMethods": ["x", {}, {"id": ""}, None]},
        {"agentCapabilities": {"sessionCapabilities": "all", "mcpCapabilities": True}},
    ],
)
def test_a_careless_answer_is_an_agent_that_offers_nothing(answer: Any) -> None:
    about = parse_agent_info({"protocolVersion": 1, **answer}, "odd", ("odd",))

    assert (about.name, about.version, about.logins) == ("odd", "", ())
    assert not about.loads
    assert not about.session("resume")
    assert not about.can("mcpCapabilities", "http")


@pytest.mark.parametrize("version", [2, 0, None, "2025-01-01"])
def test_another_version_of_the_protocol_is_refused_by_name(version: Any) -> None:
    with pytest.raises(AgentError, match=f"odd speaks version {version} .* Handrail speaks version 1"):
        parse_agent_info({"protocolVersion": version}, "odd", ("odd",))


def test_our_server_is_offered_over_http_to_whom_takes_that() -> None:
    about = AgentInfo("x", capabilities={"mcpCapabilities": {"http": True}})
    params = Folder(cwd="/w", mcp=DOOR).params(about)

    headers = [{"name": "Authorization", "value": "Bearer b"}]
    server = {"type": "http", "name": "handrail", "url": DOOR.url, "headers": headers}
    assert params["mcpServers"] == [server]
    NewSessionRequest.model_validate(params)


def test_our_server_is_offered_over_stdio_to_everybody_else() -> None:
    params = Folder(cwd="/w", mcp=DOOR).params(
        AgentInfo("x", capabilities={"mcpCapabilities": {"sse": True}})
    )

    env = [{"name": "HANDRAIL_CREDENTIAL", "value": "b"}]
    argv = {"command": "/usr/bin/handrail", "args": ["mcp", "--workspace", "/w"]}
    assert params["mcpServers"] == [{"name": "handrail", **argv, "env": env}]
    NewSessionRequest.model_validate(params)
