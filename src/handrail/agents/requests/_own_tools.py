"""Recognises permission requests about Handrail's own tools, which an agent calls over MCP.

The MCP call itself goes through the gate, so asking about it first would ask twice. Such a request is recognised
only if its session was given our MCP server, every name in it is that of one of our tools, and its input is valid
for that tool. A title alone proves nothing: some agents take it from the model. What cannot be seen from here is a
server of the same name in the agent's own settings; a project that configures one is found by its files.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from pydantic import JsonValue

from handrail.agents.acp.capabilities import SERVER
from handrail.agents.lenient_json import record, records, text
from handrail.gate.gate import Gate
from handrail.store.values import Json

_NAMES = (
    rf"mcp__{SERVER}__(?P<tool>\w+)",  # Claude Code, Kimi Code
    rf"mcp\.{SERVER}\.(?P<tool>\w+)",  # Codex
    rf"mcp_{SERVER}\.(?P<tool>\w+)",  # Mistral Vibe
    rf"(?:Tool: )?{SERVER}/(?P<tool>\w+)",
    rf"{SERVER}_{{1,2}}(?P<tool>[a-z]\w*)",  # opencode
    rf"{SERVER}-(?P<tool>[a-z]\w*)",  # GitHub Copilot CLI
    rf"{SERVER}: (?P<tool>[a-z][a-z_ ]*[a-z])(?: · .*)?",  # goose, which writes blanks for underscores
    rf"(?P<tool>\w+) \({SERVER} MCP Server\)(?:: \{{.*\}})?",  # Gemini CLI, Qwen Code
)
_TITLES = tuple(re.compile(pattern, re.DOTALL) for pattern in _NAMES)
_KINDS = ("", "other", "read", "search")
"""Kinds of a tool that is named by its title. With `execute`, the title may be a command line."""
_SERVERS, _TOOLS = ("server", "server_name", "serverName"), ("tool", "tool_name", "toolName")
_CONFIGURED = frozenset(("project", "local", "user", "plugin", "enterprise", "managed", "claudeai"))
"""Where Claude Code says that a server comes from settings; ours comes from the session."""
PROJECT_FILES = (
    *(".mcp.json", "mcp.json", ".claude/settings.json", ".claude/settings.local.json", ".codex/config.toml"),
    *(
        ".gemini/settings.json",
        ".qwen/settings.json",
        "opencode.json",
        "opencode.jsonc",
        ".opencode/opencode.json",
    ),
    *(".kimi/mcp.json", ".kimi-code/mcp.json", ".goose/config.yaml", ".vscode/mcp.json", ".cursor/mcp.json"),
    *(".copilot/mcp-config.json", ".github/mcp.json", ".vibe/config.toml", "fastagent.config.yaml"),
    *("mcp_servers.json", ".nanocoder/mcp.json", "agents.config.json"),
)
"""Files in which a project can configure MCP servers for an agent."""
LARGEST = 1_000_000
"""Bytes read of such a file; a larger one counts as one that configures a server of our name."""


def find_own_tool(gate: Gate, params: Json, known: Json) -> str | None:
    """The tool of ours that a permission request is about; None in any doubt."""
    update = _without_form(record(params.get("toolCall")), known)
    inputs = [entry for entry in _inputs(update, known) if entry is not None]
    stated = _tool_from_meta(record(update.get("_meta")))
    told = [known] if _asks_by_title(gate, update, known) else [known, update]
    titles = [_tool_from_title(title) for each in told if (title := text(each.get("title")))]
    # A tool name in the metadata is the program's own; a title may then be any text, but not another tool's name.
    names = [stated, *(titles if stated == _UNSAID else filter(None, titles))]
    structured = [name for entry in inputs if (name := _tool_from_input(entry)) is not None]
    # Copilot announces a kind that it guesses from the tool's name, and asks without that guess.
    kinds = {text(each.get("kind")) for each in (told if told[1:] else [update])}
    if _names_no_place(update, known):
        kinds -= {"edit"}
    found = {name for name in (*names, *structured) if name != _UNSAID}
    if len(found) != 1 or not inputs or not (structured or kinds <= {*_KINDS}):
        return None
    [tool] = found
    arguments = [record(entry.get("arguments")) if _tool_from_input(entry) else entry for entry in inputs]
    is_ours = tool is not None and all(gate.can_submit(tool, entry) for entry in arguments)
    return (
        tool
        if is_ours and not _has_diffs(update, known) and not _is_title_said(update, known, arguments)
        else None
    )


def _without_form(update: Json, known: Json) -> Json:
    """The request without the form that Codex asks about an MCP call with, if it repeats the announced arguments."""
    form, called = record(update.get("rawInput")), record(known.get("rawInput"))
    about = record(record(form.get("request")).get("_meta"))
    is_form = form.get("server_name") == SERVER and about.get("codex_approval_kind") == "mcp_tool_call"
    is_repeated = _tool_from_input(called) is not None and about.get("tool_params") == called["arguments"]
    said_twice = ("title", "rawInput", "content")
    return (
        {name: value for name, value in update.items() if name not in said_twice}
        if is_form and is_repeated
        else update
    )


def _names_no_place(*tool_calls: Json) -> bool:
    """Whether it is titled `handrail/TOOL` and has no location: fast-agent guesses the kind from the tool's name. The title
    of an agent's own edit may be a path."""
    titles = [title for each in tool_calls if (title := text(each.get("title")))]
    has_places = any(each.get("locations") for each in tool_calls)
    return not has_places and all(title.startswith(f"{SERVER}/") for title in titles)


def _asks_by_title(gate: Gate, update: Json, known: Json) -> bool:
    """Whether the request names the announced tool by the title that we gave it, as GitHub Copilot CLI does."""
    tool = gate.toolbox.get(_tool_from_title(text(known.get("title"))) or "")
    return tool is not None and update.get("title") == tool.title and update.get("kind") == "other"


_UNSAID = ""
"""Stands for a description that names no tool at all."""


def _tool_from_title(title: str) -> str | None:
    """The tool that a title names; None for any other title."""
    for pattern in _TITLES:
        if (found := pattern.fullmatch(title)) is not None:
            return found.group("tool").replace(" ", "_")
    return None


def _tool_from_meta(meta: Json) -> str | None:
    """The tool in the metadata of Claude Code or Qwen Code; None if another server, or one from settings, serves it."""
    about = record(meta.get("claudeCode"))
    server = record(about.get("mcpServer"))
    if server and (server.get("name") != SERVER or server.get("source") in _CONFIGURED):
        return None
    stated = [name for each in (about, meta) if (name := text(each.get("toolName")))]
    tools = {_tool_from_title(name) for name in stated}
    return _UNSAID if not tools else tools.pop() if len(tools) == 1 else None


def _tool_from_input(entry: Json) -> str | None:
    """The tool in an input that names server and tool, as Codex does; None if it has another form."""
    server = next((entry[name] for name in _SERVERS if name in entry), None)
    tool = next((entry[name] for name in _TOOLS if name in entry), None)
    return (
        tool
        if server == SERVER and isinstance(tool, str) and isinstance(entry.get("arguments"), dict)
        else None
    )


_NOT_AN_OBJECT: Json = {"": None}


def _inputs(update: Json, known: Json) -> Iterator[Json | None]:
    """The inputs in the request and in the earlier updates; from their texts if they have none."""
    raw = [each["rawInput"] for each in (known, update) if each.get("rawInput") is not None]
    if raw:
        # An input that is no object is valid for no tool.
        yield from (entry if isinstance(entry, dict) else _NOT_AN_OBJECT for entry in raw)
        return
    for each in (known, update):
        yield from map(_object_from_text, _texts(each))


def _object_from_text(words: str) -> Json | None:
    try:
        parsed = json.loads(words)
    except ValueError:
        return None
    return cast("Json", parsed) if isinstance(parsed, dict) else None


def _texts(tool_call: Json) -> list[str]:
    return [text(record(each.get("content")).get("text")) for each in records(tool_call.get("content"))]


def _has_diffs(*tool_calls: Json) -> bool:
    return any(each.get("type") == "diff" for call in tool_calls for each in records(call.get("content")))


def _is_title_said(update: Json, known: Json, arguments: list[Json]) -> bool:
    """Whether the title is a value of the input: then the model chose it, and it names nothing."""
    titles = {text(each.get("title")) for each in (update, known)} - {""}
    values = [value for entry in arguments for value in _strings(entry)]
    return any(value == title or value.endswith(f"/{title}") for value in values for title in titles)


def _strings(node: JsonValue) -> Iterator[str]:
    match node:
        case str():
            yield node
        case list():
            for each in node:
                yield from _strings(each)
        case dict():
            for each in node.values():
                yield from _strings(each)
        case _:
            return


def configures_own_name(folder: str) -> bool:
    """Whether a project's files may configure an MCP server with our name. Reads files."""
    home = Path.home()
    for place in (Path(folder), *Path(folder).parents):
        if place == home:
            return False
        if any(_mentions_own_name(place / name) for name in PROJECT_FILES):
            return True
    return False


def _mentions_own_name(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except OSError:
        return False
    return len(content) > LARGEST or SERVER.encode() in content
