"""A user with coding agents at a running Handrail, for tests of `handrail connect` as a command."""

from typing import Any

from tests.support.cli_home import CommandResult, Home
from tests.support.client_machine import ClientMachine


class Desk:
    """A user with clients, at a running Handrail."""

    def __init__(self, handrail: Home, machine: ClientMachine) -> None:
        self.handrail, self.machine = handrail, machine
        self.launcher = machine.bin / "handrail"
        self.launcher.write_text("#!/bin/sh\n")
        self.launcher.chmod(0o755)
        handrail.env |= machine.environ

    def run(self, *arguments: str) -> CommandResult:
        return self.handrail.run(*arguments, cwd=self.machine.project)

    def ok(self, *arguments: str) -> CommandResult:
        done = self.run(*arguments)
        assert done.code == 0, done
        return done

    def states(self) -> dict[str, Any]:
        return {row["client"]: row for row in self.ok("connect", "--json").json}
