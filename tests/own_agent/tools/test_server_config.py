"""Which servers a session is to have, and what their processes see."""

import json
from pathlib import Path

import pytest
from tests.support.agent_toolset import connected_servers, run_tool, stdio_server

from handrail.own_agent.acp_requests import HttpServer, NamedValue, StdioServer, UnsupportedServer
from handrail.own_agent.tools.server_config import Http, Stdio, own_server, select_servers
from handrail.paths import own_python


def test_our_own_door_is_added_where_no_host_named_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HANDRAIL_HOME", str(tmp_path))
    other = StdioServer(
        name="other", command="/bin/other", args=["-x"], env=[NamedValue(name="A", value="1")]
    )

    found, notes = select_servers([other], "/project")

    door = Stdio(
        name="handrail",
        command=(*own_python(), "-m", "handrail", "mcp", "--workspace", "/project"),
        env={"HANDRAIL_HOME": str(tmp_path)},
    )
    assert found == [door, Stdio(name="other", command=("/bin/other", "-x"), env={"A": "1"})]
    assert notes == []


def test_the_host_s_own_is_taken_and_comes_first() -> None:
    other = HttpServer(type="http", name="other", url="https://example.test/mcp", headers=[])
    header = NamedValue(name="Authorization", value="Bearer b")
    ours = HttpServer(type="http", name="handrail", url="http://127.0.0.1:1/mcp", headers=[header])

    found, _ = select_servers([other, ours], "/project")

    assert [each.name for each in found] == ["handrail", "other"]
    assert found[0] == Http(
        name="handrail", url="http://127.0.0.1:1/mcp", headers={"Authorization": "Bearer b"}
    )


def test_a_server_of_a_sort_we_do_not_speak_is_said() -> None:
    _, notes = select_servers([UnsupportedServer(type="acp", name="odd")], "/project")

    assert len(notes) == 1
    assert "“odd” is left out" in notes[0]


def test_no_secret_stands_in_what_may_be_logged() -> None:
    server = Http(name="a", url="https://example.test/mcp?key=s3cret", headers={"Authorization": "s3cret"})

    assert "s3cret" not in repr(server)
    assert "s3cret" not in repr(Stdio(name="a", command=("a",), env={"KEY": "s3cret"}))


async def test_a_program_sees_what_it_was_given_and_no_key(
    root: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "s3cret")
    monkeypatch.setenv("LC_TIME", "C")

    async with connected_servers(root, stdio_server(log, GIVEN="by name")) as servers:
        facts = json.loads((await run_tool(servers.tools["somebody__environment"])).text)

    assert "ANTHROPIC_API_KEY" not in facts
    assert (facts["GIVEN"], facts["LC_TIME"], facts["cwd"]) == ("by name", "C", str(root))
    assert {"PATH", "HOME"} <= facts.keys()


def test_our_own_door_finds_the_same_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HANDRAIL_HOME", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", "/somewhere/state")

    assert own_server("/project").env["XDG_STATE_HOME"] == "/somewhere/state"
