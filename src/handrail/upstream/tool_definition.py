"""Tool definitions of MCP servers: their names behind Handrail, their digests, and the difference between two of them.

Definitions are text of a stranger: they are bounded, compared and shown, and decide nothing.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from difflib import unified_diff
from functools import cached_property
from typing import cast

from handrail.lazy_dataclass import dataclass
from handrail.store.values import Json
from handrail.upstream.list_entries import find_fault, normalize_entry

NAME_MAX = 40
"""Characters of a tool's name behind Handrail. Models accept 64, and clients add `mcp__handrail__` in front."""
TOOLS_MAX = 1000
"""Tools taken from one server: bounds memory."""
DEFINITION_MAX = 128 * 1024
"""Characters of one definition."""
SEPARATOR = "__"
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_PINNED = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
"""What a digest covers: all that tells a model or a person what the tool does."""


@dataclass(frozen=True, kw_only=True)
class ToolDefinition:
    """A tool as its server defines it. Nobody changes `wire`."""

    server: str
    wire: Json
    """The definition as the server sent it."""

    @property
    def own_name(self) -> str:
        return str(self.wire["name"])

    @property
    def name(self) -> str:
        """Its name behind Handrail: `server__tool`."""
        return f"{self.server}{SEPARATOR}{self.own_name}"

    @property
    def description(self) -> str:
        return str(self.wire.get("description") or "")

    @property
    def title(self) -> str:
        title = self.wire.get("title")
        return title if isinstance(title, str) and title else self.own_name

    @property
    def is_task_only(self) -> bool:
        """Whether its server takes calls of it only as tasks."""
        execution = self.wire.get("execution")
        return isinstance(execution, dict) and execution.get("taskSupport") == "required"

    @cached_property
    def digest(self) -> str:
        """Digest of what a person judged when they allowed the tool. Each call needs it several times."""
        return hashlib.sha256(_canonical(self.pinned).encode()).hexdigest()

    @property
    def pinned(self) -> Json:
        return {name: self.wire[name] for name in _PINNED if name in self.wire}

    @property
    def listed(self) -> Json:
        """The definition under the name behind Handrail."""
        return {**normalize_entry(self.wire), "name": self.name}


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionSet:
    """The usable tools of a server, and why others are not."""

    tools: Mapping[str, ToolDefinition]
    """By the server's own name, sorted."""
    refused: tuple[str, ...]
    """A sentence for each tool that cannot be offered."""


def name_definition(name: str) -> ToolDefinition | None:
    """A tool of which only the name behind Handrail is known; None if no tool can have it."""
    server, _, own_name = name.partition(SEPARATOR)
    can_exist = len(name) <= NAME_MAX and _NAME.fullmatch(own_name)
    return ToolDefinition(server=server, wire={"name": own_name}) if can_exist else None


def read_definitions(server: str, listed: Iterable[object]) -> DefinitionSet:
    """Check the tools that a server lists. Names that would collide are refused, and not renamed."""
    refused: list[str] = []
    found: dict[str, ToolDefinition] = {}
    doubled: set[str] = set()
    for number, entry in enumerate(listed):
        if number >= TOOLS_MAX:
            refused.append(f"{server} lists more than {TOOLS_MAX:,} tools; the others are left out.")
            break
        problem = _find_problem(server, entry)
        if problem:
            refused.append(problem)
            continue
        tool = ToolDefinition(server=server, wire=cast("Json", entry))
        if tool.own_name in found:
            doubled.add(tool.own_name)
        found[tool.own_name] = tool
    for name in sorted(doubled):
        del found[name]
        refused.append(f"{server} lists the tool {name!r} twice, so neither is offered.")
    return DefinitionSet(tools=dict(sorted(found.items())), refused=tuple(refused))


def _find_problem(server: str, entry: object) -> str:
    """Why a listed tool cannot be offered, as a sentence; empty if it can."""
    fields = cast("Json", entry) if isinstance(entry, dict) else {}
    name = fields.get("name")
    if not isinstance(name, str) or not name:
        return f"{server} lists a tool without a name."
    full = f"{server}{SEPARATOR}{name}"
    if len(full) > NAME_MAX:
        return f"{full[:100]} is longer than {NAME_MAX} characters, so it is not offered. Give the server a shorter name."
    if not _NAME.fullmatch(name):
        return f"{full!r} has characters that models do not accept in a name, so it is not offered."
    if len(_canonical(fields)) > DEFINITION_MAX:
        return f"The definition of {full} is longer than {DEFINITION_MAX:,} characters, so it is not offered."
    if fault := _find_fault(fields):
        return f"MCP does not allow the definition of {full} ({fault}), so it is not offered."
    return ""


def _find_fault(fields: Json) -> str:
    """What MCP does not allow. Its output schema gets an alternative before it is listed, so any schema will do."""
    wire = normalize_entry(fields)
    if not isinstance(wire.pop("outputSchema", {}), dict):
        return "outputSchema: input should be an object"
    return find_fault("tools/list", wire)


def diff_definitions(before: ToolDefinition | None, now: ToolDefinition) -> str:
    """What changed, as a unified diff of both definitions, for a person."""
    old, new = ([] if each is None else _lines(each) for each in (before, now))
    return "\n".join(unified_diff(old, new, "accepted", "now", lineterm="", n=1000))


def _lines(tool: ToolDefinition) -> list[str]:
    """The definition with one line for each line of its text, so that a changed sentence is found."""
    text = json.dumps(tool.pinned, indent=2, sort_keys=True, ensure_ascii=False)
    return text.replace("\\n", "\\n\n").split("\n")


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
