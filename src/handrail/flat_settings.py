"""The settings of config.toml as flat names: with their origin, with secrets masked, and as a digest."""

import ast
import hashlib
import inspect
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel

from handrail.config import AgentSection, Config, McpServerSection, RuleSection, load, parse, read_text
from handrail.lazy_dataclass import dataclass
from handrail.toml_lines import find_line, flatten


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One value and where it came from."""

    name: str
    value: Any
    origin: str


def settings(path: Path) -> list[Setting]:
    """List every value with its origin, in the order of the configuration reference."""
    config, text = load(path), read_text(path)
    in_file = flatten(parse(path, text))
    values = flatten(config.model_dump(mode="json", exclude={"rules"}))

    def origin(name: str) -> str:
        return f"{path}:{find_line(text, name.split('.'))}" if name in in_file else "default"

    plain = [Setting(name=name, value=value, origin=origin(name)) for name, value in values.items()]
    return [*plain, *(_rule_setting(path, number, rule) for number, rule in enumerate(config.rules, 1))]


def read_descriptions(model: type[BaseModel]) -> dict[str, str]:
    """The docstring below each field of a section, as one line."""
    body = ast.parse(inspect.getsource(model)).body[0]
    assert isinstance(body, ast.ClassDef)
    return {
        field.target.id: " ".join(text.value.value.split())
        for field, text in zip(body.body, body.body[1:], strict=False)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
        if isinstance(text.value.value, str)
    }


MASKED = "••••••"
_SECRET_NAMES = re.compile(r"(?i)(^|[._-])(token|secret|password|key|webhook|ntfy|auth)s?$")


def is_secret_name(name: str) -> bool:
    """Whether the value of such a setting is never shown."""
    return _SECRET_NAMES.search(name) is not None


def mask_secrets(setting: Setting) -> Setting:
    """The setting as it may be shown: what an agent's environment or a secret holds is replaced."""
    return replace(setting, value=_masked(setting.name, setting.value))


def _masked(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        inside = cast("dict[str, Any]", value)
        is_env = name.rpartition(".")[2] in ("env", "headers")
        return {key: MASKED if is_env and each else _masked(key, each) for key, each in inside.items()}
    if isinstance(value, list):
        return [_masked(name, each) for each in cast("list[Any]", value)]
    is_secret = _SECRET_NAMES.search(name) or ".env." in name or ".headers." in name
    return MASKED if value and isinstance(value, str) and is_secret else value


def describe_settings(config: Config) -> dict[str, str]:
    """Every value that is not the default, as JSON by name. Secrets are hashed."""
    values = config.model_dump(mode="json", exclude_defaults=True, exclude={"rules", "agents", "servers"})
    flat = {
        name: _as_json(
            _hash(value) if value and isinstance(value, str) and _SECRET_NAMES.search(name) else value
        )
        for name, value in flatten(values).items()
    }
    for number, rule in enumerate(config.rules, 1):
        flat[f"rules[{number}]"] = _as_json(rule.model_dump(mode="json", exclude_defaults=True))
    named = [*(("agents", each) for each in config.agents), *(("servers", each) for each in config.servers)]
    return flat | {f"{kind}.{each.name}": describe_entry(each) for kind, each in named}


def describe_entry(entry: AgentSection | McpServerSection) -> str:
    """An agent or an MCP server as JSON, as `describe_settings` has it."""
    fields = entry.model_dump(mode="json", exclude_defaults=True)
    fields["env"] = {name: _hash(value) for name, value in entry.env.items()}
    if "headers" in fields:
        fields["headers"] = {name: _hash(value) for name, value in fields["headers"].items()}
    return _as_json(fields)


def hash_settings(settings: Mapping[str, str]) -> str:
    """A digest that is equal for equal settings, whatever the order or the comments in the file."""
    return _hash(json.dumps(settings, sort_keys=True))


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _rule_setting(path: Path, number: int, rule: RuleSection) -> Setting:
    value = rule.model_dump(mode="json", exclude_defaults=True)
    return Setting(name=f"rules[{number}]", value=value, origin=f"{path}:{rule.line}")
