"""The third-party agents that Handrail is tried with: how each is started without a network, and what its tools are called.

Knows these agents' own settings and nothing of Handrail but the form of its configuration.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.real_agents.install import MODULES, SETS, node
from tests.support.model_server.script import Turn

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Real:
    """An agent, the way it is tried."""

    name: str
    command: Callable[[], tuple[str, ...]]
    environment: Callable[[str], Mapping[str, str]] = field(default=lambda _: {})
    """What it needs to take the model on this address for its own."""
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    """What must lie in its home: its settings, so that it stays away from the network."""
    writes: Callable[[Path, str], Turn] = field(default=lambda _path, _text: Turn())
    """Its own tool for writing a file."""
    runs: Callable[[str], Turn] = field(default=lambda _line: Turn())
    """Its own tool for running a command."""
    ours: str = ""
    """What it calls a tool of ours, of the MCP server that it is given."""
    tells_its_host: bool = False
    """Whether it adds messages of its own to what the model says."""
    takes_up: str = "resumed"
    """How it goes on with a conversation after it was ended."""
    finds_us_late: bool = False
    """Whether it looks for our tools while it already works on the first prompts."""
    writes_by_us: bool = False
    """Whether it writes files through its host, which asks about that too."""
    quirks: Mapping[str, bool] = field(default_factory=dict[str, bool])
    """Of its section in the configuration."""

    def uses(self, tool: str, values: Json) -> Turn:
        """One of our tools."""
        return Turn("With yours.", self.ours.format(tool), values)


def _script(package: str, entry: str, *args: str) -> Callable[[], tuple[str, ...]]:
    return lambda: (str(node()), str(MODULES / package / entry), *args)


def _claude_environment(model: str) -> Mapping[str, str]:
    return {
        "ANTHROPIC_BASE_URL": model,
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
    }


CLAUDE = Real(
    name="claude",
    command=_script("@agentclientprotocol/claude-agent-acp", "dist/index.js"),
    environment=_claude_environment,
    writes=lambda path, text: Turn("I write it.", "Write", {"file_path": str(path), "content": text}),
    runs=lambda line: Turn("I run it.", "Bash", {"command": line, "description": "A command"}),
    ours="mcp__handrail__{}",
)


def _opencode_command() -> tuple[str, ...]:
    (binary,) = MODULES.glob("opencode-*/bin/opencode")  # the one for this machine
    return (str(binary), "acp")


def _opencode_environment(model: str) -> Mapping[str, str]:
    scripted: Json = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Scripted",
        "options": {"baseURL": f"{model}/v1", "apiKey": "none"},
        "models": {"model": {"name": "Model", "limit": {"context": 100_000, "output": 4_000}}},
    }
    settings: Json = {
        "model": "scripted/model",
        "small_model": "scripted/model",
        "provider": {"scripted": scripted},
        "enabled_providers": ["scripted"],
        "permission": {"edit": "ask", "bash": "ask"},
        "autoupdate": False,
        "share": "disabled",
    }
    return {
        "OPENCODE_CONFIG_CONTENT": json.dumps(settings),
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
    }


OPENCODE = Real(
    name="opencode",
    command=_opencode_command,
    environment=_opencode_environment,
    files={
        # It would fetch this for plugins that nobody has asked for; so it takes it for installed.
        ".config/opencode/package-lock.json": json.dumps(
            {"packages": {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}}
        ),
        ".config/opencode/node_modules/.keep": "",
    },
    writes=lambda path, text: Turn("I write it.", "write", {"filePath": str(path), "content": text}),
    runs=lambda line: Turn("I run it.", "bash", {"command": line, "description": "A command"}),
    ours="handrail_{}",
    quirks={"writes_itself": True},
)


def _qwen_environment(model: str) -> Mapping[str, str]:
    return {
        "OPENAI_BASE_URL": f"{model}/v1",
        "OPENAI_API_KEY": "none",
        "OPENAI_MODEL": "model",
        "QWEN_TELEMETRY_ENABLED": "0",
    }


QWEN = Real(
    name="qwen",
    command=_script("@qwen-code/qwen-code", "cli-entry.js", "--acp", "--approval-mode", "default"),
    environment=_qwen_environment,
    files={
        ".qwen/settings.json": json.dumps(
            {
                "privacy": {"usageStatisticsEnabled": False},
                "general": {"enableAutoUpdate": False, "disableAutoUpdate": True},
                "telemetry": {"enabled": False},
            }
        )
    },
    writes=lambda path, text: Turn("I write it.", "write_file", {"file_path": str(path), "content": text}),
    runs=lambda line: Turn("I run it.", "run_shell_command", {"command": line, "is_background": False}),
    ours="mcp__handrail__{}",
    finds_us_late=True,
    writes_by_us=True,
)


EXAMPLE = Real(
    name="example",
    command=_script("@agentclientprotocol/sdk", "dist/examples/agent.js"),
)
"""The protocol's own example: it has no model, says always the same, writes nothing and keeps no record."""


# Those that only `make test-agents-all` tries.


def _other(package: str, entry: str, *args: str) -> Callable[[], tuple[str, ...]]:
    return lambda: (str(node()), str(SETS["others"].modules / package / entry), *args)


COPILOT = Real(
    name="copilot",
    command=_other("@github/copilot", "npm-loader.js", "--acp"),
    environment=lambda model: {
        "COPILOT_PROVIDER_BASE_URL": f"{model}/v1",
        "COPILOT_PROVIDER_API_KEY": "none",
        "COPILOT_MODEL": "gpt-5",
        "COPILOT_OFFLINE": "true",
        "COPILOT_AUTO_UPDATE": "false",
    },
    writes=lambda path, text: Turn("I write it.", "create", {"path": str(path), "file_text": text}),
    runs=lambda line: Turn("I run it.", "bash", {"command": line, "description": "A command"}),
    ours="handrail-{}",
    tells_its_host=True,
    takes_up="loaded",
)


ALWAYS = (CLAUDE, OPENCODE, QWEN)
"""Tried by `make test`, beside the example."""
MORE = (COPILOT,)
