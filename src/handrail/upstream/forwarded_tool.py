"""A tool of an MCP server as a tool of the gate: claims, preview, and the call that is forwarded.

Its assurance is *forwarded*: the request is bound by the approval, what the server does with it is not. Nothing that
the server says about its tool is a reason to allow it.
"""

import json
import math
import os
import re
from collections.abc import Callable, Iterator
from typing import Protocol
from urllib.parse import unquote

from pydantic import BaseModel, ConfigDict, JsonValue

from handrail.gate.rules.arguments import flatten_arguments
from handrail.gate.tool import CallReport, Plan, Refusal, Tool
from handrail.hidden_text import spell_hidden
from handrail.lazy_dataclass import dataclass
from handrail.store.values import Caller, Claim, DiffPreview, Json, Result, ResultPreview
from handrail.upstream.jsonrpc_connection import ConnectionLost, RpcError
from handrail.upstream.tool_definition import ToolDefinition, diff_definitions

RECORDED_MAX = 200_000
"""Characters of a result that are kept in the journal. The client gets all of it."""
PATHS_MAX = 50
"""Paths in the arguments that are claimed; more make the call opaque."""
TITLE_MAX = 80

Place = Callable[[Caller, str], Claim | None]
"""The claim on a path that a call names; None if it names no path."""


class ForwardedInput(BaseModel):
    """The arguments of a tool of another server. Its own schema is for the server to check."""

    model_config = ConfigDict(extra="allow")

    @property
    def arguments(self) -> Json:
        return dict(self.model_extra or {})


class ForwardedOutput(BaseModel):
    """A forwarded result has the shape that its server gives it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardedPlan(Plan):
    tool: ToolDefinition
    arguments: Json
    accepts: bool = False
    """The definition is one that no person has seen before: an allowed call accepts it."""


class Forwarder(Protocol):
    """Sends a call to its server."""

    async def forward(self, tool: ToolDefinition, arguments: Json, call: CallReport) -> Json:
        """The server's result. Raises Refusal, RpcError or ConnectionLost."""
        ...

    def mask(self, text: str) -> str:
        """The text without the values of secrets: what is recorded."""
        ...

    def reviews_results(self, server: str) -> bool:
        """Whether a person sees the results of this server before the client gets them."""
        ...


class Definitions(Protocol):
    """The definitions of a server's tools."""

    def get(self, server: str, tool: str) -> ToolDefinition | None:
        """The current one; None if the server has no such tool."""
        ...

    def accepted(self, server: str, tool: str) -> ToolDefinition | None:
        """The latest one that a person accepted."""
        ...

    def is_accepted(self, tool: ToolDefinition) -> bool:
        """Whether a person knows this one."""
        ...

    def accept(self, tool: ToolDefinition, why: str) -> None: ...


class ForwardedTool(Tool[ForwardedInput, ForwardedPlan]):
    """One tool of one server."""

    input, output = ForwardedInput, ForwardedOutput
    assurance = "forwarded"
    listed = False
    """Listed by the relay, with the server's own definition."""
    answer_inputs = frozenset[str]()
    takes_remarks = False

    def __init__(self, first: ToolDefinition, pins: Definitions, forwarder: Forwarder, place: Place) -> None:
        self.name, self.title, self.description = first.name, first.title, first.description
        self._server, self._tool, self._first = first.server, first.own_name, first
        self._pins, self._forwarder, self._place = pins, forwarder, place

    def display(self, input: ForwardedInput) -> str:
        return _title(self._server, self._tool, input.arguments)

    async def plan(self, input: ForwardedInput, caller: Caller) -> ForwardedPlan:
        tool = self._pins.get(self._server, self._tool)
        if tool is None:
            return self._plan_unlisted(input.arguments, caller)
        accepted = self._pins.accepted(self._server, self._tool)
        is_known = self._pins.is_accepted(tool)
        changed = "" if is_known else _describe_change(tool, accepted)
        return ForwardedPlan(
            claims=tuple(self._claims(input.arguments, caller, changed)),
            preview=None if is_known else _preview(tool, accepted),
            bound={"server": self._server, "definition": tool.digest},
            server=self._server,
            tool=tool,
            arguments=input.arguments,
            accepts=not is_known,
            reviews_result=self._forwarder.reviews_results(self._server),
        )

    def _plan_unlisted(self, arguments: Json, caller: Caller) -> ForwardedPlan:
        """The plan of a tool that its server does not list, or has not listed yet. Only a denial comes of it."""
        return ForwardedPlan(
            claims=tuple(self._claims(arguments, caller, "")),
            bound={},
            server=self._server,
            tool=self._first,
            arguments=arguments,
            refuses=f"{self._server} has no tool {self._tool}. List the tools again.",
        )

    def _claims(self, arguments: Json, caller: Caller, changed: str) -> Iterator[Claim]:
        """The use of the tool, and what its arguments name on this machine."""
        server, name = self._server, f"{self._server} {self._tool}"
        yield Claim(
            action="run",
            resource=name,
            inside=True,
            opaque=changed,
            server=server,
            arguments=flatten_arguments(arguments),
        )
        paths = list(dict.fromkeys(find_paths(arguments)))
        for path in paths[:PATHS_MAX]:
            claim = self._place(caller, path)
            if claim is not None:
                yield claim
        if len(paths) > PATHS_MAX:
            why = f"it names {len(paths):,} paths, which is more than can be judged"
            yield Claim(action="run", resource=name, inside=True, opaque=why, server=server)

    async def run(self, plan: ForwardedPlan, call: CallReport) -> Result:
        if plan.accepts:
            self._pins.accept(plan.tool, f"call:{call.id}")
        try:
            reply = await self._forwarder.forward(plan.tool, plan.arguments, call)
        except RpcError as error:
            call.relay({"error": error.wire})
            message = self._forwarder.mask(error.excerpt)
            recorded = Result(text="", data={"error": {"code": error.code, "message": message}})
            raise Refusal(f"{self._server} answered with an error: {message}", recorded) from None
        except ConnectionLost as lost:
            raise Refusal(f"{lost} {lost.effect}") from None
        call.relay({"result": reply})
        result = _recorded(reply, self._forwarder.mask)
        if reply.get("isError") is True:
            raise Refusal(result.text or f"{self._server} says that this failed.", result)
        return result

    def preview_answer(self, answer: Json) -> ResultPreview:
        mask = self._forwarder.mask
        error = answer.get("error")
        if isinstance(error, dict):
            text = mask(str(error["message"]))
            notes = [] if len(text) <= RECORDED_MAX else [_LONG]
            notes += ["Further data of the error is not shown."] if "data" in error else []
            notes += [_MASKED] if text != str(error["message"]) else []
            return ResultPreview(
                server=self._server, text=text[:RECORDED_MAX], is_error=True, notes=tuple(notes)
            )
        reply = answer["result"]
        assert isinstance(reply, dict)
        recorded = _recorded(reply, mask)
        structured = recorded.data.get("structured")
        notes = [*_unshown(reply, recorded), *([_MASKED] if recorded != _recorded(reply, str) else [])]
        return ResultPreview(
            server=self._server,
            text=recorded.text,
            structured="" if structured is None else json.dumps(structured, ensure_ascii=False, indent=1),
            is_error=reply.get("isError") is True,
            notes=tuple(notes),
        )


_MASKED = "[secret] stands for a secret of this server. The agent gets its value if you pass this on."
_LONG = f"Only the first {RECORDED_MAX:,} characters of the text are shown."


def _unshown(reply: Json, recorded: Result) -> Iterator[str]:
    """What a person cannot see of a reply that is passed on."""
    content = reply.get("content")
    blocks = content if isinstance(content, list) else []
    if any(not isinstance(block, dict) or block.get("type") != "text" for block in blocks):
        yield "Content that is not text is named, and not shown."
    if len("\n".join(map(_block_text, blocks))) > RECORDED_MAX:
        yield _LONG
    if isinstance(reply.get("structuredContent"), dict) and "structured" not in recorded.data:
        yield "Its structured content is too large to be shown."


def _describe_change(tool: ToolDefinition, accepted: ToolDefinition | None) -> str:
    if accepted is None:
        return f"{tool.server} did not have this tool when it was added, and no person has seen it"
    names = [
        name
        for name in {**accepted.pinned, **tool.pinned}
        if accepted.pinned.get(name) != tool.pinned.get(name)
    ]
    return f"{tool.server} changed the {', '.join(names)} of this tool, and no person has seen that"


def _preview(tool: ToolDefinition, accepted: ToolDefinition | None) -> DiffPreview:
    """The definition as it was accepted and as it is now."""
    diff = diff_definitions(accepted, tool)
    lines = diff.splitlines()[2:]
    return DiffPreview(
        path=f"{tool.server} {tool.own_name}",
        diff=diff,
        added=sum(line.startswith("+") for line in lines),
        removed=sum(line.startswith("-") for line in lines),
        creates=accepted is None,
    )


def _title(server: str, tool: str, arguments: Json) -> str:
    """`github create_issue: repo=acme/x title=…`, in one line that shows hidden characters and line breaks."""
    words = " ".join(f"{name}={_short(value)}" for name, value in arguments.items())
    line = f"{server} {tool}: {words}" if words else f"{server} {tool}"
    spelled = spell_hidden(line[: TITLE_MAX + 1].replace("\n", "⏎"))
    line = "".join(char if char.isprintable() else " " for char in spelled)
    return line if len(line) <= TITLE_MAX else f"{line[: TITLE_MAX - 1]}…"


def _short(value: JsonValue) -> str:
    return value[:TITLE_MAX] if isinstance(value, str) else json.dumps(value, ensure_ascii=False)[:TITLE_MAX]


def find_paths(value: JsonValue) -> Iterator[str]:
    """Absolute paths in the arguments, at any depth. A relative one means something to the server only."""
    match value:
        case str():
            yield from _paths_of_text(value)
        case list():
            for each in value:
                yield from find_paths(each)
        case dict():
            for name, each in value.items():
                yield from _paths_of_text(name)
                yield from find_paths(each)
        case _:
            return


def _paths_of_text(text: str) -> Iterator[str]:
    """What a server may open for this text: as it is, without the blanks around it, and what a file: URL stands for."""
    bare = text.strip()
    if bare[:5].lower() == "file:":
        target = re.sub(r"^//[^/\\]*", "", bare[5:].partition("#")[0].partition("?")[0])
        decoded = [f"/{unquote(target).lstrip('/')}", f"/{unquote(bare[5:]).lstrip('/')}"]
        yield from filter(_may_be_path, dict.fromkeys(decoded))
    elif bare.startswith(("/", "~")):
        whole = [os.path.expanduser(each) for each in (text, bare)]  # noqa: PTH111 - `~name` too
        yield from filter(_may_be_path, dict.fromkeys(whole))


def _may_be_path(text: str) -> bool:
    """Whether a system would open it: prose and code may begin with a slash too."""
    if not text.startswith("/") or len(text) >= _PATH_MAX:
        return False
    if "\n" in text:
        return os.path.lexists(os.path.dirname(text))  # noqa: PTH120
    return all(len(part) <= _NAME_MAX for part in text.split("/"))


_PATH_MAX, _NAME_MAX = 4096, 255
"""Characters; file systems accept no more."""


def _recorded(reply: Json, mask: Callable[[str], str]) -> Result:
    """A result as it is kept: its text, and its structured content if that is not too large, without secrets."""
    content = reply.get("content")
    blocks = [_block_text(each) for each in content] if isinstance(content, list) else []
    text = mask("\n".join(blocks))
    left = len(text) - RECORDED_MAX
    if left > 0:
        text = f"{text[:RECORDED_MAX]}\n… {left:,} characters left out …"
    data: Json = {}
    structured = reply.get("structuredContent")
    if isinstance(structured, dict) and len(json.dumps(structured)) <= RECORDED_MAX:
        data["structured"] = _masked(structured, mask)
    return Result(text=text, data=data)


def _masked(value: JsonValue, mask: Callable[[str], str]) -> JsonValue:
    match value:
        case str():
            return mask(value)
        case list():
            return [_masked(each, mask) for each in value]
        case dict():
            return {name: _masked(each, mask) for name, each in value.items()}
        case _:
            return value


def _block_text(block: JsonValue) -> str:
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": str(kind), "uri": str(uri)}:
            return f"[{kind} {uri}]"
        case {"type": "resource", "resource": {"text": str(text)}}:
            return text
        case {"type": str(kind), "data": str(data), "mimeType": str(mime)}:
            return f"[{kind} {mime}, {math.ceil(len(data) * 3 / 4):,} bytes]"
        case {"type": str(kind)}:
            return f"[{kind}]"
        case _:
            return "[unknown content]"
