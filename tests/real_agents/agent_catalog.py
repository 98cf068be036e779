"""The third-party agents that Handrail is tried with: how each is started without a network, and what its tools are called.

Knows these agents' own settings, and the facts in which they differ; nothing of Handrail but the form of its configuration.
What an agent cannot do is a fact here too, and the tests assert it.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tests.real_agents.install import PYTHON_SETS, SETS, PackageSet, PythonSet, node
from tests.support.model_server.script import Call, Turn

Json = dict[str, Any]
Question = Literal["agent_work", "write_file", "execute_command"]
"""What a person is asked about: work that the agent does itself, or a file or terminal request that Handrail carries out."""
BY_ITSELF: tuple[Question, ...] = ("agent_work",)
"""The agent asks, and does the work itself."""
BY_US: tuple[Question, ...] = ("write_file",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Real:
    """An agent, the way it is tried."""

    name: str
    title: str
    """Of its row in docs/agents.md."""
    package: str
    """Whose version is the agent's."""
    source: PackageSet | PythonSet
    command: Callable[[], tuple[str, ...]]
    environment: Callable[[str], Mapping[str, str]] = field(default=lambda _: {})
    """What it needs to take the model on this address for its own."""
    files: Callable[[str], Mapping[str, str]] = field(default=lambda _: {})
    """What must lie in its home, for the model on this address: its settings, so that it stays away from the network."""
    writes: Callable[[Path, str], Turn] = field(default=lambda _path, _text: Turn())
    """Its own tool for writing a file."""
    runs: Callable[[str], Turn] = field(default=lambda _line: Turn())
    """Its own tool for running a command."""
    ours: Callable[[str, Json], Turn] | None = None
    """A use of one of our tools, of the MCP server that it is given; None if it takes no server."""
    run_asks: tuple[Question, ...] = BY_ITSELF
    """What is asked about one command, in this order."""
    write_asks: tuple[Question, ...] = BY_ITSELF
    """What is asked about one new file, in this order; nothing if it writes unasked, which Handrail records."""
    denial_ends_turn: bool = False
    """Whether its turn ends with a denial, so that its model is not asked again."""
    leaves: Callable[[str], Turn] | None = None
    """Its tool for a command that its model does not wait for, which runs on after a cancel until Handrail stops it."""
    is_broken_by_cancel: bool = False
    """Whether its model refuses its session once a tool call was cancelled, so that Handrail gives it a new one."""
    names_record_by_minute: bool = False
    """Whether it cannot load the record of a session that began in the same minute."""
    tells_its_host: bool = False
    """Whether it adds messages of its own to what the model says."""
    takes_up: Literal["resumed", "loaded"] | None = "resumed"
    """How it goes on with a conversation after it was ended; None if it keeps no record, and gets a summary."""
    finds_us_late: bool = False
    """Whether it looks for our tools while it already works on the first prompts."""
    quirks: Mapping[str, bool] = field(default_factory=dict[str, bool])
    """Of its section in the configuration."""
    remarks: tuple[str, ...] = ()
    """Sentences about it below the table of docs/agents.md."""

    @property
    def version(self) -> str:
        return self.source.version(self.package)


def _named(pattern: str) -> Callable[[str, Json], Turn]:
    return lambda tool, values: Turn("With yours.", pattern.format(tool), values)


def _script(group: str, package: str, entry: str, *args: str) -> Callable[[], tuple[str, ...]]:
    return lambda: (str(node()), str(SETS[group].modules / package / entry), *args)


def _binary(group: str, pattern: str, *args: str) -> Callable[[], tuple[str, ...]]:
    """The program for this machine: only one of the platform packages is installed."""

    def command() -> tuple[str, ...]:
        (path,) = SETS[group].modules.glob(pattern)
        return (str(path), *args)

    return command


CLAUDE = Real(
    name="claude",
    title="Claude Code",
    package="@agentclientprotocol/claude-agent-acp",
    source=SETS["agents"],
    command=_script("agents", "@agentclientprotocol/claude-agent-acp", "dist/index.js"),
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
    ours=_named("mcp__handrail__{}"),
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
    command=_binary("agents", "opencode-*/bin/opencode", "acp"),
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
    ours=_named("handrail_{}"),
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
    command=_script("agents", "@qwen-code/qwen-code", "cli-entry.js", "--acp", "--approval-mode", "default"),
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
    ours=_named("mcp__handrail__{}"),
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
    command=_script("agents", "@agentclientprotocol/sdk", "dist/examples/agent.js"),
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
    command=_script("others", "@github/copilot", "npm-loader.js", "--acp"),
    environment=lambda model: {
        "COPILOT_PROVIDER_BASE_URL": f"{model}/v1",
        "COPILOT_PROVIDER_API_KEY": "none",
        "COPILOT_MODEL": "gpt-5",
        "COPILOT_OFFLINE": "true",
        "COPILOT_AUTO_UPDATE": "false",
    },
    writes=lambda path, text: Turn("I write it.", "create", {"path": str(path), "file_text": text}),
    runs=lambda line: Turn("I run it.", "bash", {"command": line, "description": "A command"}),
    ours=_named("handrail-{}"),
    tells_its_host=True,
    takes_up="loaded",
    denial_ends_turn=True,
)


GEMINI = Real(
    name="gemini",
    title="Gemini CLI",
    package="@google/gemini-cli",
    source=SETS["clients"],
    command=_script("clients", "@google/gemini-cli", "bundle/gemini.js", "--acp", "-m", "gemini-2.5-pro"),
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
    ours=_named("mcp_handrail_{}"),
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
    command=_script("others", "@agentclientprotocol/codex-acp", "dist/index.js"),
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
    command=_binary("others", "@zed-industries/codex-acp-*/bin/codex-acp"),
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
    command=_script("others", "@moonshot-ai/kimi-code", "dist/main.mjs", "acp"),
    files=_kimi_files,
    writes=lambda path, text: Turn("I write it.", "Write", {"path": str(path), "content": text}),
    runs=lambda line: Turn("I run it.", "Bash", {"command": line, "description": "A command"}),
    ours=_named("mcp__handrail__{}"),
    run_asks=("agent_work", "execute_command"),
    write_asks=("agent_work", "write_file"),
    quirks={"input_in_content": True},
)


GOOSE = Real(
    name="goose",
    title="goose",
    package="@aaif/goose-acp",
    source=SETS["others"],
    command=_binary("others", "@aaif/goose-binary-*/bin/goose", "acp"),
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
    ours=_named("handrail__{}"),
    run_asks=("agent_work", "execute_command"),
    write_asks=("agent_work", "write_file"),
    takes_up="loaded",
)


FAST_AGENT = Real(
    name="fast-agent",
    title="fast-agent",
    package="fast-agent-mcp",
    source=PYTHON_SETS["fast-agent"],
    command=lambda: (
        str(PYTHON_SETS["fast-agent"].installed / "bin" / "fast-agent-acp"),
        *("--shell", "--model", "generic.model"),
    ),
    environment=lambda model: {"GENERIC_API_KEY": "none", "GENERIC_BASE_URL": f"{model}/v1"},
    writes=lambda path, text: Turn("I write it.", "write_text_file", {"path": str(path), "content": text}),
    runs=lambda line: Turn("I run it.", "execute", {"command": line}),
    ours=_named("handrail__{}"),
    run_asks=("agent_work", "execute_command"),
    write_asks=("agent_work", "write_file"),
    quirks={"one_per_thread": True},
    remarks=(
        "cannot be given Handrail's tools in two sessions of one process. `one_per_thread` is set for it.",
    ),
)


def _vibe_files(model: str) -> Mapping[str, str]:
    lines = [
        'active_model = "scripted"',
        "enable_telemetry = false",
        "enable_update_checks = false",
        "enable_auto_update = false",
        "[[providers]]",
        'name = "scripted"',
        f'api_base = "{model}/v1"',
        'api_key_env_var = "SCRIPTED_KEY"',
        'backend = "generic"',
        "[[models]]",
        'name = "model"',
        'provider = "scripted"',
        'alias = "scripted"',
    ]
    return {".vibe/config.toml": "\n".join(lines) + "\n"}


def _vibe_code(tool: str, values: Json) -> Turn:
    """Vibe's model calls tools of MCP servers from code."""
    code = f"async function main() {{ return await tools.mcp_handrail.{tool}({json.dumps(values)}); }}"
    return Turn("With yours.", "run_typescript", {"code": code})


VIBE = Real(
    name="vibe",
    title="Mistral Vibe",
    package="mistral-vibe",
    source=PYTHON_SETS["vibe"],
    command=lambda: (str(PYTHON_SETS["vibe"].installed / "bin" / "vibe-acp"),),
    environment=lambda _: {"SCRIPTED_KEY": "none"},
    files=_vibe_files,
    writes=lambda path, text: Turn("I write it.", "write_file", {"path": str(path), "content": text}),
    runs=lambda line: Turn("I run it.", "bash", {"command": line}),
    ours=_vibe_code,
    write_asks=(),
    takes_up="loaded",
    remarks=("writes files unasked in its default mode, `accept-edits`. Its mode `ask` asks.",),
)


def _hermes_files(model: str) -> Mapping[str, str]:
    settings: Json = {
        "model": {
            "default": "model",
            "provider": "custom",
            "base_url": f"{model}/v1",
            "api_key": "none",
            "context_length": 100_000,
        },
        "security": {"tirith_enabled": False},  # a program that it would fetch
    }
    return {".hermes/config.yaml": json.dumps(settings)}


HERMES = Real(
    name="hermes",
    title="Hermes Agent",
    package="hermes-agent",
    source=PYTHON_SETS["hermes"],
    command=lambda: (str(PYTHON_SETS["hermes"].installed / "bin" / "hermes-acp"),),
    environment=lambda _: {"OPENAI_API_KEY": "none"},
    files=_hermes_files,
    writes=lambda path, text: Turn("I write it.", "write_file", {"path": str(path), "content": text}),
    runs=lambda line: Turn("I run it.", "terminal", {"command": line}),
    run_asks=(),
)
"""Tried with what it does unasked only: after a cancel it queues every prompt by itself."""


ALWAYS = (CLAUDE, OPENCODE, QWEN)
"""Tried by `make test`, beside the example."""
MORE = (COPILOT, GEMINI, CODEX, CODEX_ZED, KIMI, GOOSE, FAST_AGENT, VIBE)
