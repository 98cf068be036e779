"""The state of a client: connected, drifted, overridden, or connected to another Handrail."""

import json
from pathlib import Path

import pytest
from tests.support.client_machine import ClientMachine

from handrail.clients.connection_state import ClientState, examine_client, find_other_entries
from handrail.clients.known_clients import find_client
from handrail.clients.launcher_path import Launcher


@pytest.fixture
def machine(tmp_path: Path) -> ClientMachine:
    return ClientMachine(tmp_path, "claude", "gemini", "cursor", "goose")


def state(machine: ClientMachine, name: str) -> ClientState:
    known = machine.connections.all()
    return examine_client(name, machine.machine, machine.launcher, machine.connections, known)


def test_a_missing_launcher_is_a_drift(machine: ClientMachine) -> None:
    machine.connect("gemini", launcher=Launcher("/gone/handrail"))
    problems = state(machine, "gemini").problems
    assert any(problem.startswith("There is no program /gone/handrail.") for problem in problems)


def test_an_unreadable_file_is_a_drift(machine: ClientMachine) -> None:
    machine.connect("cursor")
    (machine.home / ".cursor/hooks.json").write_text("{")
    assert state(machine, "cursor").state == "drifted"
    assert "cannot be read: line 1, column 2" in state(machine, "cursor").problems[0]


def test_a_comment_for_which_claude_ignores_its_settings_is_told(machine: ClientMachine) -> None:
    machine.connect("claude")
    settings = machine.home / ".claude/settings.json"
    settings.write_text(f"// mine\n{settings.read_text()}")
    seen = state(machine, "claude")
    assert seen.state == "overridden"
    assert f"{settings} is not plain JSON (line 1, column 1)" in seen.problems[0]
    machine.disconnect("claude")
    assert settings.read_text().split() == ["//", "mine", "{", "}"]


def test_a_project_does_not_override_hooks_in_managed_settings(machine: ClientMachine) -> None:
    project, managed = machine.project / ".claude/settings.json", machine.machine.root / "etc/claude-code"
    project.parent.mkdir()
    project.write_text('{"disableAllHooks": true}')
    machine.connect("claude")
    assert state(machine, "claude").state == "overridden"
    machine.connect("claude", is_locked=True, has_mcp=False)
    assert (state(machine, "claude").state, state(machine, "claude").problems) == ("connected", ())

    settings = managed / "managed-settings.json"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "disableAllHooks": True}))
    seen = state(machine, "claude")
    assert seen.state == "overridden"
    assert seen.problems == (f"{settings} has disableAllHooks: no hook runs on this machine.",)


def test_gemini_without_hooks_says_that_nobody_is_asked(machine: ClientMachine) -> None:
    settings = machine.project / ".gemini/settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"hooksConfig": {"disabled": ["handrail"]}}))

    machine.connect("gemini")
    asked = state(machine, "gemini")
    machine.connect("gemini", is_single_question=True)
    unasked = state(machine, "gemini")

    assert asked.state == unasked.state == "overridden"
    assert asked.problems == (f"{settings} switches the hooks off (hooksConfig).",)
    assert "Nobody is asked there" in unasked.problems[0]


def test_a_projects_server_that_has_our_name_is_told(machine: ClientMachine) -> None:
    machine.connect("gemini")
    settings = machine.project / ".gemini/settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"mcpServers": {"handrail": {"command": "/opt/other"}}}))
    seen = state(machine, "gemini")
    assert seen.state == "overridden"
    assert seen.problems[0].startswith(f"{settings} has another MCP server called handrail")

    settings.unlink()
    machine.connect("gemini", scope="project")
    assert state(machine, "gemini").problems == ()


def test_what_switches_gooses_plugin_off_is_told(machine: ClientMachine) -> None:
    machine.connect("goose")
    assert state(machine, "goose").problems == ()
    config = machine.home / ".config/goose/config.yaml"
    plugin = machine.home / ".agents/plugins/handrail"
    config.write_text(f"{config.read_text()}plugins:\n  {plugin}:\n    enabled: false\n")
    settings = machine.project / ".config/goose/settings.local.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"disabledPlugins": ["handrail"]}))
    shadow = machine.project / ".agents/plugins/handrail"
    shadow.mkdir(parents=True)

    seen = state(machine, "goose")

    assert seen.state == "overridden"
    assert [problem.split()[0] for problem in seen.problems] == [str(settings), str(config), str(shadow)]


def test_a_single_question_is_named_in_the_list_and_is_no_drift(machine: ClientMachine) -> None:
    machine.connect("gemini", is_single_question=True)
    machine.install("gemini", "99.0.0")

    seen = state(machine, "gemini")

    assert [problem for problem in seen.problems if "another entry" in problem] == []
    assert "lets every tool pass" in seen.notes[0]


def test_a_client_that_is_too_old_for_the_hooks_is_overridden(machine: ClientMachine) -> None:
    machine.install("goose", "1.30.0")
    machine.connect("goose")
    assert state(machine, "goose").state == "overridden"
    assert state(machine, "goose").problems == ("goose 1.30.0 is older than 1.38, which has the hooks.",)


def test_a_client_that_is_newer_than_the_facts_says_so_and_stays_connected(machine: ClientMachine) -> None:
    machine.install("claude", "99.1.0")
    machine.connect("claude")
    seen, tried = state(machine, "claude"), find_client("claude").tried
    assert (seen.state, seen.version) == ("connected", "99.1.0")
    assert f"Newer than {tried}, which Handrail's facts were read from." in seen.notes


@pytest.mark.parametrize("name", ["claude", "gemini", "cursor"])
def test_entries_of_another_home_are_found_in_every_form(machine: ClientMachine, name: str) -> None:
    machine.connect(name, launcher=Launcher("/opt/hand rail/handrail", "/srv/second home"))
    client = find_client(name)

    others = find_other_entries(client, machine.setup(client))

    assert {entry.is_hook for entry in others} == {True, False}
    assert all(entry.is_other_home for entry in others)
    assert {entry.home for entry in others} == {"/srv/second home"}
