"""Declares Handrail's tools in the extension's package.json, where an editor looks for the tools of its own agent.

They are declared as the contract `tools.json` has them, one tool in a line.
"""

import json
from pathlib import Path
from typing import Any, cast

ROOT = Path(__file__).parent.parent
MANIFEST = ROOT / "editors" / "vscode" / "package.json"
TOOLS = ROOT / "tests" / "contracts" / "files" / "tools.json"
OWN = {"approve", "get_diagnostics", "get_symbols", "find_references", "rename_symbol"}
"""Not declared: the editor's agent asks its own language servers, and `approve` is for one client."""


def declare_tools() -> list[dict[str, Any]]:
    tools: list[dict[str, Any]] = json.loads(TOOLS.read_text())["tools"]
    return [_declare(tool) for tool in tools if tool["name"] not in OWN]


def _declare(tool: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": f"handrail_{tool['name']}",
        "displayName": f"Handrail: {tool['title']}",
        "modelDescription": tool["description"],
        "canBeReferencedInPrompt": True,
        "toolReferenceName": f"handrail_{tool['name']}",
        "icon": "$(shield)",
        "when": "handrailChatTools",
        "inputSchema": _without_titles(tool["inputSchema"]),
    }


def _without_titles(schema: Any) -> Any:
    """A schema without the titles of fields, which only repeat their names."""
    if not isinstance(schema, dict):
        return schema
    fields = cast("dict[str, Any]", schema)
    return {
        name: _without_titles(value)
        for name, value in fields.items()
        if not (name == "title" and isinstance(value, str))
    }


def build_manifest() -> str:
    manifest = json.loads(MANIFEST.read_text())
    manifest["contributes"]["languageModelTools"] = ["…"]
    lines = ",\n".join(f"      {json.dumps(tool, ensure_ascii=False)}" for tool in declare_tools())
    return (json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").replace('      "…"', lines)


if __name__ == "__main__":
    MANIFEST.write_text(build_manifest())
