"""The server's ends of its connections: what comes in is taken down, and one answer at a time goes out.

Owns HTTP and the moments at which a listener leaves. Which turn is played, and how it is worded, is others' to know.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

from tests.model.anthropic import ANTHROPIC
from tests.model.dialect import Dialect, Json
from tests.model.google import GOOGLE
from tests.model.openai import OPENAI
from tests.model.outlet import SECONDS, Left, Outlet, headed, later
from tests.model.record import Asked, Connection
from tests.model.responses import RESPONSES
from tests.model.script import Trouble, Turn

if TYPE_CHECKING:
    from tests.model.plays import Play
    from tests.model.server import ModelServer

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

    def _take_down(self, body: Json, dialect: Dialect) -> Asked:
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(dialect=dialect.name, body=body, headers=headers, connection=self._open)
        self.model.requests.append(asked)
        return asked

    def _keys(self) -> list[str]:
        bearer = self.headers.get("Authorization", "").removeprefix("Bearer ")
        return [bearer, self.headers.get("X-Api-Key", ""), self.headers.get("X-Goog-Api-Key", "")]

    def _play(self, asked: Asked, dialect: Dialect, play: Play) -> None:
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
        except (OSError, Left):
            asked.end("left")
            self.model.left.set()
            self.close_connection = True

    def _stream(
        self, asked: Asked, dialect: Dialect, turn: Turn, trouble: Trouble | None, out: Outlet
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

    def _cut(self, asked: Asked, out: Outlet) -> None:
        asked.end("cut")
        self.close_connection = True
        out.cut()

    def _refuse(
        self,
        asked: Asked,
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
        """Nothing: what it was asked is kept."""
