"""Which MCP servers of a client can be moved behind Handrail, and what is said about the others."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.client_machine import ClientMachine

from handrail.clients.client_facts import Setup
from handrail.clients.connection_plan import ConnectRefused
from handrail.clients.known_clients import find_client
from handrail.clients.mcp_entries import find_mcp_entries
from handrail.clients.server_move import KnownServers, MovePlan, digest_entry, plan_moves

GIT = {"command": "uvx", "args": ["mcp-git"], "env": {"TOKEN": "t1"}}
WRITTEN = {"name": "git", "command": ["uvx", "mcp-git"], "secrets": ["TOKEN"]}


@pytest.fixture
def machine(tmp_path: Path) -> ClientMachine:
    return ClientMachine(tmp_path, "cursor", "gemini", "claude")


def write(machine: ClientMachine, servers: dict[str, Any], path: str = ".cursor/mcp.json") -> Path:
    file = machine.home / path
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({"mcpServers": servers}, indent=2))
    return file


def plan(machine: ClientMachine, **options: Any) -> MovePlan:
    client = find_client("cursor")
    setup = Setup(machine=machine.machine, launcher=machine.launcher, scope=options.pop("scope", "user"))
    known: dict[str, Any] = {"sections": {}, "secrets": (), "moved": (), **options}
    there = KnownServers(**known)
    return plan_moves(client, setup, find_mcp_entries(client, setup), there)


def test_a_server_is_planned_with_references_instead_of_credentials(machine: ClientMachine) -> None:
    write(machine, {"git": {**GIT, "autoApprove": ["x"]}})
    (move,) = plan(machine).moves
    assert (move.section, move.secrets) == (WRITTEN, {"TOKEN": "t1"})
    assert move.lost == ("autoApprove",)
    assert "t1" not in str(move.server)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({**GIT, "env": {"TOKEN": "${input:token}"}}, "placeholder of the client"),
        ({**GIT, "disabled": True}, "it is disabled there"),
        ({"url": "http://far.example/mcp"}, "begin with https://"),
        ({"command": "x", "args": ["--token", "abc"]}, "seems to contain a credential"),
    ],
)
def test_what_cannot_be_moved_stays_and_the_reason_is_said(
    machine: ClientMachine, entry: dict[str, Any], words: str
) -> None:
    write(machine, {"git": entry})
    found = plan(machine)
    assert found.moves == ()
    (sentence,) = found.staying
    assert sentence.startswith("git stays with Cursor: ")
    assert words in sentence


def test_names_that_collide_are_left_alone(machine: ClientMachine) -> None:
    write(machine, {"git": GIT, "Git!": {"command": "other"}})
    found = plan(machine)
    assert [move.entry.name for move in found.moves] == ["git"]
    assert "gets the name git, too" in found.staying[0]

    found = plan(machine, sections={"git": {"name": "git", "command": ["mine"]}})
    assert found.moves == ()
    assert "Handrail has another server called git" in found.staying[0]


def test_a_server_that_handrail_has_already_only_leaves_the_client(machine: ClientMachine) -> None:
    write(machine, {"git": GIT})
    (move,) = plan(machine, sections={"git": WRITTEN}, secrets=["TOKEN"]).moves
    assert (move.section, move.secrets, move.server.is_ours) == ({}, {}, False)


def test_a_server_that_was_moved_from_another_client_is_shared(machine: ClientMachine) -> None:
    write(machine, {"git": GIT})
    (first,) = plan(machine).moves
    moved = {"sections": {"git": first.section}, "secrets": ["TOKEN"], "moved": [first.server]}
    (second,) = plan(machine, **moved).moves
    assert (second.section, second.server.secrets, second.server.is_ours) == ({}, ("TOKEN",), True)
    assert second.server.entry == digest_entry(WRITTEN)

    write(machine, {"git": {**GIT, "env": {"TOKEN": "t1", "MODE": "fast"}}})
    assert plan(machine, **moved).moves == ()


def test_a_file_of_a_repository_is_left_alone(machine: ClientMachine) -> None:
    write(machine, {"git": GIT}, "project/.cursor/mcp.json")
    assert len(plan(machine, scope="project").moves) == 1
    (machine.project / ".git").mkdir()
    found = plan(machine, scope="project")
    assert found.moves == ()
    assert f"belongs to the repository {machine.project}" in found.staying[0]


def test_claude_removes_the_entry_by_its_own_command_and_gets_it_back_by_ours(machine: ClientMachine) -> None:
    file = write(machine, {"git": GIT, "other": {"command": "x"}}, ".claude.json")
    before = file.read_bytes()
    machine.connect("claude")
    machine.connect("claude", moves=True)
    assert machine.json(".claude.json")["mcpServers"].keys() == {"handrail"}
    machine.connect("claude", launcher=type(machine.launcher)("/usr/bin/handrail"))
    assert machine.json(".claude.json")["mcpServers"].keys() == {"handrail"}
    file.write_text(json.dumps({**machine.json(".claude.json"), "numStartups": 2}))

    machine.disconnect("claude")
    assert machine.json(".claude.json") == {**json.loads(before), "numStartups": 2}

    file.write_bytes(before)
    machine.connect("claude", moves=True)
    machine.disconnect("claude")
    assert file.read_bytes() == before


def test_an_entry_that_came_back_by_hand_is_not_taken_out_again(machine: ClientMachine) -> None:
    file = write(machine, {"git": GIT}, ".gemini/settings.json")
    machine.connect("gemini", moves=True)
    data = machine.json(".gemini/settings.json")
    data["mcpServers"]["git"] = {"command": "mine"}
    file.write_text(json.dumps(data))

    machine.connect("gemini")
    assert machine.json(".gemini/settings.json")["mcpServers"]["git"] == {"command": "mine"}
    with pytest.raises(ConnectRefused, match="Leave out --no-mcp"):
        machine.connect("gemini", has_mcp=False)
    machine.disconnect("gemini")
    assert machine.json(".gemini/settings.json")["mcpServers"] == {"git": {"command": "mine"}}
