"""code-server, a VS Code server: its chat becomes that of Handrail's threads (the Agent Host Protocol).

Nothing is written into code-server's own files. Handrail's `[ahp]` is enabled, and code-server is started with one flag.
"""

import shlex
from pathlib import Path

from handrail.clients.client_facts import Editor, Machine, Setup, member
from handrail.clients.pieces import ConfigPiece
from handrail.paths import Places

FLAG = "agent-host-bridge-path"
"""VS Code's option that names the socket of another agent host."""


class CodeServer(Editor):
    name = "code-server"
    title = "code-server"
    programs = ("code-server",)
    tried = "4.139.1"
    has_hooks = False
    has_project_scope = False
    promises = "shows Handrail's threads, approvals and terminals in VS Code's own chat"

    def folder(self, machine: Machine) -> Path:
        return machine.config / "code-server"

    def mcp_pieces(self, setup: Setup) -> list[ConfigPiece]:
        """The switch in Handrail's own configuration."""
        return [member(Places.find(setup.machine.environ).config, ("ahp", "enabled"), True, "toml")]

    def steps(self, setup: Setup) -> list[str]:
        socket = Places.find(setup.machine.environ).ahp_socket
        option = shlex.quote(f"{FLAG}={socket}")
        return [
            "Run `handrail restart`, and look at the change of config.toml with `handrail rules accept`.",
            f"Start code-server with: code-server --vscode-option {option}",
            "Or let its config.yaml have the line: vscode-option: " + option,
            "The window then asks to be paired, before it may decide: `handrail editors`.",
        ]
