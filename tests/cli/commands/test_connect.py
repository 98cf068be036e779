"""`handrail connect` shows what it writes, asks first, and lists what is found, connected, drifted or overridden."""

import json
from typing import Any

import pytest
from tests.support.cli_home import Agent, Screen
from tests.support.client_desk import Desk

from handrail import config as config_file
from handrail.clients.config_edit import load
from handrail.clients.known_clients import NAMES
from handrail.paths import Places

pytestmark = pytest.mark.e2e

EIGHT = ("claude", "codex", "gemini", "opencode", "qwen", "copilot", "kimi", "cline")


@pytest.mark.parametrize(
    ("name", "path"), [("zed", ".config/zed/settings.json"), ("jetbrains", ".jetbrains/acp.json")]
)
def test_an_editor_that_starts_agents_gets_ours_and_those_that_are_installed(
    desk: Desk, name: str, path: str
) -> None:
    desk.machine.install(name)
    file = desk.machine.home / path
    file.parent.mkdir(parents=True)
    file.write_text('{\n  // mine\n  "agent_servers": {"Other": {"command": "other"}},\n}\n')
    before = desk.machine.snapshot()
    rows = [row for row in desk.ok("agents", "--json").json if row["found"] and row["source"] != "built in"]

    desk.ok("connect", name, "--yes", "--launcher", str(desk.launcher))

    servers = load("json", file.read_text())["agent_servers"]
    assert servers["Other"] == {"command": "other"}
    assert servers["Handrail"]["command"] == str(desk.launcher)
    assert servers["Handrail"]["args"] == ["agent"]
    titles = {f"{row['title']} (Handrail)" for row in rows}
    assert {*servers} == {"Other", "Handrail"} | titles
    desk.ok("connect", name, "--undo", "--yes")
    assert desk.machine.snapshot() == before


def test_all_clients_are_connected_at_once_and_leave_no_trace(desk: Desk) -> None:
    for name in EIGHT:
        desk.machine.install(name)
    before = desk.machine.snapshot()

    out = desk.ok("connect", "--all", "--yes").out
    assert [name for name in EIGHT if desk.states()[name]["state"] != "connected"] == []
    assert out.count("is connected. From its next start") == len(EIGHT)
    assert out.count("`handrail disconnect CLIENT` removes it again.") == 1
    assert "+++ " in out
    assert desk.ok("connect", "--all", "--yes").out.count("nothing to change") == len(EIGHT)

    for name in EIGHT:
        assert "Its files are as they were." in desk.ok("disconnect", name, "--yes").out
    assert desk.machine.snapshot() == before


def test_code_server_gets_the_agent_host_and_the_line_to_start_it_with(desk: Desk) -> None:
    desk.machine.install("code-server")
    places = Places.find(desk.handrail.env)
    config = places.config
    before = config.read_text() if config.exists() else ""

    out = desk.ok("connect", "code-server", "--yes").out
    assert f"code-server --vscode-option agent-host-bridge-path={places.ahp_socket}" in out
    assert "handrail restart" in out
    assert config_file.load(config).ahp.enabled
    assert desk.states()["code-server"]["state"] == "connected"

    desk.ok("connect", "code-server", "--undo", "--yes")
    assert (config.read_text() if config.exists() else "") == before


def test_print_and_dry_run_write_nothing(desk: Desk) -> None:
    desk.machine.install("qwen")
    before = desk.machine.snapshot()

    assert '"PreToolUse"' in desk.ok("connect", "qwen", "--print").out
    assert "extensions:" in desk.ok("connect", "goose", "--print").out  # which is not installed
    assert "+++ " in desk.ok("connect", "qwen", "--dry-run").out
    assert "+++ " in desk.ok("connect", "--all", "--dry-run").out

    assert desk.machine.snapshot() == before
    assert desk.states()["qwen"]["state"] == "found"


def test_without_a_terminal_nothing_is_written_unless_yes_is_given(desk: Desk) -> None:
    desk.machine.install("qwen")
    done = desk.run("connect", "qwen")
    assert done.code == 1
    assert "needs a terminal to ask in, or --yes" in done.err
    assert desk.states()["qwen"]["state"] == "found"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("cladue",), 1, "Did you mean claude"),
        (("nothing-like-it",), 1, "It knows claude, codex"),
        (("goose",), 1, "goose is not installed: there is no goose on PATH"),
        (("goose", "--all"), 2, "Name a client, or give --all"),
        (("codex", "--locked"), 1, "--locked works with Claude Code only"),
        (("qwen", "--single-question"), 1, "--single-question works with Gemini CLI only"),
        (("gemini", "--single-question", "--no-hooks"), 1, "would let every tool run unasked"),
        (("gemini", "--single-question", "--scope", "project"), 1, "your own configuration only"),
        (("codex", "--scope", "project"), 1, "from your own configuration only"),
        (("zed", "--no-mcp"), 1, "has no hooks"),
        (("qwen", "--undo"), 1, "Qwen Code is not connected"),
        (("claude", "--locked", "--undo"), 1, "Claude Code has no locked hooks"),
        (("--all",), 1, "None of the clients that Handrail knows is installed"),
    ],
)
def test_bad_input_gets_a_sentence(desk: Desk, arguments: tuple[str, ...], code: int, words: str) -> None:
    done = desk.run("connect", *arguments)
    assert done.code == code
    assert words in done.err


def test_a_client_whose_file_is_broken_does_not_keep_the_others_from_being_connected(desk: Desk) -> None:
    for name in ("qwen", "kimi"):
        desk.machine.install(name)
    (desk.machine.home / ".qwen").mkdir()
    (desk.machine.home / ".qwen/settings.json").write_text("{")

    done = desk.run("connect", "--all", "--yes")

    assert done.code == 1
    assert ".qwen/settings.json cannot be edited: line 1, column 2" in done.err
    assert {name: desk.states()[name]["state"] for name in ("qwen", "kimi")} == {
        "qwen": "found",
        "kimi": "connected",
    }


def test_drift_and_overrides_are_listed(desk: Desk) -> None:
    for name in ("qwen", "codex"):
        desk.machine.install(name)
    desk.ok("connect", "--all", "--yes")
    project = desk.machine.project / ".qwen" / "settings.json"
    project.parent.mkdir()
    project.write_text('{"disableAllHooks": true}')
    hooks = desk.machine.home / ".codex" / "hooks.json"
    data = json.loads(hooks.read_text())
    data["hooks"]["PreToolUse"].insert(0, {"hooks": [{"type": "command", "command": "true"}]})
    hooks.write_text(json.dumps(data))

    states = desk.states()
    assert states["qwen"]["state"] == "overridden"
    assert states["qwen"]["problems"] == [f"{project} has disableAllHooks: the hooks do not run there."]
    # Our hook has moved to the second place, where Codex does not trust it.
    assert states["codex"]["state"] == "overridden"
    assert "does not trust the hooks pre_tool_use" in states["codex"]["problems"][0]
    desk.ok("connect", "codex", "--yes")
    assert desk.states()["codex"]["state"] == "connected"

    del data["hooks"]["Stop"]
    hooks.write_text(json.dumps(data))
    assert desk.states()["codex"]["state"] == "drifted"
    assert "hooks.Stop is not as Handrail wrote it" in desk.ok("connect").out


def test_another_handrail_is_named_and_not_doubled(desk: Desk) -> None:
    desk.machine.install("gemini")
    desk.ok("connect", "gemini", "--yes")
    own = desk.handrail.env["HANDRAIL_HOME"]
    desk.handrail.env["HANDRAIL_HOME"] = str(desk.machine.home / "second")

    state = desk.states()["gemini"]
    done = desk.run("connect", "gemini", "--yes")

    desk.handrail.env["HANDRAIL_HOME"] = own
    assert state["state"] == "other Handrail"
    assert f"another Handrail (HANDRAIL_HOME={own})" in state["problems"][0]
    assert done.code == 1
    assert f"`HANDRAIL_HOME={own} handrail disconnect gemini` removes it" in done.err


def test_a_single_question_is_warned_of_and_listed(desk: Desk) -> None:
    desk.machine.install("gemini")

    done = desk.ok("connect", "gemini", "--single-question", "--yes")

    assert "policies/handrail.toml" in done.out
    assert "nobody is asked at all" in done.err
    assert "lets every tool pass" in desk.ok("connect").out
    assert desk.states()["gemini"]["state"] == "connected"


def test_an_older_claude_gets_a_line_that_refuses_by_itself(desk: Desk) -> None:
    desk.machine.install("claude", "2.1.197")
    desk.ok("connect", "claude", "--yes")
    [group] = desk.machine.json(".claude/settings.json")["hooks"]["PreToolUse"]
    assert "onFailure" not in group["hooks"][0]
    assert group["hooks"][0]["command"].endswith("echo 'Handrail did not answer; refused' >&2; exit 2; }")

    desk.machine.install("claude", "2.1.400")
    state = desk.states()["claude"]
    assert state["state"] == "drifted"
    assert "2.1.400 needs another entry" in state["problems"][0]
    assert "Newer than 2.1.325" in state["notes"][0]
    desk.ok("connect", "claude", "--yes")
    [group] = desk.machine.json(".claude/settings.json")["hooks"]["PreToolUse"]
    assert group["hooks"][0]["onFailure"] == "block"


def test_an_mcp_server_that_was_added_by_hand_is_replaced_and_comes_back(desk: Desk) -> None:
    desk.machine.install("claude")
    file = desk.machine.home / ".claude.json"
    mine: Any = {
        "mcpServers": {"handrail": {"type": "stdio", "command": "handrail", "args": ["mcp"], "env": {}}}
    }
    file.write_text(json.dumps(mine))

    desk.ok("connect", "claude", "--yes")
    assert desk.machine.json(".claude.json")["mcpServers"]["handrail"]["command"] == str(desk.launcher)
    file.write_text(json.dumps({**desk.machine.json(".claude.json"), "numStartups": 2}))

    desk.ok("disconnect", "claude", "--yes")
    assert desk.machine.json(".claude.json") == {**mine, "numStartups": 2}


def test_a_project_has_its_own_connection(desk: Desk) -> None:
    desk.machine.install("claude")
    desk.ok("connect", "claude", "--yes", "--scope", "project")
    names = {str(path.relative_to(desk.machine.project)) for path in desk.machine.project.rglob("*.json")}
    assert names == {".mcp.json", ".claude/settings.json"}
    assert desk.states()["claude"]["scopes"] == [str(desk.machine.project)]
    assert "not connected here, but in" in desk.run("disconnect", "claude", "--yes").err
    desk.ok("disconnect", "claude", "--yes", "--scope", "project")
    assert [*desk.machine.project.iterdir()] == []


def test_an_agent_cannot_connect_a_client(desk: Desk, agent: Agent) -> None:
    desk.machine.install("qwen")
    command = " ".join(desk.handrail.argv("connect", "qwen", "--yes"))
    home = f"HOME={desk.machine.home} PATH={desk.machine.environ['PATH']}"
    call = agent.call(
        "execute_command",
        command=f"env {home} HANDRAIL_HOME={desk.handrail.path} PYTHONPATH={desk.handrail.env['PYTHONPATH']} {command}",
    )
    desk.handrail.ok("approve", desk.handrail.asked()[0]["id"])
    output = agent.answer(call)["structuredContent"]["output"]
    assert "inside an agent's process tree" in " ".join(output.split())
    assert desk.states()["qwen"]["state"] == "found"


def test_a_person_is_asked_at_the_terminal(desk: Desk) -> None:
    desk.machine.install("kimi")
    with Screen(desk.handrail, "connect", "kimi") as screen:
        screen.shows("Write this for Kimi Code?")
        screen.press("n", "Nothing was changed.")
    assert desk.states()["kimi"]["state"] == "found"


def test_every_client_is_listed(desk: Desk) -> None:
    assert tuple(desk.states()) == NAMES
