"""A model without a mind, on loopback: it says what the prompt tells it to say, in the dialects of two providers.

A prompt holds its script, a list of turns as JSON, between `<<<` and `>>>`. Each request that an agent makes for the
prompt plays the next turn: a text that is streamed word by word, then perhaps a tool to use, or a silence that lasts
until whoever listens has left. Knows Anthropic's messages and OpenAI's chat completions, as streams; nothing of agents.
"""

import json
import re
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from secrets import token_hex
from typing import Any, ClassVar, cast

Json = dict[str, Any]
SCRIPT = re.compile(r"<<<(.*?)>>>", re.DOTALL)
SECONDS = 60.0
"""A silence ends after so long at the latest, so that no test leaves a thread behind."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What the model answers once."""

    say: str = ""
    tool: str | None = None
    input: Json = field(default_factory=dict[str, Any])
    hang: bool = False


BESIDE = Turn("A conversation")
"""What agents ask a model for beside the conversation, a title for instance, gets this."""


def script(*turns: Turn) -> str:
    """A prompt that makes the model play these turns."""
    told = [{name: getattr(turn, name) for name in Turn.__slots__} for turn in turns]
    return f"Please do this. <<<{json.dumps(told)}>>>"


@dataclass
class ModelServer:
    """The server, and what it was asked."""

    url: str
    asked: list[Json] = field(default_factory=list[Json])
    """The requests that played a turn."""
    strange: list[str] = field(default_factory=list[str])
    """Requests for something that it does not have."""
    silent: threading.Event = field(default_factory=threading.Event)
    """Set while it says nothing, on purpose."""
    left: threading.Event = field(default_factory=threading.Event)
    """Set once whoever listened to its silence has gone."""


@contextmanager
def model_server() -> Generator[ModelServer]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        http.daemon_threads = True
        server = Handler.served[http.server_port] = ModelServer(f"http://127.0.0.1:{http.server_port}")
        thread = threading.Thread(target=http.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()
            del Handler.served[http.server_port]


def turn_for(messages: Sequence[Json]) -> Turn | None:
    """The turn that comes next: as many were played as the model has answered since the last script."""
    played = 0
    for message in reversed(messages):
        if message["role"] == "assistant":
            played += 1
        elif found := SCRIPT.findall(_text(message["content"])):
            turns: list[Json] = json.loads(found[-1])
            return Turn(**turns[played]) if played < len(turns) else Turn("That was all.")
    return None


def _text(content: Any) -> str:
    """What a message says; results of tools apart."""
    if isinstance(content, str):
        return content
    return "\n".join(block.get("text", "") for block in content if block.get("type") == "text")


class Handler(BaseHTTPRequestHandler):
    """One request, in the dialect of its path."""

    served: ClassVar[dict[int, ModelServer]] = {}
    protocol_version = "HTTP/1.1"

    @property
    def model(self) -> ModelServer:
        return self.served[cast("tuple[str, int]", self.server.server_address)[1]]

    def do_GET(self) -> None:
        self._missing()

    def do_HEAD(self) -> None:
        self._missing()

    def do_CONNECT(self) -> None:
        self._missing()

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        path = self.path.partition("?")[0]
        if not path.startswith("/"):  # for somewhere else: we are its proxy
            self._missing()
        elif path.endswith("/count_tokens"):
            self._send(json.dumps({"input_tokens": 10}).encode())
        elif path.endswith("/messages"):
            self._stream(body, anthropic)
        elif path.endswith("/chat/completions"):
            self._stream(body, openai)
        else:
            self._missing()

    def _stream(self, body: Json, dialect: Any) -> None:
        turn = turn_for(body["messages"]) if body.get("tools") else None
        if turn is not None:
            self.model.asked.append(body)
        self._head("text/event-stream" if body.get("stream") else "application/json")
        with suppress(OSError):
            for event in dialect(turn or BESIDE, bool(body.get("stream"))):
                self.wfile.write(event.encode())
                self.wfile.flush()
            if turn is not None and turn.hang:
                self._be_silent()

    def _be_silent(self) -> None:
        self.model.silent.set()
        self.connection.settimeout(SECONDS)
        with suppress(OSError):
            if not self.connection.recv(1):
                self.model.left.set()
        self.model.silent.clear()

    def _missing(self) -> None:
        self.model.strange.append(f"{self.command} {self.path}")
        self.send_error(404)

    def _send(self, body: bytes) -> None:
        self._head("application/json")
        self.wfile.write(body)

    def _head(self, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: what it was asked is kept."""


def anthropic(turn: Turn, stream: bool) -> Iterator[str]:
    """As Anthropic's messages: whole, or event by event."""
    use: Json = {"type": "tool_use", "id": f"toolu_{token_hex(8)}", "name": turn.tool}
    text: list[Json] = [{"type": "text", "text": turn.say}] if turn.say else []
    content = [*text, *([{**use, "input": turn.input}] if turn.tool else [])]
    stop = "tool_use" if turn.tool else "end_turn"
    about: Json = {"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted"}
    usage = {"input_tokens": 10, "output_tokens": 5}
    if not stream:
        yield json.dumps(
            {**about, "content": content, "stop_reason": stop, "stop_sequence": None, "usage": usage}
        )
        return
    yield _event("message_start", message={**about, "content": [], "stop_reason": None, "usage": usage})
    for index, block in enumerate(content):
        empty = {**block, "input": {}} if block["type"] == "tool_use" else {**block, "text": ""}
        yield _event("content_block_start", index=index, content_block=empty)
        for delta in _deltas(block):
            yield _event("content_block_delta", index=index, delta=delta)
        if turn.hang:
            return
        yield _event("content_block_stop", index=index)
    yield _event("message_delta", delta={"stop_reason": stop, "stop_sequence": None}, usage=usage)
    yield _event("message_stop")


def _deltas(block: Json) -> Iterator[Json]:
    if block["type"] == "tool_use":
        yield {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    else:
        yield from ({"type": "text_delta", "text": word} for word in _words(block["text"]))


def _event(kind: str, **values: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **values})}\n\n"


def openai(turn: Turn, stream: bool) -> Iterator[str]:
    """As OpenAI's chat completions: whole, or chunk by chunk."""
    called = {"name": turn.tool, "arguments": json.dumps(turn.input)}
    use: list[Json] = [{"id": f"call_{token_hex(8)}", "type": "function", "function": called}]
    stop = "tool_calls" if turn.tool else "stop"
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    about: Json = {"id": "chat_1", "created": 1, "model": "scripted"}
    if not stream:
        message = {"role": "assistant", "content": turn.say, **({"tool_calls": use} if turn.tool else {})}
        choice = {"index": 0, "message": message, "finish_reason": stop}
        yield json.dumps({**about, "object": "chat.completion", "choices": [choice], "usage": usage})
        return
    about["object"] = "chat.completion.chunk"
    deltas: list[Json] = [{"role": "assistant", "content": word} for word in _words(turn.say)]
    if turn.tool:
        deltas.append({"role": "assistant", "tool_calls": [{"index": 0, **use[0]}]})
    for delta in deltas:
        yield _chunk({**about, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    if turn.hang:
        return
    yield _chunk({**about, "choices": [{"index": 0, "delta": {}, "finish_reason": stop}], "usage": usage})
    yield "data: [DONE]\n\n"


def _chunk(values: Json) -> str:
    return f"data: {json.dumps(values)}\n\n"


def _words(text: str) -> list[str]:
    return re.findall(r"\S+\s*", text)
