"""A tool of an MCP server: its definition for the model, its display, and the conversion of its results.

Tools of other servers need permission (agent_tool.py); calls of our own server are decided by its gate.
"""

from __future__ import annotations

import json
from base64 import b64decode
from binascii import Error
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from handrail.lazy_dataclass import dataclass
from handrail.own_agent.tools.agent_tool import CallDisplay, Json, Kind, Permission, Result, RunningCall
from handrail.own_agent.tools.long_output import Outputs
from handrail.own_agent.tools.mcp_servers import Server, Unanswered
from handrail.own_agent.tools.mcp_session import ToolSpec

if TYPE_CHECKING:
    from pydantic_ai.messages import BinaryContent
    from pydantic_ai.tools import ToolDefinition

MOST_SCHEMA = 50_000
"""Characters of a tool's input schema. A longer one is omitted; the tool can still be called."""
MOST_DESCRIPTION = 8_000
"""Characters; descriptions are part of every request."""
_WHERE = "Answer on Handrail's page (`handrail open`), or with `handrail approvals` and `handrail approve`."


@dataclass(frozen=True, slots=True, kw_only=True)
class McpTool:
    """A tool of an MCP server."""

    name: str
    """The name that the model uses."""
    server: Server
    spec: ToolSpec
    permission: Permission | None
    """None for our own server, whose gate decides."""
    outputs: Outputs
    cwd: str

    @property
    def definition(self) -> ToolDefinition:
        from pydantic_ai.tools import ToolDefinition  # noqa: PLC0415 - slow import

        description = self.spec.description or self.spec.title or ""
        return ToolDefinition(
            name=self.name,
            description=description[:MOST_DESCRIPTION],
            parameters_json_schema={"type": "object", **_schema(self.spec.input_schema)},
        )

    def shown(self, input: Json) -> CallDisplay:
        if self.server.is_ours:
            return own_display(self.spec.name, input, self.cwd)
        return foreign_display(self.server.name, self.spec.title or self.spec.name)

    async def run(self, input: Json, call: RunningCall) -> Result:
        if self.permission is not None:
            refusal = await self.permission.refusal(self.name, self.shown(input), input, call)
            if refusal is not None:
                return refusal
        relay = _ProgressRelay(call, ours=self.server.is_ours)
        try:
            answer = await self.server.call(self.spec.name, input, relay.progress)
        except Unanswered as problem:
            return Result(text=str(problem), failed=True, ended="failed")
        finally:
            relay.over = True
        result = result_of(answer, server=self.server.name, ours=self.server.is_ours)
        return replace(result, text=self.outputs.short(result.text))


def _schema(given: Json) -> Json:
    return given if len(json.dumps(given)) <= MOST_SCHEMA else {}


class _ProgressRelay:
    """Forwards progress notifications of a running call to the host."""

    def __init__(self, call: RunningCall, *, ours: bool) -> None:
        self.over = False
        """The call has ended; later notifications are dropped."""
        self._call, self._ours = call, ours

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        if not self.over:
            words = message or (f"{progress:g} of {total:g}" if total else f"{progress:g}")
            self._call.host.call_heard(self._call.id, self._with_instructions(words)[:500])

    def _with_instructions(self, words: str) -> str:
        """Append where to answer if the call waits for a person."""
        return f"{words}. {_WHERE}" if self._ours and words.startswith("waiting") else words


MOST_IMAGES = 10
LARGEST_IMAGE = 5 * 1024 * 1024
"""Bytes; the largest image that every provider accepts."""
_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Image types that models accept; any other type makes them reject the whole request."""
_LONGEST_VALUE = 4_000
"""Characters of one string in `raw`; people can read the whole in the call's text."""
_MOST_VALUES, _DEEPEST = 200, 6
_QUESTION = "asks the person a question in the middle of a call, which this agent cannot pass on; the call was not made"


def result_of(answer: Json, *, server: str, ours: bool) -> Result:
    """Convert a server's answer. `ours`: the structured content holds our status of the call."""
    if answer.get("resultType") == "input_required":
        return Result(text=f"The MCP server “{server}” {_QUESTION}.", failed=True, ended="failed")
    texts: list[str] = []
    images: list[BinaryContent] = []
    for piece in _pieces(answer):
        if isinstance(piece, str):
            texts.append(piece)
        elif len(images) < MOST_IMAGES:
            images.append(piece)
        else:
            texts.append("[one more image, which is left out]")
    failed, text = bool(answer.get("isError")), "\n".join(texts)
    raw = _object_fields(answer.get("structuredContent"))
    return Result(
        text=text if text.strip() else _empty_text(failed, len(images)),
        images=tuple(images),
        failed=failed,
        ended=_ended(raw if ours else {}) if failed else "done",
        raw=shorten_raw(raw),
    )


def _object_fields(structured: object) -> Json:
    return cast("Json", structured) if isinstance(structured, dict) else {}


def _ended(raw: Json) -> Literal["failed", "denied", "cancelled"]:
    match raw.get("status"):
        case "denied" | "cancelled" as how:
            return how
        case _:
            return "failed"


def _pieces(answer: Json) -> Iterator[str | BinaryContent]:
    content: list[Json] = answer["content"]
    for block in content:
        yield from _piece(block)
    if not content and answer.get("structuredContent") is not None:
        yield json.dumps(answer["structuredContent"], ensure_ascii=False, indent=1)


def _piece(block: Json) -> Iterator[str | BinaryContent]:
    match block:
        case {"type": "text", "text": str(text)}:
            if text:
                yield text
        case {"type": "image", "data": str(data), "mimeType": str(kind)}:
            yield _image(data, kind)
        case {"type": "audio", "mimeType": str(kind)}:
            yield f"[a sound of type {kind}, which cannot be heard here]"
        case {"type": "resource_link", "uri": str(uri)}:
            yield f"[{block.get('title') or block.get('name')}: {uri}]"
        case {"type": "resource", "resource": {"uri": uri, "text": str(text)}}:
            yield f"[{uri}]\n{text}"
        case {"type": "resource", "resource": {"blob": str(data), **resource}}:
            yield _image(data, str(resource.get("mimeType") or ""))
        case _:
            yield f"[something of type {block.get('type')}, which cannot be shown here]"


def _image(data: str, kind: str) -> BinaryContent | str:
    if kind not in _IMAGES:
        return f"[something of type {kind or 'unknown'}, which cannot be shown here]"
    if len(data) * 3 // 4 > LARGEST_IMAGE:
        return f"[an image of {len(data) * 3 // 4:,} bytes, which is too large]"
    from pydantic_ai.messages import BinaryContent  # noqa: PLC0415 - slow import

    try:
        return BinaryContent(b64decode(data, validate=True), media_type=kind)
    except (Error, ValueError):
        return "[an image that cannot be read]"


def _empty_text(failed: bool, images: int) -> str:
    """The text for an empty result: providers reject empty text."""
    if images:
        return "[an image]" if images == 1 else f"[{images} images]"
    return "It failed, and did not say why." if failed else "Done; it had nothing to say."


def shorten_raw(raw: Json) -> Json:
    """A shortened copy for display: long strings cut, long lists and deep levels truncated."""
    return cast("Json", _slim(raw))


def _slim(value: object, depth: int = 0) -> object:
    if isinstance(value, str) and len(value) > _LONGEST_VALUE:
        return f"{value[:_LONGEST_VALUE]}… ({len(value):,} characters)"
    if isinstance(value, dict | list) and depth > _DEEPEST:
        return "…"
    if isinstance(value, dict):
        items = list(cast("Json", value).items())[:_MOST_VALUES]
        return {name: _slim(each, depth + 1) for name, each in items}
    if isinstance(value, list):
        return [_slim(each, depth + 1) for each in cast("list[object]", value)[:_MOST_VALUES]]
    return value


LONGEST = 160
"""Characters of a title, so that it fits on one line."""


def own_display(tool: str, input: Json, cwd: str) -> CallDisplay:
    """The display of a call of our own server; an unknown tool is shown by its name."""
    kind, words = _OURS.get(tool, ("other", _by_name(tool)))
    return CallDisplay(title=one_line(words(input)), kind=kind, paths=_paths(input, cwd))


def foreign_display(server: str, tool: str) -> CallDisplay:
    """The display of a call of another server."""
    return CallDisplay(title=one_line(f"{tool} ({server})"))


def _paths(input: Json, cwd: str) -> tuple[str, ...]:
    path = input.get("path")
    return (str(Path(cwd, path)),) if isinstance(path, str) and path and "\0" not in path else ()


def one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"


def _about(name: str, template: str, otherwise: str) -> Callable[[Json], str]:
    """A title: the template filled with this input, or `otherwise` without it."""

    def words(input: Json) -> str:
        value = input.get(name)
        return template.format(value) if isinstance(value, str) and value else otherwise

    return words


def _by_name(tool: str) -> Callable[[Json], str]:
    return lambda _input: tool.replace("_", " ").capitalize()


def _typed(input: Json) -> str:
    keys: Any = input.get("keys")
    named = " ".join(map(str, cast("list[object]", keys))) if isinstance(keys, list) else str(keys or "")
    what = f"`{input['text']}`" if input.get("text") else named or "nothing"
    return f"Type {what} into terminal {input.get('terminalId', '')}"


def _waited(input: Json) -> str:
    until = f"{input.get('until', '')} {input.get('value') or ''}".strip()
    return f"Wait for terminal {input.get('terminalId', '')}" + (f": {until}" if until else "")


_OURS: dict[str, tuple[Kind, Callable[[Json], str]]] = {
    "read_file": ("read", _about("path", "Read {}", "Read a file")),
    "list_files": ("search", _about("path", "List {}", "List files")),
    "search_files": ("search", _about("pattern", "Find {}", "Find files")),
    "search_content": ("search", _about("pattern", "Search for `{}`", "Search files")),
    "write_file": ("edit", _about("path", "Write {}", "Write a file")),
    "edit_file": ("edit", _about("path", "Edit {}", "Edit a file")),
    "apply_diff": ("edit", _about("path", "Edit {}", "Edit a file")),
    "execute_command": ("execute", _about("command", "Run `{}`", "Run a command")),
    "create_tracked_terminal": ("execute", _about("name", "Open terminal {}", "Open a terminal")),
    "list_tracked_terminals": ("read", lambda _: "List terminals"),
    "get_terminal_buffer": ("read", _about("terminalId", "Read terminal {}", "Read a terminal")),
    "send_to_terminal": ("execute", _typed),
    "wait_for_terminal": ("other", _waited),
    "search_terminal_buffer": (
        "search",
        _about("pattern", "Search a terminal for `{}`", "Search a terminal"),
    ),
    "close_terminal": ("execute", _about("terminalId", "Close terminal {}", "Close a terminal")),
    "list_calls": ("read", lambda _: "List calls"),
    "get_call": ("read", _about("call_id", "Look at call {}", "Look at a call")),
    "wait_for_call": ("other", _about("call_id", "Wait for call {}", "Wait for a call")),
}
