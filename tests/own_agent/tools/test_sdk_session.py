"""The way to a server, where somebody at its other end does not know when to stop."""

import json
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from tests.support.agent_toolset import connected_servers, http_server, run_tool

from handrail.own_agent.tools.sdk_session import MOST_EVENT

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
TOOL: Json = {"name": "talks", "inputSchema": {"type": "object"}}
GREETING: Json = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "t", "version": "1"},
}


class Talker(BaseHTTPRequestHandler):
    """Speaks the older generation, and answers calls without an end."""

    sent = 0

    def log_message(self, format: str, *args: Any) -> None: ...

    def do_GET(self) -> None:
        self.send_error(405)

    def do_DELETE(self) -> None:
        self.send_error(405)

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        known: dict[str, Json] = {"initialize": GREETING, "tools/list": {"tools": [TOOL]}}
        self.send_response(200 if "id" in asked else 202)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        if asked["method"] == "tools/call":
            self._talk()
        elif asked["method"] in known:
            self._say({"id": asked["id"], "result": known[asked["method"]]})
        elif "id" in asked:
            self._say({"id": asked["id"], "error": {"code": -32601, "message": "no"}})

    def _say(self, answer: dict[str, Any]) -> None:
        self.wfile.write(json.dumps({"jsonrpc": "2.0", **answer}).encode())

    def _talk(self) -> None:
        with suppress(OSError):
            while Talker.sent < 10 * MOST_EVENT:
                Talker.sent += self.wfile.write(b" " * (1 << 20))


@pytest.fixture
def port() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Talker) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


async def test_an_answer_without_an_end_is_given_up_and_said_to_be(root: Path, port: int) -> None:
    async with connected_servers(root, http_server(port)) as servers:
        result = await run_tool(servers.tools["somebody__talks"])

    assert result.failed
    assert "longer than 32 MiB" in result.text
    assert Talker.sent < 2 * MOST_EVENT
