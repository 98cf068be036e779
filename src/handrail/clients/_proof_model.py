"""A scripted model on loopback for one turn: it asks for one tool call, and then ends its turn.

It speaks the four APIs that clients use: Anthropic messages, OpenAI chat completions and responses, and Google
generateContent, streamed and whole. Whatever else a client asks for, also as a proxy, is refused: nothing leaves the machine.
"""

import json
import sys
import threading
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, cast

from handrail.lazy_dataclass import dataclass

Json = dict[str, Any]
Api = Literal["messages", "chat", "responses", "google"]
CALL_ID = "call_proof"
DONE = "That is all."
BODY_MAX = 64 << 20
"""Bytes of a request that are read; bounds memory."""


@dataclass(frozen=True, slots=True)
class ProofCall:
    """The tool call that the model asks for."""

    tool: str
    input: Mapping[str, Any]
    mark: str
    """A word in the input that no request has before the call was made."""

    @property
    def text(self) -> str:
        return json.dumps(self.input)


class ProofModel(ThreadingHTTPServer):
    """The server, and the requests it got."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, call: ProofCall) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.call = call
        self.requests = 0
        """Requests for an answer, of any kind."""
        self.has_called = False
        """Whether it has asked for the tool call."""
        self.has_result = False
        """Whether the client has told it what became of the call."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def choose_call(self, body: bytes) -> ProofCall | None:
        """The call, unless the request has it already or does not offer the tool: then the answer is a text."""
        self.requests += 1
        if self.call.mark.encode() in body:
            self.has_result = True
            return None
        if json.dumps(self.call.tool).encode() not in body:
            return None
        self.has_called = True
        return self.call

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], OSError):  # the client ended in the middle of an answer
            super().handle_error(request, client_address)


@contextmanager
def proof_model(call: ProofCall) -> Generator[ProofModel]:
    """Serve until the `with` is left."""
    with ProofModel(call) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        if not self._path.endswith("/models"):
            self._refuse()
            return
        model = {"id": "model", "object": "model", "type": "model", "display_name": "Model"}
        self._send_json({"object": "list", "data": [model], "has_more": False, "models": []})

    def do_POST(self) -> None:
        body = self._read_body()
        api = _find_api(self._path)
        if body is None or (api is None and not self._path.endswith(("/count_tokens", ":countTokens"))):
            self._refuse()
        elif api is None:
            self._send_json({"input_tokens": 10, "totalTokens": 10})
        else:
            self._answer(api, body)

    def do_HEAD(self) -> None:
        self._refuse()

    def do_CONNECT(self) -> None:
        self._refuse()

    @property
    def _path(self) -> str:
        """Empty for an address elsewhere, which clients ask us for as their proxy."""
        return self.path.partition("?")[0] if self.path.startswith("/") else ""

    def _read_body(self) -> bytes | None:
        length = self.headers.get("Content-Length", "")
        return self.rfile.read(int(length)) if length.isdecimal() and int(length) <= BODY_MAX else None

    def _answer(self, api: Api, body: bytes) -> None:
        call = cast("ProofModel", self.server).choose_call(body)
        if _is_streamed(api, self._path, body):
            text = "".join(_STREAMS[api](call))
            self._send("text/event-stream", text.encode())
        else:
            self._send_json(_ANSWERS[api](call))

    def _send_json(self, values: Json) -> None:
        self._send("application/json", json.dumps(values).encode())

    def _send(self, kind: str, data: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _refuse(self) -> None:
        self.close_connection = True
        self.send_error(404)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: standard error is the person's terminal."""


def _find_api(path: str) -> Api | None:
    ends: Mapping[str, Api] = {
        "/messages": "messages",
        "/chat/completions": "chat",
        "/responses": "responses",
        ":generateContent": "google",
        ":streamGenerateContent": "google",
    }
    return next((api for end, api in ends.items() if path.endswith(end)), None)


def _is_streamed(api: Api, path: str, body: bytes) -> bool:
    if api == "google":
        return path.endswith(":streamGenerateContent")
    try:
        values = json.loads(body)
    except ValueError:
        return False
    return isinstance(values, dict) and bool(cast("Json", values).get("stream"))


def _event(kind: str, **values: Any) -> str:
    return f"event: {kind}\n{_data({'type': kind, **values})}"


def _data(values: Json) -> str:
    return f"data: {json.dumps(values)}\n\n"


def _messages(call: ProofCall | None) -> Json:
    use: Json = {"type": "tool_use", "id": CALL_ID, "name": call.tool, "input": call.input} if call else {}
    return {
        "id": "msg_proof",
        "type": "message",
        "role": "assistant",
        "model": "model",
        "content": [use or {"type": "text", "text": DONE}],
        "stop_reason": "tool_use" if call else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 10},
    }


def _stream_messages(call: ProofCall | None) -> Iterator[str]:
    message = _messages(call)
    (block,) = message["content"]
    empty: Json = {**block, "input": {}} if call else {**block, "text": ""}
    delta: Json = {"type": "text_delta", "text": DONE}
    if call:
        delta = {"type": "input_json_delta", "partial_json": call.text}
    stop = {name: message[name] for name in ("stop_reason", "stop_sequence")}
    yield _event("message_start", message={**message, "content": [], "stop_reason": None})
    yield _event("content_block_start", index=0, content_block=empty)
    yield _event("content_block_delta", index=0, delta=delta)
    yield _event("content_block_stop", index=0)
    yield _event("message_delta", delta=stop, usage={"output_tokens": 10})
    yield _event("message_stop")


_CHAT_USAGE = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
_CHAT: Json = {"id": "chatcmpl-proof", "created": 1, "model": "model"}


def _chat_message(call: ProofCall | None) -> Json:
    if call is None:
        return {"role": "assistant", "content": DONE}
    function = {"name": call.tool, "arguments": call.text}
    use = {"index": 0, "id": CALL_ID, "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [use]}


def _chat(call: ProofCall | None) -> Json:
    reason = "tool_calls" if call else "stop"
    choice = {"index": 0, "message": _chat_message(call), "finish_reason": reason}
    return {**_CHAT, "object": "chat.completion", "choices": [choice], "usage": _CHAT_USAGE}


def _stream_chat(call: ProofCall | None) -> Iterator[str]:
    about = {**_CHAT, "object": "chat.completion.chunk"}
    deltas: list[tuple[Json, str | None]] = [
        (_chat_message(call), None),
        ({}, "tool_calls" if call else "stop"),
    ]
    for delta, reason in deltas:
        yield _data({**about, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
    yield _data({**about, "choices": [], "usage": _CHAT_USAGE})
    yield "data: [DONE]\n\n"


def _response_item(call: ProofCall | None) -> Json:
    if call:
        about = {"type": "function_call", "id": "fc_proof", "call_id": CALL_ID, "status": "completed"}
        return {**about, "name": call.tool, "arguments": call.text}
    text: Json = {"type": "output_text", "text": DONE, "annotations": [], "logprobs": []}
    about = {"type": "message", "id": "msg_proof", "role": "assistant", "status": "completed"}
    return {**about, "content": [text]}


def _response(call: ProofCall | None) -> Json:
    usage = {
        "input_tokens": 10,
        "output_tokens": 10,
        "total_tokens": 20,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    return {
        "id": "resp_proof",
        "object": "response",
        "created_at": 1,
        "model": "model",
        "status": "completed",
        "incomplete_details": None,
        "error": None,
        "usage": usage,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "metadata": {},
        "output": [_response_item(call)],
    }


def _stream_response(call: ProofCall | None) -> Iterator[str]:
    response = _response(call)
    (item,) = response["output"]
    empty: Json = {**item, "status": "in_progress", **({"arguments": ""} if call else {"content": []})}
    begun: Json = {**response, "status": "in_progress", "output": [], "usage": None}
    yield _event("response.created", sequence_number=0, response=begun)
    yield _event("response.output_item.added", sequence_number=1, output_index=0, item=empty)
    for number, (kind, values) in enumerate(_response_deltas(call), 2):
        yield _event(kind, sequence_number=number, output_index=0, item_id=item["id"], **values)
    yield _event("response.output_item.done", sequence_number=4, output_index=0, item=item)
    yield _event("response.completed", sequence_number=5, response=response)


def _response_deltas(call: ProofCall | None) -> Iterator[tuple[str, Json]]:
    if call:
        yield "response.function_call_arguments.delta", {"delta": call.text}
        yield "response.function_call_arguments.done", {"arguments": call.text, "name": call.tool}
        return
    part: Json = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
    yield "response.content_part.added", {"content_index": 0, "part": part}
    yield "response.output_text.delta", {"content_index": 0, "delta": DONE, "logprobs": []}


def _google(call: ProofCall | None) -> Json:
    part: Json = {"text": DONE}
    if call:
        signature = "cHJvb2Y="  # clients send it back; the API wants one
        part = {"functionCall": {"name": call.tool, "args": call.input}, "thoughtSignature": signature}
    candidate: Json = {"content": {"role": "model", "parts": [part]}, "index": 0, "finishReason": "STOP"}
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 10, "totalTokenCount": 20}
    return {"candidates": [candidate], "modelVersion": "model", "responseId": "proof", "usageMetadata": usage}


def _stream_google(call: ProofCall | None) -> Iterator[str]:
    yield _data(_google(call))


_ANSWERS = {"messages": _messages, "chat": _chat, "responses": _response, "google": _google}
_STREAMS = {
    "messages": _stream_messages,
    "chat": _stream_chat,
    "responses": _stream_response,
    "google": _stream_google,
}
