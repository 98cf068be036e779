"""The third-party agents that Handrail is tried with: how each is started without a network, and what its tools are called.

Knows these agents' own settings, and the facts in which they differ; nothing of Handrail but the form of its configuration.
What an agent cannot do is a fact here too, and the tests assert it.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from tests.real_agents.install import SETS
from tests.real_agents.python_agents import FAST_AGENT, VIBE
from tests.real_agents.real_agent import Json, Real, binary_command, named, script_command
from tests.support.model_server.script import Call, Turn

CLAUDE = Real(
    name="claude",
    title="Claude Code",
    package="@agentclientprotocol/claude-agent-acp",
    source=SETS["agents"],
    command=script_command("agents", "@agentclientprotocol/claude-agent-acp", "dist/index.js"),
    environment=lambda model: {
        "ANTHROPIC_BASE_URL": model,
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
    },
    writes=lambda path, text: Turn("I write it.", "Write", {"file_path": str(path), "content": text}),
    runs=lambda line: Turn("I run it.", "Bash", {"command": line, "description": "A command"}),
    ours=named("mcp__handrail__{}"),
    remarks=(
        "runs read-only commands without asking, and in its mode *Accept Edits* also commands such as `touch`.",
    ),
)


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
    title="opencode",
    package="opencode-*",
    source=SETS["agents"],
    command=binary_command("agents", "opencode-*/bin/opencode", "acp"),
    environment=_opencode_environment,
    files=lambda _: {
        # It would fetch this for plugins that nobody has asked for; so it takes it for installed.
        ".config/opencode/package-lock.json": json.dumps(
            {"packages": {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}}
        ),
        ".config/opencode/node_modules/.keep": "",
    },
    writes=lambda path, text: Turn("I write it.", "write", {"filePath": str(path), "content": text}),
    runs=lambda line: Turn("I run it.", "bash", {"command": line, "description": "A command"}),
    ours=named("handrail_{}"),
    denial_ends_turn=True,
    quirks={"writes_itself": True},
    remarks=(
        "asks because its settings say so (`permission: {edit: ask, bash: ask}`); else it asks nobody.",
        "also sends its host the text it writes, without waiting for the answer. `writes_itself` is set for it.",
    ),
)


QWEN = Real(
    name="qwen",
    title="Qwen Code",
    package="@qwen-code/qwen-code",
    source=SETS["agents"],
    command=script_command(
        "agents", "@qwen-code/qwen-code", "cli-entry.js", "--acp", "--approval-mode", "default"
    ),
    environment=lambda model: {
        "OPENAI_BASE_URL": f"{model}/v1",
        "OPENAI_API_KEY": "none",
        "OPENAI_MODEL": "model",
        "QWEN_TELEMETRY_ENABLED": "0",
    },
    files=lambda _: {
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
    ours=named("mcp__handrail__{}"),
    finds_us_late=True,
    denial_ends_turn=True,
    write_asks=("agent_work", "write_file"),
    remarks=("finds Handrail's tools some seconds after the session starts.",),
)


EXAMPLE = Real(
    name="example",
    title="example agent of the TypeScript SDK",
    package="@agentclientprotocol/sdk",
    source=SETS["agents"],
    command=script_command("agents", "@agentclientprotocol/sdk", "dist/examples/agent.js"),
    takes_up=None,
    remarks=("has no model: it says always the same. Later versions of the SDK ship none.",),
)
"""The protocol's own example: it has no model, says always the same, writes nothing and keeps no record."""


# Those that only `make test-agents-all` tries.


COPILOT = Real(
    name="copilot",
    title="GitHub Copilot CLI",
    package="@github/copilot",
    source=SETS["others"],
    command=script_command("others", "@github/copilot", "npm-loader.js", "--acp"),
    environment=lambda model: {
        "COPILOT_PROVIDER_BASE_URL": f"{model}/v1",
        "COPILOT_PROVIDER_API_KEY": "none",
        "COPILOT_MODEL": "gpt-5",
        "COPILOT_OFFLINE": "true",
        "COPILOT_AUTO_UPDATE": "false",
    },
    writes=lambda path, text: Turn("I write it.", "create", {"path": str(path), "file_text": text}),
    runs=lambda line: Turn("I run it.", "bash", {"command": line, "description": "A command"}),
    ours=named("handrail-{}"),
    tells_its_host=True,
    takes_up="loaded",
    denial_ends_turn=True,
)


GEMINI = Real(
    name="gemini",
    title="Gemini CLI",
    package="@google/gemini-cli",
    source=SETS["clients"],
    command=script_command(
        "clients", "@google/gemini-cli", "bundle/gemini.js", "--acp", "-m", "gemini-2.5-pro"
    ),
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
            }
        )
    },
    writes=lambda path, text: Turn("I write it.", "write_file", {"file_path": str(path), "content": text}),
    runs=lambda line: Turn("I run it.", "run_shell_command", {"command": line}),
    ours=named("mcp_handrail_{}"),
    write_asks=("agent_work", "write_file"),
    takes_up="loaded",
    names_record_by_minute=True,
    is_broken_by_cancel=True,
    quirks={"missing_file_is_empty": True, "title_is_command": True},
    remarks=(
        "cannot go on after Stop in a tool call: its model refuses its session. It gets a new one, with a summary.",
        "overwrites its record if it loads a session in the minute in which that began. It gets a summary then.",
    ),
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
        "check_for_update_on_startup = false",
        "[features]",  # which it would fetch something for
        "plugins = false",
        "apps = false",
        "[analytics]",
        "enabled = false",
        "[model_providers.scripted]",
        *(f"{key} = {json.dumps(value)}" for key, value in provider.items()),
    ]
    return {".codex/config.toml": "\n".join(lines) + "\n"}


def _codex_patch(path: Path, text: str) -> Turn:
    added = (f"+{line}" for line in text.splitlines())
    patch = "\n".join(("*** Begin Patch", f"*** Add File: {path}", *added, "*** End Patch", ""))
    return Turn("I write it.", calls=(Call("apply_patch", patch, freeform=True),))


def _codex_command(line: str, **more: int) -> Turn:
    asks = {"sandbox_permissions": "require_escalated", "justification": "A command"}
    return Turn("I run it.", "exec_command", {"cmd": line, **asks, **more})


CODEX = Real(
    name="codex",
    title="Codex",
    package="@agentclientprotocol/codex-acp",
    source=SETS["others"],
    command=script_command("others", "@agentclientprotocol/codex-acp", "dist/index.js"),
    environment=lambda _: {
        "SCRIPTED_KEY": "none",
        "NO_BROWSER": "1",
        "INITIAL_AGENT_MODE": "read-only",  # where a person is asked; by default a model answers instead
    },
    files=_codex_files,
    writes=_codex_patch,
    runs=_codex_command,
    ours=lambda tool, values: Turn("With yours.", calls=(Call(tool, values, namespace="mcp__handrail"),)),
    denial_ends_turn=True,
    leaves=lambda line: _codex_command(line, yield_time_ms=250),
    remarks=(
        "was tried in its mode `read-only`. In its default mode, `agent`, a model answers instead of you.",
    ),
)


CODEX_ZED = Real(
    name="codex-zed",
    title="Codex, by Zed's adapter",
    package="@zed-industries/codex-acp",
    source=SETS["others"],
    command=binary_command("others", "@zed-industries/codex-acp-*/bin/codex-acp"),
    environment=lambda _: {"SCRIPTED_KEY": "none", "NO_BROWSER": "1"},
    files=_codex_files,
    writes=_codex_patch,
    runs=_codex_command,
    ours=lambda tool, values: Turn("With yours.", calls=(Call(tool, values, namespace="mcp__handrail"),)),
    denial_ends_turn=True,
    leaves=lambda line: _codex_command(line, yield_time_ms=250),
)


def _kimi_files(model: str) -> Mapping[str, str]:
    lines = [
        'default_model = "scripted"',
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


KIMI = Real(
    name="kimi",
    title="Kimi Code",
    package="@moonshot-ai/kimi-code",
    source=SETS["others"],
    command=script_command("others", "@moonshot-ai/kimi-code", "dist/main.mjs", "acp"),
    files=_kimi_files,
    writes=lambda path, text: Turn("I write it.", "Write", {"path": str(path), "content": text}),
    runs=lambda line: Turn("I run it.", "Bash", {"command": line, "description": "A command"}),
    ours=named("mcp__handrail__{}"),
    run_asks=("agent_work", "execute_command"),
    write_asks=("agent_work", "write_file"),
    quirks={"input_in_content": True},
)


GOOSE = Real(
    name="goose",
    title="goose",
    package="@aaif/goose-acp",
    source=SETS["others"],
    command=binary_command("others", "@aaif/goose-binary-*/bin/goose", "acp"),
    environment=lambda model: {
        "GOOSE_PROVIDER": "openai",
        "GOOSE_MODEL": "model",
        "GOOSE_MODE": "approve",
        "OPENAI_HOST": model,
        "OPENAI_API_KEY": "none",
        "GOOSE_DISABLE_KEYRING": "1",
        "GOOSE_TELEMETRY_ENABLED": "false",
    },
    writes=lambda path, text: Turn("I write it.", "write", {"path": str(path), "content": text}),
    runs=lambda line: Turn("I run it.", "shell", {"command": line}),
    ours=named("handrail__{}"),
    run_asks=("agent_work", "execute_command"),
    write_asks=("agent_work", "write_file"),
    takes_up="loaded",
)


ALWAYS = (CLAUDE, OPENCODE, QWEN)
"""Tried by `make test`, beside the example."""
MORE = (COPILOT, GEMINI, CODEX, CODEX_ZED, KIMI, GOOSE, FAST_AGENT, VIBE)
