"""Questions about our own tools: answered at once, since the call itself asks; but never for somebody else's tool."""

import json
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue
from tests.support.acp_requests import RequestingAgent, requesting_agent

from handrail.agents.requests._own_tools import configures_own_name, find_own_tool
from handrail.store.values import Caller, Json

pytestmark = pytest.mark.anyio

OPTIONS = [
    {"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "once", "name": "Once", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]
WRITE: Json = {"path": "a.txt", "content": "hello\n"}
RUN: Json = {"command": "ls"}


def said(*texts: str) -> list[JsonValue]:
    return [{"type": "content", "content": {"type": "text", "text": text}} for text in texts]


def claude(**server: str) -> Json:
    return {
        "claudeCode": {"toolName": "mcp__handrail__write_file", "mcpServer": {"name": "handrail", **server}}
    }


def codex_form(server: str = "handrail", kind: str = "mcp_tool_call", **params: JsonValue) -> Json:
    """Codex' question about an MCP call, as Zed's adapter sends it."""
    about: Json = {"codex_approval_kind": kind, "tool_params": {**WRITE, **params}}
    return {
        "server_name": server,
        "id": "mcp_tool_call_approval_1",
        "request": {"mode": "form", "_meta": about},
    }


CALLED: Json = {
    "title": "Tool: handrail/write_file",
    "rawInput": {"server": "handrail", "tool": "write_file", "arguments": WRITE},
}
"""The same call, as that adapter announces it."""
COPILOT: Json = {"kind": "edit", "title": "handrail-write_file", "rawInput": WRITE}


@pytest.fixture
async def here(home: Path, caller: Caller) -> AsyncGenerator[RequestingAgent]:
    async with requesting_agent(home, caller, default="ask", agrees=False) as found:
        yield replace(found, has_own_tools=True)


OURS: dict[str, tuple[Json, Json]] = {
    "claude": ({}, {"kind": "other", "title": "mcp__handrail__write_file", "rawInput": WRITE}),
    "claude, with the server": (
        {},
        {
            "kind": "other",
            "title": "mcp__handrail__write_file",
            "rawInput": WRITE,
            "_meta": claude(source="dynamic"),
        },
    ),
    "kimi": (
        {"kind": "other", "title": "mcp__handrail__write_file", "content": said(json.dumps(WRITE))},
        {"title": "mcp__handrail__write_file", "content": said("Requesting approval to Call it")},
    ),
    "gemini": (
        {},
        {"kind": "other", "title": "write_file (handrail MCP Server)", "content": said(json.dumps(WRITE))},
    ),
    "qwen": (
        {},
        {
            "kind": "other",
            "title": 'write_file (handrail MCP Server): {"path":…',
            "rawInput": WRITE,
            "_meta": {"toolName": "mcp__handrail__write_file"},
        },
    ),
    "goose": ({}, {"kind": "other", "title": "handrail: write file", "rawInput": WRITE}),
    "goose, with its first argument": (
        {},
        {"kind": "other", "title": "handrail: write file · a.txt", "rawInput": WRITE},
    ),
    "vibe": ({}, {"kind": "other", "title": "mcp_handrail.write_file", "rawInput": WRITE}),
    "opencode": ({}, {"kind": "other", "title": "handrail_write_file", "rawInput": WRITE}),
    "fast-agent": (
        {"kind": "edit", "title": "handrail/write_file"},
        {"kind": "edit", "title": "handrail/write_file", "rawInput": WRITE},
    ),
    "copilot": (COPILOT, {"kind": "other", "title": "Write file", "rawInput": WRITE}),
    "copilot, a command": (
        {"kind": "execute", "title": "handrail-execute_command", "rawInput": RUN},
        {"kind": "other", "title": "Run command", "rawInput": RUN},
    ),
    "codex, by Zed's adapter": (
        CALLED,
        {"title": "Approve Write file", "content": said("Allow the server?"), "rawInput": codex_form()},
    ),
    "codex": (
        {
            "kind": "execute",
            "title": "mcp.handrail.write_file",
            "rawInput": {"server": "handrail", "tool": "write_file", "arguments": WRITE},
        },
        {"kind": "execute", "status": "pending"},
    ),
    "codex, by server_name": (
        {},
        {"rawInput": {"server_name": "handrail", "tool_name": "write_file", "arguments": WRITE}},
    ),
}


@pytest.mark.parametrize(("known", "request_"), OURS.values(), ids=OURS)
async def test_nobody_is_asked_about_a_tool_that_asks_itself(
    here: RequestingAgent, known: Json, request_: Json
) -> None:
    here.told["1"] = known
    answer = await here.ask(
        "session/request_permission", toolCall={"toolCallId": "1", **request_}, options=OPTIONS
    )
    assert answer == {"outcome": {"outcome": "selected", "optionId": "once"}}
    assert await here.opened() == [], "the call itself is the record, when it comes"


NOT_OURS: dict[str, tuple[Json, Json]] = {
    "another server": ({}, {"title": "mcp__other__write_file", "rawInput": WRITE}),
    "a server with our name in its own": ({}, {"title": "mcp__handrail2__write_file", "rawInput": WRITE}),
    "a tool that we do not have": ({}, {"title": "mcp__handrail__format_disk", "rawInput": {}}),
    "a tool that no client may call": (
        {},
        {"title": "mcp__handrail__agent_work", "rawInput": {"title": "anything"}},
    ),
    "words after the name": ({}, {"title": "mcp__handrail__write_file; rm -rf /", "rawInput": WRITE}),
    "a second line after the name": ({}, {"title": "mcp__handrail__write_file\nrm -rf /", "rawInput": WRITE}),
    "a shell line with our name": (
        {},
        {"kind": "execute", "title": "mcp__handrail__execute_command", "rawInput": RUN},
    ),
    "a shell line of Gemini's": ({}, {"kind": "execute", "title": "mcp__handrail__execute_command"}),
    "a title that the model chose": (
        {},
        {
            "kind": "other",
            "title": "execute_command (handrail MCP Server)",
            "content": said(json.dumps({"command": "execute_command (handrail MCP Server)"})),
        },
    ),
    "an input of another tool": (
        {},
        {
            "kind": "other",
            "title": "mcp__handrail__write_file",
            "rawInput": {"description": "x", "prompt": "y"},
        },
    ),
    "more input than the tool takes": (
        {},
        {"kind": "other", "title": "mcp__handrail__write_file", "rawInput": {**WRITE, "run": "rm -rf /"}},
    ),
    "no input at all": ({}, {"kind": "other", "title": "mcp__handrail__write_file"}),
    "an input that is no object": (
        {},
        {"kind": "other", "title": "mcp__handrail__write_file", "rawInput": "rm -rf /"},
    ),
    "an input that was left out": (
        {},
        {"title": "write_file (handrail MCP Server)", "content": said("[Payload omitted due to length]")},
    ),
    "a shell line of Copilot's that the model has described so": (
        {
            "kind": "execute",
            "title": "handrail-execute_command",
            "rawInput": {**RUN, "description": "handrail-execute_command"},
        },
        {"kind": "other", "title": "Run command", "rawInput": RUN},
    ),
    "Copilot's own tool with our title": (
        COPILOT,
        {"kind": "edit", "title": "Write file", "rawInput": WRITE},
    ),
    "an edit with a place": (
        {},
        {"kind": "edit", "title": "handrail/write_file", "rawInput": WRITE, "locations": [{"path": "a.txt"}]},
    ),
    "an edit of a file with such a path": (
        {},
        {
            "kind": "edit",
            "title": "handrail/write_file",
            "rawInput": {**WRITE, "path": "/w/handrail/write_file"},
        },
    ),
    "an edit with another form of name": (
        {},
        {"kind": "edit", "title": "mcp__handrail__write_file", "rawInput": WRITE},
    ),
    "a command with such a name": (
        {},
        {"kind": "execute", "title": "handrail/execute_command", "rawInput": RUN},
    ),
    "another tool's title": (COPILOT, {"kind": "other", "title": "Run command", "rawInput": WRITE}),
    "a form of another server": (CALLED, {"rawInput": codex_form(server="other")}),
    "a form about something else": (CALLED, {"rawInput": codex_form(kind="exec")}),
    "a form with other arguments": (CALLED, {"rawInput": codex_form(path="b.txt")}),
    "a form without a call": ({"title": "Tool: handrail/write_file"}, {"rawInput": codex_form()}),
    "another title before": (
        {"title": "mcp__other__write_file"},
        {"title": "mcp__handrail__write_file", "rawInput": WRITE},
    ),
    "another input before": (
        {"rawInput": {"command": "rm -rf /"}},
        {"title": "mcp__handrail__write_file", "rawInput": WRITE},
    ),
    "two tools": (
        {"title": "mcp__handrail__execute_command"},
        {"title": "mcp__handrail__write_file", "rawInput": WRITE},
    ),
    "an edit of its own": (
        {},
        {
            "title": "mcp__handrail__write_file",
            "rawInput": WRITE,
            "content": [{"type": "diff", "path": "/etc/passwd", "newText": ""}],
        },
    ),
    "a server of the project": (
        {},
        {"title": "mcp__handrail__write_file", "rawInput": WRITE, "_meta": claude(source="project")},
    ),
    "the server of another name": (
        {},
        {"title": "mcp__handrail__write_file", "rawInput": WRITE, "_meta": claude(name="x", source="sdk")},
    ),
    "another tool in the metadata": (
        {},
        {
            "title": "mcp__handrail__write_file",
            "rawInput": WRITE,
            "_meta": {"toolName": "mcp__other__write_file"},
        },
    ),
    "two tools in the metadata": (
        {},
        {
            "title": "mcp__handrail__write_file",
            "rawInput": WRITE,
            "_meta": {"toolName": "run_shell_command", **claude(source="sdk")},
        },
    ),
    "a title of another tool than the metadata": (
        {},
        {
            "title": "mcp__handrail__execute_command",
            "rawInput": WRITE,
            "_meta": {"toolName": "mcp__handrail__write_file"},
        },
    ),
    "another server in the input": (
        {"title": "mcp.handrail.write_file"},
        {"kind": "execute", "rawInput": {"server": "other", "tool": "write_file", "arguments": WRITE}},
    ),
    "another tool in the input": (
        {"title": "mcp.handrail.write_file"},
        {"kind": "execute", "rawInput": {"server": "handrail", "tool": "execute_command", "arguments": RUN}},
    ),
}


@pytest.mark.parametrize(("known", "request_"), NOT_OURS.values(), ids=NOT_OURS)
async def test_whatever_is_not_surely_ours_is_asked(
    here: RequestingAgent, known: Json, request_: Json
) -> None:
    params: Json = {"toolCall": {"toolCallId": "1", **request_}}
    assert find_own_tool(here.gate, params, known) is None


async def test_without_our_server_in_the_session_its_name_is_somebody_elses(here: RequestingAgent) -> None:
    request: dict[str, Any] = {"toolCallId": "1", **OURS["claude"][1]}
    alone = replace(here, has_own_tools=False)
    answer = await alone.both(
        "session/request_permission", {"kind": "deny"}, toolCall=request, options=OPTIONS
    )
    assert answer["outcome"] == {"outcome": "selected", "optionId": "no"}


@pytest.mark.parametrize("place", [".mcp.json", ".codex/config.toml", "../.gemini/settings.json"])
async def test_a_project_with_a_server_of_our_name_is_asked_about(here: RequestingAgent, place: str) -> None:
    path = here.root / place
    path.parent.mkdir(exist_ok=True)
    path.write_text('{"mcpServers": {"handrail": {"command": "./evil"}}}')
    assert configures_own_name(str(here.root))
    request: dict[str, Any] = {"toolCallId": "1", **OURS["claude"][1]}
    answer = await here.both(
        "session/request_permission", {"kind": "deny"}, toolCall=request, options=OPTIONS
    )
    assert answer["outcome"] == {"outcome": "selected", "optionId": "no"}


def test_a_project_with_other_servers_is_not_taken_for_one_with_ours(tmp_path: Path) -> None:
    (tmp_path / ".mcp.json").write_text('{"mcpServers": {"other": {"command": "x"}}}')
    assert not configures_own_name(str(tmp_path))
    (tmp_path / ".mcp.json").write_bytes(b" " * 1_000_001)
    assert configures_own_name(str(tmp_path)), "what is not read to its end may hold anything"
