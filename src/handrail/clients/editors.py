"""VS Code, Zed and JetBrains Junie. Zed and Junie get the MCP server only, from their documentation; not tried.

VS Code gets our extension (`vscode_extension`), which registers the MCP server over HTTP. An entry for a server on stdio would
make an agent of VS Code's extension host.

VS Code also loads the hooks of Claude Code and of Copilot CLI, so that their dialects know its tools, too.
"""

import sys
from pathlib import Path

from handrail.clients.client_facts import SERVER, Editor, Machine, Setup, member
from handrail.clients.copilot import CopilotHooks
from handrail.clients.hook_event import Json, Work
from handrail.clients.pieces import ConfigPiece
from handrail.clients.vscode_tools import vscode_work

NO_HOOKS = "has no hooks: Handrail sees only the calls to its own tools"


class VSCode(Editor):
    name = "vscode"
    title = "VS Code"
    programs = ("code", "code-insiders", "codium", "code-server")
    has_hooks = False
    promises = NO_HOOKS + ", unless Claude Code or Copilot CLI is connected, whose hooks VS Code loads"

    def folder(self, machine: Machine) -> Path:
        return _config_folder(machine) / "Code" / "User"

    def mcp_pieces(self, setup: Setup) -> list[ConfigPiece]:
        return []


class Zed(Editor):
    name = "zed"
    title = "Zed"
    programs = ("zed", "zeditor")
    has_hooks = False
    promises = NO_HOOKS

    def folder(self, machine: Machine) -> Path:
        return machine.config / "zed"

    def mcp_pieces(self, setup: Setup) -> list[ConfigPiece]:
        folder = self.settings_folder(setup, ".zed")
        server = {**setup.server(), "env": setup.launcher.environment}
        return [member(folder / "settings.json", ("context_servers", SERVER), server)]


class JetBrains(Editor):
    name = "jetbrains"
    title = "JetBrains Junie"
    programs = ("junie",)
    has_hooks = False
    promises = NO_HOOKS

    def folder(self, machine: Machine) -> Path:
        return machine.home / ".junie"

    def mcp_pieces(self, setup: Setup) -> list[ConfigPiece]:
        folder = self.settings_folder(setup, ".junie")
        return [member(folder / "mcp" / "mcp.json", ("mcpServers", SERVER), setup.server())]


def _config_folder(machine: Machine) -> Path:
    if sys.platform == "darwin":
        return machine.home / "Library" / "Application Support"
    return machine.config


class VscodeHooks(CopilotHooks):
    """The agent in VS Code."""

    name = "vscode"

    def work(self, tool: str, input: Json, payload: Json) -> Work:
        """VS Code's tools, then those of Copilot CLI, which VS Code can run as its agent."""
        return vscode_work(tool, input) or super().work(tool, input, payload)
