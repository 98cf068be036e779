"""A lean MCP client over HTTP, for many clients in one poll loop."""

import json
import socket
from collections.abc import Mapping
from typing import Any

from bench.client import PROTOCOL

CONNECT_SECONDS = 60.0


class HttpClient:
    """One session with a server. A request is answered before the next begins."""

    def __init__(self, host: str, port: int, bearer: str = "") -> None:
        self._address = host, port
        self._socket = socket.socket()
        self._headers = [
            f"Host: {host}:{port}",
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
            f"MCP-Protocol-Version: {PROTOCOL}",
            *([f"Authorization: Bearer {bearer}"] if bearer else []),
        ]
        self._held = b""
        self._last = 0

    def initialize(self) -> None:
        self.connect()
        info = {"name": "handrail-bench", "version": "1"}
        self._request("initialize", {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": info})
        head = self._wait()
        session = [line for line in head.split("\r\n") if line.lower().startswith("mcp-session-id:")]
        self._headers += [f"MCP-Session-Id: {session[0].partition(':')[2].strip()}"] if session else []
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self._wait()

    def connect(self) -> None:
        """Go on with the session over a new connection: servers close one that is idle for seconds."""
        self._socket.close()
        self._socket = socket.create_connection(self._address, CONNECT_SECONDS)

    def begin(self, tool: str, arguments: Mapping[str, object]) -> None:
        self._request("tools/call", {"name": tool, "arguments": arguments})

    def fileno(self) -> int:
        return self._socket.fileno()

    def is_answered(self) -> bool:
        """Read what has arrived; return whether the response is complete. Raises RuntimeError when it is an error."""
        chunk = self._socket.recv(1 << 20)
        if not chunk:
            raise EOFError("The server closed the connection.")
        self._held += chunk
        if not self._is_complete():
            return False
        message = self._parse()
        if "result" not in message or message["result"].get("isError"):
            raise RuntimeError(f"The server answered with an error: {message}")
        self._held = b""
        return True

    def close(self) -> None:
        self._socket.close()

    def _request(self, method: str, params: Mapping[str, object]) -> None:
        self._last += 1
        self._send({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params})

    def _send(self, message: Mapping[str, object]) -> None:
        body = json.dumps(message)
        lines = ["POST /mcp HTTP/1.1", *self._headers, f"Content-Length: {len(body)}", "", body]
        self._socket.sendall("\r\n".join(lines).encode())

    def _wait(self) -> str:
        """Read a whole response; return its head. Raises RuntimeError for a refusal."""
        while not self._is_complete():
            chunk = self._socket.recv(1 << 20)
            if not chunk:
                raise EOFError("The server closed the connection.")
            self._held += chunk
        head = self._held.partition(b"\r\n\r\n")[0].decode()
        if not head.startswith("HTTP/1.1 2"):
            raise RuntimeError(f"The server refused: {self._held.decode(errors='replace')}")
        self._held = b""
        return head

    def _is_complete(self) -> bool:
        head, gap, body = self._held.partition(b"\r\n\r\n")
        if not gap:
            return False
        lowered = head.lower()
        if b"transfer-encoding: chunked" in lowered:
            return body.endswith(b"0\r\n\r\n")
        length = lowered.partition(b"content-length:")[2].split(b"\r\n")[0].strip()
        return len(body) >= int(length or 0)

    def _parse(self) -> dict[str, Any]:
        """The JSON-RPC message in a body of JSON, or of events, each in a chunk of its own."""
        body = self._held.partition(b"\r\n\r\n")[2]
        lines = [line.removeprefix(b"data:").strip() for line in body.splitlines() if b"{" in line]
        return json.loads(lines[-1])
