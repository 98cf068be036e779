"""A tool of an MCP server, as the loop knows tools.

Owns how it is described to the model, and what people hear while it runs. It does not know how its server is reached
(server.py), what the answer means (answer.py), or who allows it (permission.py; for our own server, its gate).

What an MCP server answered, as the model and people are given it.

How calls are shown to people before they have run: a title, a sort of work, and the files they are about.
"""

import json
from base64 import b64decode
from binascii import Error
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

import mcp_types as types
from pydantic_ai.messages import BinaryContent
from pydantic_ai.tools import ToolDefinition

from handrail.own_agent.tools.agent_tool import Json, Kind, Permission, Result, Running, Shown
from handrail.own_agent.tools.long_output import Outputs
from handrail.own_agent.tools.mcp_servers import Server, Unanswered

MOST_SCHEMA = 50_000
"""Characters of what is said of a tool's input; of one that says more, nothing is said, and it can be called all the same."""
MOST_DESCRIPTION = 8_000
"""Characters: they stand in every request."""
_WHERE = "Answer on Handrail's page (`handrail open`), or with `handrail approvals` and `handrail approve`."


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """One tool of one server."""

    name: str
    """As the model knows it."""
    server: Server
    spec: types.Tool
    permission: Permission | None
    """Whom to ask first; None where its server asks for itself."""
    outputs: Outputs
    cwd: str

    @property
    def definition(self) -> ToolDefinition:
        described = self.spec.description or self.spec.title or ""
        return ToolDefinition(
            name=self.name,
            description=described[:MOST_DESCRIPTION],
            parameters_json_schema={"type": "object", **_schema(self.spec.input_schema)},
        )

    def shown(self, input: Json) -> Shown:
        if self.server.is_ours:
            return shown(self.spec.name, input, self.cwd)
        return foreign(self.server.name, self.spec.title or self.spec.name)

    async def run(self, input: Json, call: Running) -> Result:
        if self.permission is not None:
            refusal = await self.permission.refusal(self.name, self.shown(input), input, call)
            if refusal is not None:
                return refusal
        hearing = _Hearing(call, ours=self.server.is_ours)
        try:
            answer = await self.server.call(self.spec.name, input, hearing.progress)
        except Unanswered as problem:
            return Result(text=str(problem), failed=True, ended="failed")
        finally:
            hearing.over = True
        result = result_of(answer, server=self.server.name, ours=self.server.is_ours)
        return replace(result, text=self.outputs.short(result.text))


def _schema(given: Json) -> Json:
    return given if len(json.dumps(given)) <= MOST_SCHEMA else {}


class _Hearing:
    """What a server says while its tool runs, told on."""

    def __init__(self, call: Running, *, ours: bool) -> None:
        self.over = False
        """The call has ended: what comes now, comes late."""
        self._call, self._ours = call, ours

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        if not self.over:
            words = message or (f"{progress:g} of {total:g}" if total else f"{progress:g}")
            self._call.voice.call_heard(self._call.id, self._placed(words)[:500])

    def _placed(self, words: str) -> str:
        """With where to answer, when a person is waited for."""
        return f"{words}. {_WHERE}" if self._ours and words.startswith("waiting") else words


MOST_IMAGES = 10
LARGEST_IMAGE = 5 * 1024 * 1024
"""Bytes that every provider takes."""
_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""What models take; an image of another sort makes them refuse the whole request."""
_LONGEST_VALUE = 4_000
"""Characters of one text in `raw`: people read the whole with the call, or from its text."""
_MOST_VALUES, _DEEPEST = 200, 6
_QUESTION = "asks the person a question in the middle of a call, which this agent cannot pass on; the call was not made"


def result_of(answer: types.CallToolResult | types.InputRequiredResult, *, server: str, ours: bool) -> Result:
    """`ours`: its structured content says how the call ended, in our own words."""
    if isinstance(answer, types.InputRequiredResult):
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
    failed, text = bool(answer.is_error), "\n".join(texts)
    raw = _fields(answer.structured_content)
    return Result(
        text=text if text.strip() else _nothing(failed, len(images)),
        images=tuple(images),
        failed=failed,
        ended=_ended(raw if ours else {}) if failed else "done",
        raw=slim(raw),
    )


def _fields(structured: object) -> Json:
    return cast("Json", structured) if isinstance(structured, dict) else {}


def _ended(raw: Json) -> Literal["failed", "denied", "cancelled"]:
    match raw.get("status"):
        case "denied" | "cancelled" as how:
            return how
        case _:
            return "failed"


def _pieces(answer: types.CallToolResult) -> Iterator[str | BinaryContent]:
    for block in answer.content:
        yield from _piece(block)
    if not answer.content and answer.structured_content is not None:
        yield json.dumps(answer.structured_content, ensure_ascii=False, indent=1)


def _piece(block: types.ContentBlock) -> Iterator[str | BinaryContent]:
    match block:
        case types.TextContent():
            if block.text:
                yield block.text
        case types.ImageContent():
            yield _image(block.data, block.mime_type)
        case types.AudioContent():
            yield f"[a sound of type {block.mime_type}, which cannot be heard here]"
        case types.ResourceLink():
            yield f"[{block.title or block.name}: {block.uri}]"
        case types.EmbeddedResource(resource=resource):
            if isinstance(resource, types.TextResourceContents):
                yield f"[{resource.uri}]\n{resource.text}"
            else:
                yield _image(resource.blob, resource.mime_type or "")


def _image(data: str, kind: str) -> BinaryContent | str:
    if kind not in _IMAGES:
        return f"[something of type {kind or 'unknown'}, which cannot be shown here]"
    if len(data) * 3 // 4 > LARGEST_IMAGE:
        return f"[an image of {len(data) * 3 // 4:,} bytes, which is too large]"
    try:
        return BinaryContent(b64decode(data, validate=True), media_type=kind)
    except (Error, ValueError):
        return "[an image that cannot be read]"


def _nothing(failed: bool, images: int) -> str:
    """Providers take no empty text."""
    if images:
        return "[an image]" if images == 1 else f"[{images} images]"
    return "It failed, and did not say why." if failed else "Done; it had nothing to say."


def slim(raw: Json) -> Json:
    """The same with long texts cut and long lists shortened, for people to look at."""
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
"""Characters of a title: one line on a page."""


def shown(tool: str, input: Json, cwd: str) -> Shown:
    """A call of our own server's; one that this does not know is shown by its name."""
    kind, words = _OURS.get(tool, ("other", _by_name(tool)))
    return Shown(title=one_line(words(input)), kind=kind, paths=_paths(input, cwd))


def foreign(server: str, tool: str) -> Shown:
    """A call of another's."""
    return Shown(title=one_line(f"{tool} ({server})"))


def _paths(input: Json, cwd: str) -> tuple[str, ...]:
    path = input.get("path")
    return (str(Path(cwd, path)),) if isinstance(path, str) and path and "\0" not in path else ()


def one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"


def _about(name: str, template: str, otherwise: str) -> Callable[[Json], str]:
    """The template with this input in it, where it is given."""

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
