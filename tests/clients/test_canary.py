"""The command that a canary runs is the one that the client runs."""

from pathlib import Path

import pytest
from tests.support.client_machine import ClientMachine

from handrail.clients.canary import find_hook_command, send_canary
from handrail.clients.hook_event import CANARY_ANSWER
from handrail.clients.known_clients import NAMES, find_client
from handrail.clients.launcher_path import Launcher

HOOKED = [name for name in NAMES if find_client(name).has_hooks]


@pytest.mark.parametrize("name", HOOKED)
def test_the_recorded_command_of_every_client_gets_the_canary(tmp_path: Path, name: str) -> None:
    machine = ClientMachine(tmp_path, name)
    program = machine.home / "hand rail"
    program.write_text(f'#!/bin/sh\ncat > "{machine.home}/payload"; echo "$2: {CANARY_ANSWER}" >&2; exit 2\n')
    program.chmod(0o755)
    machine.connect(name, launcher=Launcher(str(program)))
    connection = machine.connections.find(name)
    assert connection is not None

    result = send_canary(connection, machine.environ)

    assert result.is_answered
    assert (machine.home / "payload").read_text() == '{"handrail_canary": true}'
    program.unlink()
    assert not send_canary(connection, machine.environ).is_answered


def test_a_connection_without_hooks_has_no_command(tmp_path: Path) -> None:
    machine = ClientMachine(tmp_path)
    machine.connect("zed", has_hooks=False)
    connection = machine.connections.find("zed")
    assert connection is not None
    assert find_hook_command(connection) is None
    assert not send_canary(connection, machine.environ).is_answered
