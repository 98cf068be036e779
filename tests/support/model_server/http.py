"""HTTP of the model server: connections, requests with their times, and answers that may be slow, cut or absent.

It detects when a client disconnects. `script.py` selects the turn, the provider's module renders it.
"""

from __future__ import annotations

import json
import select
import socket
import struct
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase
from math import ceil
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, cast

from tests.support.model_server.anthropic import ANTHROPIC
from tests.support.model_server.google import GOOGLE
from tests.support.model_server.openai_chat import OPENAI
from tests.support.model_server.openai_responses import RESPONSES
from tests.support.model_server.script import Dialect, Json, Trouble, Turn

if TYPE_CHECKING:
    from tests.support.model_server.script import Play
    from tests.support.model_server.server import ModelServer


@dataclass(eq=False)
class Connection:
    """One client's, from its beginning to its end."""

    opened: float = field(default_factory=monotonic)
    closed: float | None = None


@dataclass(eq=False)
class ModelRequestRecord:
    """One request for an answer."""

    dialect: str
    body: Json
    headers: dict[str, str]
    """By their names in small letters."""
    connection: Connection
    aside: bool = False
    at: float = field(default_factory=monotonic)
    said: int = 0
    """Pieces of the answer that were sent."""
    ended: Literal["", "whole", "left", "cut", "refused"] = ""
    """Whole; its listener has left; cut off on purpose; with a status that is no success."""
    ended_at: float | None = None

    def end(self, how: Literal["whole", "left", "cut", "refused"]) -> None:
        self.ended, self.ended_at = how, monotonic()


SECONDS = 60.0
"""A silence ends after so long at the latest, so that no test leaves a thread behind."""


class ClientLeft(Exception):
    """The client disconnected."""


class Outlet:
    """The server's side of one connection, with its bytes out."""

    def __init__(self, connection: socket.socket, out: BufferedIOBase) -> None:
        self._connection, self._out = connection, out

    def stream(
        self, asked: ModelRequestRecord, dialect: Dialect, turn: Turn, trouble: Trouble | None
    ) -> None:
        """All of it, or half where it goes wrong; what becomes of it then is the caller's."""
        for piece in _part(dialect.stream(turn, asked.body["model"]), trouble):
            if asked.said:
                self.listened(turn.pace)
            self.chunk(piece)
            asked.said += 1

    def chunk(self, text: str) -> None:
        self._out.write(f"{len(text.encode()):x}\r\n{text}\r\n".encode())

    def end(self) -> None:
        self._out.write(b"0\r\n\r\n")

    def cut(self) -> None:
        """Closed with a reset, which no client takes for an end."""
        self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def listened(self, seconds: float) -> None:
        """Wait this long. Raises ClientLeft if the client disconnects."""
        readable, _, _ = select.select([self._connection], [], [], seconds)
        if readable and not self._connection.recv(1, socket.MSG_PEEK):
            raise ClientLeft

    def hold(self, gone_on: threading.Event) -> None:
        until = monotonic() + SECONDS
        while not gone_on.is_set() and monotonic() < until:
            self.listened(0.005)

    def be_silent(self, silent: threading.Event) -> None:
        silent.set()
        try:
            self.listened(SECONDS)
        finally:
            silent.clear()


def _part(pieces: Iterator[str], trouble: Trouble | None) -> list[str]:
    every = list(pieces)
    return every if trouble is None else every[: max(1, len(every) // 2)]


def later(seconds: float) -> dict[str, str]:
    """The headers for a retry, in whole seconds and in milliseconds."""
    return {"Retry-After": str(ceil(seconds)), "Retry-After-Ms": str(round(seconds * 1000))}


def headed(values: dict[str, Any], more: dict[str, str]) -> tuple[dict[str, str], bytes]:
    """The head and the body of an answer in one piece."""
    body = json.dumps(values).encode()
    return {"Content-Type": "application/json", "Content-Length": str(len(body)), **more}, body


SENTENCES = {
    400: "Bad request",
    401: "invalid x-api-key",
    404: "model: no such model",
    429: "This request would exceed your rate limit.",
    529: "Overloaded",
}
TOO_LONG = "prompt is too long: 200001 tokens > 200000 maximum. This model's maximum context length is 200000 tokens."


class Http(ThreadingHTTPServer):
    """One thread for each connection, all of them ended with it."""

    model: ModelServer
    request_queue_size = 128

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self._held: dict[threading.Thread, socket.socket] = {}

    def process_request(self, request: Any, client_address: Any) -> None:
        thread = threading.Thread(
            target=self.process_request_thread, args=(request, client_address), daemon=True
        )
        self._held = {each: held for each, held in self._held.items() if each.is_alive()} | {thread: request}
        thread.start()

    def hang_up(self) -> None:
        for thread, request in self._held.items():
            with suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)
            thread.join(SECONDS)

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """One connection, and its requests one after the other."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    _open: Connection

    @property
    def model(self) -> ModelServer:
        return cast("Http", self.server).model

    def setup(self) -> None:
        super().setup()
        self._open = Connection()
        self.model.connections.append(self._open)

    def finish(self) -> None:
        self._open.closed = monotonic()
        super().finish()

    def do_GET(self) -> None:
        if self._path.endswith("/models"):
            listed = [
                {"id": name, "object": "model", "type": "model", "display_name": name}
                for name in self.model.models
            ]
            named = [{"name": f"models/{name}", "displayName": name} for name in self.model.models]
            self._send(200, {"object": "list", "data": listed, "has_more": False, "models": named})
        else:
            self._missing()

    def do_HEAD(self) -> None:
        self._missing()

    def do_CONNECT(self) -> None:
        self._missing()

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self._path.endswith("/count_tokens"):
            self._send(200, {"input_tokens": 10})
        elif self._path.endswith("/messages"):
            self._answer(body, ANTHROPIC)
        elif self._path.endswith("/chat/completions"):
            self._answer(body, OPENAI)
        elif self._path.endswith("/responses"):
            self._answer(body, RESPONSES)
        elif self._path.endswith(("GenerateContent", "generateContent")):
            self._answer({"model": self._path.rpartition("/")[2].partition(":")[0], **body}, GOOGLE)
        else:
            self._missing()

    @property
    def _path(self) -> str:
        """Nothing for somewhere else, where we are asked as a proxy."""
        return self.path.partition("?")[0] if self.path.startswith("/") else ""

    def _answer(self, body: Json, dialect: Dialect) -> None:
        asked = self._take_down(body, dialect)
        if self.model.key is not None and self.model.key not in self._keys():
            self._refuse(asked, dialect, 401)
        elif problem := dialect.problem(body):
            self.model.refused.append(problem)
            self._refuse(asked, dialect, 400, problem)
        else:
            play = self.model.plays.next(body, dialect)
            asked.aside = play.aside
            self._play(asked, dialect, play)

    def _take_down(self, body: Json, dialect: Dialect) -> ModelRequestRecord:
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = ModelRequestRecord(dialect=dialect.name, body=body, headers=headers, connection=self._open)
        self.model.requests.append(asked)
        return asked

    def _keys(self) -> list[str]:
        bearer = self.headers.get("Authorization", "").removeprefix("Bearer ")
        return [bearer, self.headers.get("X-Api-Key", ""), self.headers.get("X-Goog-Api-Key", "")]

    def _play(self, asked: ModelRequestRecord, dialect: Dialect, play: Play) -> None:
        out = Outlet(self.connection, self.wfile)
        try:
            if play.turn.hold:
                out.hold(self.model.gone_on[play.turn.hold])
            match play.trouble:
                case int(status):
                    self._refuse(asked, dialect, status, retry_after=play.turn.retry_after)
                case "too_long":
                    self._refuse(asked, dialect, 400, TOO_LONG)
                case "silent":
                    out.be_silent(self.model.silent)
                case "refuse":
                    self._cut(asked, out)
                case _ if not dialect.streams(asked.body):
                    self._send(200, dialect.whole(play.turn, asked.body["model"]))
                    asked.end("whole")
                case trouble:
                    self._stream(asked, dialect, play.turn, trouble, out)
        except (OSError, ClientLeft):
            asked.end("left")
            self.model.left.set()
            self.close_connection = True

    def _stream(
        self, asked: ModelRequestRecord, dialect: Dialect, turn: Turn, trouble: Trouble | None, out: Outlet
    ) -> None:
        self._head(200, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"})
        out.stream(asked, dialect, turn, trouble)
        if turn.hang or trouble == "stall":
            out.be_silent(self.model.silent)
        if trouble == "broken":
            self._cut(asked, out)
            return
        if trouble == "overloaded":
            out.chunk(dialect.overloaded)
        out.end()
        asked.end("whole" if trouble is None else "cut")

    def _cut(self, asked: ModelRequestRecord, out: Outlet) -> None:
        asked.end("cut")
        self.close_connection = True
        out.cut()

    def _refuse(
        self,
        asked: ModelRequestRecord,
        dialect: Dialect,
        status: int,
        sentence: str = "",
        retry_after: float | None = None,
    ) -> None:
        asked.end("refused")
        told = dialect.error(status, sentence or SENTENCES.get(status, "Internal server error"))
        self._send(status, told, {} if retry_after is None else later(retry_after))

    def _missing(self) -> None:
        self.model.strange.append(f"{self.command} {self.path}")
        self.close_connection = True
        self.send_error(404)

    def _send(self, status: int, values: Json, more: dict[str, str] | None = None) -> None:
        headers, body = headed(values, more or {})
        self._head(status, headers)
        self.wfile.write(body)

    def _head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing; requests are recorded."""
