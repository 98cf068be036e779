"""The client of an MCP connection, as the MCP servers behind Handrail see it.

A client of MCP 2025 is asked with requests of our own. One of 2026-07-28 takes none: its request ends with
`input_required`, and the client repeats it with the answers. Meanwhile the call goes on, and its server waits.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from typing import Any, cast

import anyio
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import LOG_LEVEL_META_KEY
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import JsonValue

from handrail.gate.call import Call
from handrail.hidden_text import spell_hidden
from handrail.lazy_dataclass import dataclass
from handrail.store.values import Json
from handrail.upstream.jsonrpc_connection import INVALID_REQUEST, METHOD_NOT_FOUND, RpcError
from handrail.upstream.server_connection import RELATED_TASK

Context = ServerRequestContext[Any, Any]

NOTIFY_SECONDS = 1.0
"""Time to send a notification. A client that does not read loses it, and delays its own servers only."""
ANSWER_SECONDS = 3600.0
"""Time for a client of 2026-07-28 to repeat a request with its answers. Bounds how long a server is held open."""


@dataclass()
class Question:
    """A question of a server, until its client has answered."""

    method: str
    params: Json
    answer: Json | None = None
    answered: anyio.Event = field(default_factory=anyio.Event)


@dataclass(eq=False)
class ForwardedRequest:
    """A tools/call of a client that is in progress, with its call once that is open."""

    context: Context
    call: Call | None = None
    questions: dict[str, Question] = field(default_factory=dict[str, Question])
    asked: anyio.Event = field(default_factory=anyio.Event)
    is_answered: bool = False
    """The client has got its response: nothing more may be sent for it."""
    is_task: bool = False
    """The response was a task, in which the client finds questions and answers them."""
    on_ask: Callable[[], None] = lambda: None

    def ask(self, questions: Mapping[str, Question]) -> None:
        """Let the client's request end with these questions, or put them into the task."""
        self.questions.update(questions)
        self.asked.set()
        if self.call is not None:
            self.call.hand_back()
        self.on_ask()

    @property
    def open_questions(self) -> dict[str, Question]:
        return {name: each for name, each in self.questions.items() if not each.answered.is_set()}

    @property
    def wire_questions(self) -> Json:
        return {
            name: {"method": each.method, "params": each.params} for name, each in self.open_questions.items()
        }

    @property
    def unasked_answers(self) -> Json:
        """What the client answers in its first request already, for a server that keeps no state of its questions."""
        params = self.context.params or {}
        answers = params.get("inputResponses")
        has_state = params.get("requestState") is not None
        return cast("Json", answers) if isinstance(answers, dict) and not has_state else {}

    def take_answers(self, context: Context, answers: Mapping[str, Any]) -> None:
        """Continue with the client's next request, which has its answers."""
        self.context, self.is_answered, self.asked = context, False, anyio.Event()
        self.answer_questions(answers)

    def answer_questions(self, answers: Mapping[str, Any]) -> None:
        """Pass the client's answers on; those to other questions are ignored."""
        for name, question in self.open_questions.items():
            if isinstance(answers.get(name), dict):
                question.answer = cast("Json", answers[name])
                question.answered.set()

    def is_repeated(self, params: Json) -> bool:
        """Whether these are the parameters of this very call."""
        own = self.context.params or {}
        return all(own.get(name) == params.get(name) for name in ("name", "arguments", "uri"))

    def drop_questions(self) -> None:
        """The client will not answer any more."""
        for question in self.open_questions.values():
            question.answered.set()


class McpClientLink:
    """One client. Implements `ClientLink` of `upstream`."""

    def __init__(
        self,
        key: str,
        context: Context,
        workspace: str | None,
        on_resource_change: Callable[[str, str, Json], None] | None = None,
    ) -> None:
        self.key = key
        self._on_resource_change = on_resource_change
        self.workspace = workspace
        self.log_level = ""
        self.has_left = False
        self._context = context
        self.requests: list[ForwardedRequest] = []
        """Calls in progress, oldest first."""

    def update(self, context: Context) -> None:
        """Note the latest request: a client of 2026-07-28 names itself and its abilities in each."""
        self._context = context
        level = (_meta_in(context) or {}).get(LOG_LEVEL_META_KEY)
        if isinstance(level, str) and not self.is_legacy:
            self.log_level = level

    @property
    def info(self) -> Json:
        params = self._context.session.client_params
        return {} if params is None else _wire(params.client_info)

    @property
    def capabilities(self) -> Json:
        declared = self._context.session.client_capabilities
        return {} if declared is None else _wire(declared)

    @property
    def is_legacy(self) -> bool:
        return self._context.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS

    async def request(self, server: str, method: str, params: Json, origins: Sequence[object]) -> Json:
        """Ask the client. Raises RpcError.

        A client of MCP 2025 gets the question itself, so any of its channels will do. For one of 2026-07-28 a call ends
        with the question, which must be the call that the server asks for.
        """
        if self.has_left:
            raise RpcError(METHOD_NOT_FOUND, "The client has left.")
        if method == "elicitation/create":
            params = name_server(server, params)
        if not self.is_legacy:
            request = self._find_origin(server, method, origins)
            name = f"q{len(request.questions) + 1}"
            return (await _ask_by_result(request, {name: Question(method, params)}))[name]
        latest = self._find_latest(origins)
        params = _name_task(params, origins)
        try:
            if latest is not None:
                return await request_channel(latest.context).send_raw_request(method, params)
            return await connection_of(self._context).send_raw_request(method, params)
        except MCPError as error:
            raise RpcError(error.code, error.message, error.data) from None
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            raise RpcError(METHOD_NOT_FOUND, "The client has left.") from None

    async def request_all(
        self, server: str, questions: Mapping[str, tuple[str, Json]], origins: Sequence[object]
    ) -> Json:
        """Ask the client what a result of a server asks, and return the answers by the same names. Raises RpcError."""
        if self.is_legacy:
            return {
                name: await self.request(server, method, params, origins)
                for name, (method, params) in questions.items()
            }
        asked = {
            name: Question(method, name_server(server, params) if method == "elicitation/create" else params)
            for name, (method, params) in questions.items()
        }
        request = self._find_origin(server, ", ".join(method for method, _ in questions.values()), origins)
        return await _ask_by_result(request, asked)

    def _find_latest(self, origins: Sequence[object]) -> ForwardedRequest | None:
        """The latest call in progress, preferably one of these."""
        waiting = [each for each in self.requests if not each.is_answered]
        return next((each for each in reversed(waiting) if each in origins), waiting[-1] if waiting else None)

    def _find_origin(self, server: str, method: str, origins: Sequence[object]) -> ForwardedRequest:
        """The call that a server asks for. Raises RpcError if that is uncertain, or nobody waits for that call."""
        if len(origins) > 1:
            raise RpcError(
                INVALID_REQUEST,
                f"{server} serves {len(origins)} requests of this client and does not say for which one it sends {method}. "
                "A client of MCP 2026-07-28 can only be asked while one is in progress.",
            )
        for request in origins:
            if not isinstance(request, ForwardedRequest):
                continue
            if request.is_task or (request in self.requests and not request.is_answered):
                return request
        raise RpcError(
            METHOD_NOT_FOUND, f"{method} can only be asked while the client waits for a call of {server}."
        )

    async def notify(self, method: str, params: Json) -> None:
        latest = self.requests[-1] if self.requests else None
        is_log = method == "notifications/message"
        if method == "notifications/resources/updated" and not self.is_legacy:
            if self._on_resource_change is not None:
                self._on_resource_change(self.key, method, params)
            return
        if is_log and not self.is_legacy and LOG_LEVEL_META_KEY not in (_meta_of(latest) or {}):
            return  # a client of 2026-07-28 asks for log messages in each request
        with (
            anyio.move_on_after(NOTIFY_SECONDS),
            suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, MCPError),
        ):
            if is_log and latest is not None and not latest.is_answered:
                await request_channel(latest.context).notify(method, params)
            else:
                await connection_of(self._context).notify(method, params)

    async def report(self, request: ForwardedRequest, progress: Json) -> None:
        """Pass a server's progress on, with the client's own token."""
        token = (request.context.meta or {}).get("progress_token")
        if token is None or request.is_answered:
            return
        with (
            anyio.move_on_after(NOTIFY_SECONDS),
            suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, MCPError),
        ):
            params = {**progress, "progressToken": token}
            await request_channel(request.context).notify("notifications/progress", params)


def _name_task(params: Json, origins: Sequence[object]) -> Json:
    """The parameters of a question to a client of MCP 2025, with the task that it is about, if that is certain."""
    task = origins[0] if len(origins) == 1 else None
    if not isinstance(task, ForwardedRequest) or not task.is_task or task.call is None:
        return params
    meta = params.get("_meta")
    fields = meta if isinstance(meta, dict) else {}
    return {**params, "_meta": {**fields, RELATED_TASK: {"taskId": task.call.id}}}


async def _ask_by_result(request: ForwardedRequest, questions: Mapping[str, Question]) -> dict[str, Any]:
    """The client's answers, by the names of the questions. Raises RpcError."""
    request.ask(questions)
    with anyio.move_on_after(ANSWER_SECONDS):
        for question in questions.values():
            await question.answered.wait()
    if any(question.answer is None for question in questions.values()):
        raise RpcError(-1, "The client did not answer.")
    return {name: question.answer for name, question in questions.items()}


def name_server(server: str, params: Json) -> Json:
    """The parameters of an elicitation whose message says who asks, and for a link, to which host it leads."""
    url = params.get("url")
    host = f" (opens {_describe_target(url)})" if isinstance(url, str) else ""
    message = spell_hidden(str(params.get("message", "")))
    return {**params, "message": f"{server} asks{host}: {message}"}


def _describe_target(url: str) -> str:
    """The host to which a link leads, in every browser; the link itself if its host could be read in two ways."""
    plain = _PLAIN_URL.fullmatch(url)
    return plain[1] if plain else f"{spell_hidden(url[:SHOWN_MAX])!r}, which is no plain web address"


_PLAIN_URL = re.compile(
    r"https?://([a-z0-9.-]+|\[[0-9a-f:]+\])(?::\d+)?(?:[/?#][!-\[\]-~]*)?", re.IGNORECASE | re.ASCII
)
"""No user name, no backslash (a slash for browsers), no character that is not ASCII: all of these disguise a host."""
SHOWN_MAX = 200
"""Characters shown of any other link."""


def name_server_in_links(server: str, data: JsonValue) -> JsonValue:
    """The data of an error that requires the client to open links first: each says who asks, and to which host it leads."""
    links = data.get("elicitations") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(links, list):
        return data
    return {**data, "elicitations": [name_server(server, each) for each in links if isinstance(each, dict)]}


def _meta_of(request: ForwardedRequest | None) -> Json | None:
    return None if request is None else _meta_in(request.context)


def _meta_in(context: Context) -> Json | None:
    meta = (context.params or {}).get("_meta")
    return cast("Json", meta) if isinstance(meta, dict) else None


def _wire(model: Any) -> Json:
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


def request_channel(context: Context) -> Any:
    """The channel of a request, for raw messages. The SDK has no public name for it."""
    return vars(context.session)["_request_outbound"]


def connection_of(context: Context) -> Any:
    """The connection of a request, which lives as long as the client. The SDK has no public name for it."""
    return vars(context.session)["_connection"]
