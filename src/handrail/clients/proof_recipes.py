"""How each client runs one headless turn against the scripted model of a proof: arguments, variables, settings, shell tool.

The settings stand in a scratch home. They choose the model, and switch off updates and telemetry.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from handrail.lazy_dataclass import dataclass

Files = Mapping[str, str]


def _no_files(_: str) -> Files:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofRecipe:
    """How a client is started, and its own tool for shell commands."""

    arguments: tuple[str, ...]
    """The prompt follows, unless it is read from standard input."""
    reads_prompt: bool = False
    variables: Callable[[str], Mapping[str, str]] = _no_files
    """Environment variables for the model at this URL."""
    files: Callable[[str], Files] = _no_files
    """Settings by path below the home, for the model at this URL."""
    tool: str
    input: Callable[[str], Mapping[str, Any]]
    """The tool's input for a command line."""


def _describe(line: str) -> Mapping[str, Any]:
    return {"command": line, "description": "Proof of the connection"}


def _codex_files(model: str) -> Files:
    text = f"""\
model = "gpt-5.5"
model_provider = "proof"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.proof]
name = "Proof"
base_url = "{model}/v1"
wire_api = "responses"
env_key = "PROOF_KEY"
"""
    return {".codex/config.toml": text}


def _gemini_files(_: str) -> Files:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
    }
    return {".gemini/settings.json": json.dumps(settings)}


def _qwen_files(_: str) -> Files:
    settings = {
        "security": {"auth": {"selectedType": "openai"}},
        "general": {"enableAutoUpdate": False, "disableAutoUpdate": True},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
    }
    return {".qwen/settings.json": json.dumps(settings)}


def _opencode_files(model: str) -> Files:
    provider: dict[str, Any] = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Proof",
        "options": {"baseURL": f"{model}/v1", "apiKey": "none"},
        "models": {"model": {"name": "Model", "limit": {"context": 100_000, "output": 4_000}}},
    }
    settings = {
        "model": "proof/model",
        "small_model": "proof/model",
        "provider": {"proof": provider},
        "enabled_providers": ["proof"],
        "autoupdate": False,
        "share": "disabled",
    }
    installed = {"packages": {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}}
    return {
        ".config/opencode/opencode.json": json.dumps(settings),
        # With these it takes its package for plugins as installed, which it would fetch otherwise.
        ".config/opencode/package-lock.json": json.dumps(installed),
        ".config/opencode/node_modules/.keep": "",
    }


def _kimi_files(model: str) -> Files:
    text = f"""\
default_model = "proof"
default_permission_mode = "yolo"
telemetry = false
[providers.proof]
type = "openai"
base_url = "{model}/v1"
api_key = "none"
[models.proof]
provider = "proof"
model = "model"
max_context_size = 100000
"""
    return {".kimi-code/config.toml": text}


def _cline_files(model: str) -> Files:
    name = "openai-compatible"
    chosen = {"provider": name, "apiKey": "none", "model": "model", "baseUrl": f"{model}/v1"}
    provider = {"settings": chosen, "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual"}
    settings = {"version": 1, "lastUsedProvider": name, "modes": {}, "providers": {name: provider}}
    return {".cline/data/settings/providers.json": json.dumps(settings)}


RECIPES: Mapping[str, ProofRecipe] = {
    "claude": ProofRecipe(
        arguments=("--output-format", "json", "-p"),
        variables=lambda model: {
            "ANTHROPIC_BASE_URL": model,
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
        },
        tool="Bash",
        input=_describe,
    ),
    "codex": ProofRecipe(
        arguments=("exec", "--skip-git-repo-check", "--json"),
        variables=lambda _: {"PROOF_KEY": "none"},
        files=_codex_files,
        tool="exec_command",
        input=lambda line: {"cmd": line},
    ),
    "gemini": ProofRecipe(
        arguments=("--yolo", "-m", "gemini-2.5-pro", "-p"),
        variables=lambda model: {
            "GEMINI_API_KEY": "none",
            "GOOGLE_GEMINI_BASE_URL": model,
            "GEMINI_CLI_NO_RELAUNCH": "1",
        },
        files=_gemini_files,
        tool="run_shell_command",
        input=lambda line: {"command": line},
    ),
    "opencode": ProofRecipe(
        arguments=("run",),
        reads_prompt=True,
        variables=lambda _: {
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        },
        files=_opencode_files,
        tool="bash",
        input=_describe,
    ),
    "qwen": ProofRecipe(
        arguments=("--yolo", "-p"),
        variables=lambda model: {
            "OPENAI_BASE_URL": f"{model}/v1",
            "OPENAI_API_KEY": "none",
            "OPENAI_MODEL": "model",
            "QWEN_TELEMETRY_ENABLED": "0",
        },
        files=_qwen_files,
        tool="run_shell_command",
        input=lambda line: {"command": line, "is_background": False},
    ),
    "copilot": ProofRecipe(
        arguments=("--no-color", "-p"),
        variables=lambda model: {
            "COPILOT_PROVIDER_BASE_URL": f"{model}/v1",
            "COPILOT_PROVIDER_API_KEY": "none",
            "COPILOT_MODEL": "gpt-5",
            "COPILOT_OFFLINE": "true",
            "COPILOT_AUTO_UPDATE": "false",
        },
        tool="bash",
        input=_describe,
    ),
    "kimi": ProofRecipe(arguments=("-p",), files=_kimi_files, tool="Bash", input=_describe),
    "cline": ProofRecipe(
        arguments=("--yolo",),
        files=_cline_files,
        tool="run_commands",
        input=lambda line: {"commands": [line]},
    ),
}
"""By name. The other clients have no headless turn with hooks that was tried."""
