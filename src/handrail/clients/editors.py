"""VS Code, Zed and JetBrains. Zed and JetBrains get the MCP server and ACP agents, from their documentation; not tried.

VS Code gets our extension (`vscode_extension`), which registers the MCP server over HTTP. An entry for a server on stdio would
make an agent of VS Code's extension host.

VS Code also loads the hooks of Claude Code and of Copilot CLI, so that their dialects know its tools, too.
"""

import sys
from pathlib import Path
from typing import Any

from handrail.clients.client_facts import SERVER, Editor, Machine, Setup, member
from handrail.clients.config_edit import Format, Pointer
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

    def mcp_lists(self, setup: Setup) -> list[tuple[Path, Format, Pointer]]:
        in_project = setup.scope == "project"
        folder = setup.project / ".vscode" if in_project else self.folder(setup.machine)
        return [(folder / "mcp.json", "json", ("servers",))]


class Zed(Editor):
    name = "zed"
    title = "Zed"
    programs = ("zed", "zeditor")
    has_hooks = False
    starts_agents = True
    promises = NO_HOOKS

    def folder(self, machine: Machine) -> Path:
        return machine.config / "zed"

    def mcp_pieces(self, setup: Setup) -> list[ConfigPiece]:
        settings = self.settings_folder(setup, ".zed") / "settings.json"
        server = {**setup.server(), "env": setup.launcher.environment}
        return [
            member(settings, ("context_servers", SERVER), server),
            *_agent_pieces(settings, setup, type="custom"),
        ]


class JetBrains(Editor):
    """JetBrains' IDEs start the agents of `acp.json`; Junie has a file of MCP servers."""

    name = "jetbrains"
    title = "JetBrains"
    programs = ("junie",)
    home = ("", ".junie")
    has_hooks = False
    starts_agents = True
    promises = NO_HOOKS

    def is_found(self, machine: Machine) -> bool:
        folders = (machine.home / ".jetbrains", _config_folder(machine) / "JetBrains")
        return super().is_found(machine) or any(folder.is_dir() for folder in folders)

    def mcp_pieces(self, setup: Setup) -> list[ConfigPiece]:
        folder = self.settings_folder(setup, ".junie")
        return [
            member(folder / "mcp" / "mcp.json", ("mcpServers", SERVER), setup.server()),
            *_agent_pieces(setup.machine.home / ".jetbrains" / "acp.json", setup),
        ]


def _agent_pieces(path: Path, setup: Setup, **more: str) -> list[ConfigPiece]:
    """Our own agent and the installed ones, in the user's own settings. The names leave entries of the user alone."""
    if setup.scope == "project":
        return []
    launcher = setup.launcher
    entries: dict[str, dict[str, Any]] = {
        "Handrail": {**more, "command": launcher.path, "args": ["agent"], "env": launcher.environment}
    }
    for agent in setup.agents:
        program, *words = agent.command
        entries[f"{agent.title} (Handrail)"] = {**more, "command": program, "args": words, "env": {}}
    return [member(path, ("agent_servers", name), entry) for name, entry in entries.items()]


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
