"""A client's own program is run with a bound, and its version is found without it where possible."""

import os
from pathlib import Path

import pytest
from tests.support.client_machine import ClientMachine

from handrail.clients.client_program import find_version, run_program
from handrail.clients.known_clients import find_client


def test_a_version_is_read_from_the_package_or_asked_of_the_program(tmp_path: Path) -> None:
    machine, kimi = ClientMachine(tmp_path, "kimi"), find_client("kimi")
    assert find_version(kimi, machine.machine) == kimi.tried
    package = machine.home / "lib" / "kimi"
    (package / "dist").mkdir(parents=True)
    (package / "package.json").write_text('{"version": "9.8.7"}')
    (package / "dist" / "main.mjs").write_text("#!/bin/sh\nexit 1\n")
    (package / "dist" / "main.mjs").chmod(0o755)
    (machine.bin / "kimi").unlink()
    (machine.bin / "kimi").symlink_to(package / "dist" / "main.mjs")
    assert find_version(kimi, machine.machine) == "9.8.7"


def test_a_program_that_hangs_is_ended() -> None:
    with pytest.raises(TimeoutError, match="it took longer than"):
        run_program(["/bin/sh", "-c", "exec sleep 600"], os.environ, 0.1)


def test_a_program_that_cannot_be_run_has_no_version(tmp_path: Path) -> None:
    machine = ClientMachine(tmp_path, "kimi")
    (machine.bin / "kimi").write_text("#!/gone/interpreter\n")
    assert find_version(find_client("kimi"), machine.machine) == ""
