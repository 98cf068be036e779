"""The third-party agents that come from PyPI. Like those of `agent_catalog.py`."""

import json
from collections.abc import Mapping

from tests.real_agents.install import PYTHON_SETS
from tests.real_agents.real_agent import Json, Real, named
from tests.support.model_server.script import Turn

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
    ours=named("handrail__{}"),
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
