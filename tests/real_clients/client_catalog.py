"""The coding agents whose own tools Handrail guards: how each runs one headless turn offline, and what its tools are called.

Knows these programs' own settings, and what each can promise under hooks. Does not know how Handrail connects to them.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tests.real_agents.install import SETS, node
from tests.support.model_server.script import Call, Turn

Json = dict[str, Any]
CHANGED = "A person changed this call before allowing it"
"""Handrail's words for a model whose call was edited."""
Fault = Literal["missing", "crashed", "killed", "daemon_down"]
"""What can be wrong with the hook program when a tool is about to run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A coding agent, the way it is tried."""

    name: str
    """As in `handrail connect NAME`."""
    command: Callable[[], tuple[str, ...]]
    arguments: tuple[str, ...]
    """For one headless turn; the prompt follows, or is the standard input."""
    asks_nobody: tuple[str, ...] = ()
    """Arguments with which it would run every command without a question of its own."""
    reads_prompt: bool = False
    """The prompt is the standard input."""
    environment: Callable[[str], Mapping[str, str]] = field(default=lambda _: {})
    """What makes it use the model at this address, and nothing else."""
    files: Callable[[str], Mapping[str, str]] = field(default=lambda _: {})
    """Its settings below the home directory, as a person who uses the model at this address has them."""
    runs: Callable[[str], Turn]
    """Its own tool for a shell command."""
    reads: Callable[[Path], Turn]
    """Its own tool that reads a file: some refuse to edit what they have not read."""
    writes: Callable[[Path, str], Turn]
    """Its own tool that creates a file."""
    edits: Callable[[Path, str, str], Turn]
    """Its own tool that replaces one text by another."""
    ours: Callable[[str, Json], Turn]
    """One of our MCP tools with an input."""
    waits_for_ours: tuple[Turn, ...] = ()
    """What the model does before it uses our tools, if the client asks it before our server has started."""
    ends: tuple[Turn, ...] = (Turn("That is all."),)
    """How the model ends a turn."""
    can_edit: bool
    """A person can change the command before it runs."""
    edit_notice: str = ""
    """What its model then reads; empty if it is told nothing."""
    clock_seconds: float = 86_000.0
    """How long Handrail lets it wait for a person before the model is told to repeat the call."""
    own_limit: float = 0.0
    """Seconds after which it runs the tool whatever is configured; 0 if it keeps to what `handrail connect` writes."""
    tells_reason: bool = True
    """The model reads why a call was refused."""
    shows_pictures: bool = True
    """The model is given a picture that a tool of an MCP server returns; some take the scripted model for one that sees none."""
    fails_open: frozenset[Fault] = frozenset()
    """Faults of the hook program after which it runs the tool in spite of all that can be configured."""

    def is_ours(self, call: Call) -> bool:
        """Whether it is a call of one of our MCP tools."""
        (sample,) = self.ours("", {}).uses
        return call.namespace == sample.namespace and call.tool.startswith(sample.tool)


def _named(prefix: str) -> Callable[[str, Json], Turn]:
    return lambda tool, values: Turn("I use yours.", prefix + tool, values)


def _script(group: str, package: str, entry: str) -> Callable[[], tuple[str, ...]]:
    return lambda: (str(node()), str(SETS[group].modules / package / entry))


def _binary(group: str, pattern: str) -> Callable[[], tuple[str, ...]]:
    """The program for this machine: only one of the platform packages is installed."""

    def command() -> tuple[str, ...]:
        (path,) = SETS[group].modules.glob(pattern)
        return (str(path),)

    return command


CLAUDE = Client(
    name="claude",
    command=_binary("clients", "@anthropic-ai/claude-code-*/claude"),
    arguments=("--output-format", "json", "-p"),
    asks_nobody=("--allowedTools", "Bash"),
    environment=lambda model: {
        "ANTHROPIC_BASE_URL": model,
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
    },
    runs=lambda line: Turn("I run it.", "Bash", {"command": line, "description": "A command"}),
    reads=lambda path: Turn("I read it.", "Read", {"file_path": str(path)}),
    writes=lambda path, text: Turn("I write it.", "Write", {"file_path": str(path), "content": text}),
    edits=lambda path, old, new: Turn(
        "I edit it.", "Edit", {"file_path": str(path), "old_string": old, "new_string": new}
    ),
    ours=_named("mcp__handrail__"),
    can_edit=True,
    edit_notice=f"{CHANGED}: `command` is",
)


def _codex_files(model: str) -> Mapping[str, str]:
    provider = {
        "name": "Scripted",
        "base_url": f"{model}/v1",
        "wire_api": "responses",
        "env_key": "SCRIPTED_KEY",
    }
    lines = [
        'model = "gpt-5.5"',  # one with its tool for patches
        'model_provider = "scripted"',
        'sandbox_mode = "danger-full-access"',
        "check_for_update_on_startup = false",
        "[analytics]",
        "enabled = false",
        "[model_providers.scripted]",
        *(f"{key} = {json.dumps(value)}" for key, value in provider.items()),
    ]
    return {".codex/config.toml": "\n".join(lines) + "\n"}


def _patch(*lines: str) -> Turn:
    text = "\n".join(("*** Begin Patch", *lines, "*** End Patch", ""))
    return Turn("I patch it.", calls=(Call("apply_patch", text, freeform=True),))


CODEX = Client(
    name="codex",
    command=_script("clients", "@openai/codex", "bin/codex.js"),
    arguments=("exec", "--skip-git-repo-check", "--json"),
    environment=lambda _: {"SCRIPTED_KEY": "none"},
    files=_codex_files,
    runs=lambda line: Turn("I run it.", "exec_command", {"cmd": line}),
    reads=lambda path: Turn("I read it.", "exec_command", {"cmd": f"cat {path}"}),
    writes=lambda path, text: _patch(f"*** Add File: {path}", *(f"+{line}" for line in text.splitlines())),
    edits=lambda path, old, new: _patch(f"*** Update File: {path}", "@@", f"-{old}", f"+{new}"),
    ours=lambda tool, values: Turn("I use yours.", calls=(Call(tool, values, namespace="mcp__handrail"),)),
    waits_for_ours=(Turn("I look.", "list_mcp_resources", {"server": "handrail"}),),
    can_edit=True,
)


GEMINI = Client(
    name="gemini",
    command=_script("clients", "@google/gemini-cli", "bundle/gemini.js"),
    arguments=("--yolo", "-m", "gemini-2.5-pro", "-p"),
    environment=lambda model: {
        "GEMINI_API_KEY": "none",
        "GOOGLE_GEMINI_BASE_URL": model,
        "GEMINI_CLI_NO_RELAUNCH": "1",
    },
    files=lambda _: {
        ".gemini/settings.json": json.dumps(
            {
                "security": {
                    "auth": {"selectedType": "gemini-api-key"},
                    "folderTrust": {"enabled": False},
                },
                "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
                "privacy": {"usageStatisticsEnabled": False},
                "telemetry": {"enabled": False},
            },
            indent=2,
        )
        + "\n"
    },
    runs=lambda line: Turn("I run it.", "run_shell_command", {"command": line}),
    reads=lambda path: Turn("I read it.", "read_file", {"file_path": str(path)}),
    writes=lambda path, text: Turn("I write it.", "write_file", {"file_path": str(path), "content": text}),
    edits=lambda path, old, new: Turn(
        "I edit it.",
        "replace",
        {"file_path": str(path), "instruction": "Replace it.", "old_string": old, "new_string": new},
    ),
    ours=_named("mcp_handrail_"),
    can_edit=True,
    edit_notice="Tool input parameters were modified by a hook",
)


def _opencode_files(url: str) -> Mapping[str, str]:
    model: Json = {
        "name": "Model",
        "limit": {"context": 100_000, "output": 4_000},
        "attachment": True,
        "modalities": {"input": ["text", "image"], "output": ["text"]},
    }
    scripted: Json = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Scripted",
        "options": {"baseURL": f"{url}/v1", "apiKey": "none"},
        "models": {"model": model},
    }
    settings: Json = {
        "model": "scripted/model",
        "small_model": "scripted/model",
        "provider": {"scripted": scripted},
        "enabled_providers": ["scripted"],
        "autoupdate": False,
        "share": "disabled",
    }
    return {
        ".config/opencode/opencode.json": json.dumps(settings, indent=2) + "\n",
        # It would fetch this package for plugins; so it takes it for installed.
        ".config/opencode/package-lock.json": json.dumps(
            {"packages": {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}}
        ),
        ".config/opencode/node_modules/.keep": "",
    }


OPENCODE = Client(
    name="opencode",
    command=_binary("agents", "opencode-*/bin/opencode"),
    arguments=("run",),
    reads_prompt=True,
    environment=lambda _: {
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
    },
    files=_opencode_files,
    runs=lambda line: Turn("I run it.", "bash", {"command": line, "description": "A command"}),
    reads=lambda path: Turn("I read it.", "read", {"filePath": str(path)}),
    writes=lambda path, text: Turn("I write it.", "write", {"filePath": str(path), "content": text}),
    edits=lambda path, old, new: Turn(
        "I edit it.", "edit", {"filePath": str(path), "oldString": old, "newString": new}
    ),
    ours=_named("handrail_"),
    can_edit=True,
    edit_notice=f"{CHANGED}: `command` is",
)


QWEN = Client(
    name="qwen",
    command=_script("agents", "@qwen-code/qwen-code", "cli-entry.js"),
    arguments=("--yolo", "-p"),
    environment=lambda model: {
        "OPENAI_BASE_URL": f"{model}/v1",
        "OPENAI_API_KEY": "none",
        "OPENAI_MODEL": "model",
        "QWEN_TELEMETRY_ENABLED": "0",
    },
    files=lambda _: {
        ".qwen/settings.json": json.dumps(
            {
                "security": {"auth": {"selectedType": "openai"}},
                "privacy": {"usageStatisticsEnabled": False},
                "general": {"enableAutoUpdate": False, "disableAutoUpdate": True},
                "telemetry": {"enabled": False},
            },
            indent=2,
        )
        + "\n"
    },
    runs=lambda line: Turn("I run it.", "run_shell_command", {"command": line, "is_background": False}),
    reads=lambda path: Turn("I read it.", "read_file", {"file_path": str(path)}),
    writes=lambda path, text: Turn("I write it.", "write_file", {"file_path": str(path), "content": text}),
    edits=lambda path, old, new: Turn(
        "I edit it.", "edit", {"file_path": str(path), "old_string": old, "new_string": new}
    ),
    ours=_named("mcp__handrail__"),
    clock_seconds=50.0,
    own_limit=60.0,
    can_edit=False,
    shows_pictures=False,
)


COPILOT = Client(
    name="copilot",
    command=_script("others", "@github/copilot", "npm-loader.js"),
    arguments=("--no-color", "-p"),
    asks_nobody=("--allow-all-tools",),
    environment=lambda model: {
        "COPILOT_PROVIDER_BASE_URL": f"{model}/v1",
        "COPILOT_PROVIDER_API_KEY": "none",
        "COPILOT_MODEL": "gpt-5",
        "COPILOT_OFFLINE": "true",
        "COPILOT_AUTO_UPDATE": "false",
    },
    runs=lambda line: Turn("I run it.", "bash", {"command": line, "description": "A command"}),
    reads=lambda path: Turn("I read it.", "view", {"path": str(path)}),
    writes=lambda path, text: Turn("I write it.", "create", {"path": str(path), "file_text": text}),
    edits=lambda path, old, new: Turn(
        "I edit it.", "edit", {"path": str(path), "old_str": old, "new_str": new}
    ),
    ours=_named("handrail-"),
    can_edit=True,
    shows_pictures=False,
)


def _kimi_files(model: str) -> Mapping[str, str]:
    lines = [
        'default_model = "scripted"',
        'default_permission_mode = "yolo"',
        "telemetry = false",
        "[providers.scripted]",
        'type = "openai"',
        f'base_url = "{model}/v1"',
        'api_key = "none"',
        "[models.scripted]",
        'provider = "scripted"',
        'model = "model"',
        "max_context_size = 100000",
    ]
    return {".kimi-code/config.toml": "\n".join(lines) + "\n"}


KIMI = Client(
    name="kimi",
    command=_script("others", "@moonshot-ai/kimi-code", "dist/main.mjs"),
    arguments=("-p",),
    files=_kimi_files,
    runs=lambda line: Turn("I run it.", "Bash", {"command": line, "description": "A command"}),
    reads=lambda path: Turn("I read it.", "Read", {"path": str(path)}),
    writes=lambda path, text: Turn("I write it.", "Write", {"path": str(path), "content": text}),
    edits=lambda path, old, new: Turn(
        "I edit it.", "Edit", {"path": str(path), "old_string": old, "new_string": new}
    ),
    # It takes one underscore for several within the name of a tool.
    ours=lambda tool, values: _named("mcp__handrail__")(tool.replace("__", "_"), values),
    # Kimi ends the hooks of a turn with the turn. As with any real model, the last words take longer than a report.
    ends=(Turn("That is all that I had to do in this folder.", pace=0.5),),
    clock_seconds=570.0,
    can_edit=False,
)


def _cline_files(model: str) -> Mapping[str, str]:
    provider: Json = {
        "settings": {
            "provider": "openai-compatible",
            "apiKey": "none",
            "model": "model",
            "baseUrl": f"{model}/v1",
        },
        "updatedAt": "2026-01-01T00:00:00.000Z",
        "tokenSource": "manual",
    }
    settings: Json = {
        "version": 1,
        "lastUsedProvider": "openai-compatible",
        "modes": {},
        "providers": {"openai-compatible": provider},
    }
    return {".cline/data/settings/providers.json": json.dumps(settings, indent=2) + "\n"}


CLINE = Client(
    name="cline",
    command=_binary("others", "@cline/cli-*/bin/cline"),
    arguments=("--yolo",),
    files=_cline_files,
    runs=lambda line: Turn("I run it.", "run_commands", {"commands": [line]}),
    reads=lambda path: Turn("I read it.", "read_files", {"files": [{"path": str(path)}]}),
    writes=lambda path, text: Turn("I write it.", "editor", {"path": str(path), "new_text": text}),
    edits=lambda path, old, new: Turn(
        "I edit it.", "editor", {"path": str(path), "old_text": old, "new_text": new}
    ),
    ours=_named("handrail__"),
    ends=(Turn("That is all.", "submit_and_exit", {"summary": "It is done.", "verified": True}),),
    clock_seconds=110.0,
    own_limit=120.0,
    can_edit=True,
)


ALWAYS = (CLAUDE, CODEX, GEMINI)
"""Tried by `make test`: those that start fastest."""
ALL = (*ALWAYS, QWEN, OPENCODE, COPILOT, KIMI, CLINE)
