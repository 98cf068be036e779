"""A relay of HTTP between the conformance suite and a server, which changes names and nothing else.

The suite calls tools and prompts by fixed names. Behind Handrail, they have the prefix of their server; and names that are
longer than Handrail offers are shorter in the fixture server. The suite is run against this relay in both cases, directly
and through Handrail, so that what differs is Handrail.
"""

import json
from collections.abc import AsyncGenerator
from typing import Any, cast
from urllib.parse import urlsplit

import httpx2
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

Json = dict[str, Any]
LONG, SHORT = "test_input_required_result_", "rounds_"
OWN = ("test_", "rounds_", "json_schema_")
"""How the names of the fixture server begin. All others pass as they are."""
NAMED = ("tools/call", "prompts/get")
DROPPED = {"host", "content-length", "transfer-encoding", "connection", "date", "server"}


class SuiteNames:
    """The ASGI application in front of one server."""

    def __init__(self, url: str, prefix: str = "", headers: dict[str, str] | None = None) -> None:
        """`prefix` is what the names have at this server, `headers` what each request gets in addition."""
        self._url, self._prefix, self._headers = url, prefix, headers or {}
        self._http = httpx2.AsyncClient(timeout=60, verify=False, trust_env=False)

    def _to_server(self, name: str) -> str:
        short = name.replace(LONG, SHORT, 1) if name.startswith(LONG) else name
        return f"{self._prefix}{short}" if short.startswith(OWN) else name

    def _to_suite(self, name: str) -> str:
        own = name.removeprefix(self._prefix)
        return own.replace(SHORT, LONG, 1) if own.startswith(SHORT) else own

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._serve_lifespan(receive, send)
            return
        request = Request(scope, receive)
        body = await request.body()
        headers = {
            name: value for name, value in request.headers.items() if name not in DROPPED
        } | self._headers
        headers["host"] = self._translate_host(request.headers.get("host", ""), scope)
        if "origin" in headers:
            headers["origin"] = self._translate_host(headers["origin"], scope)
        if "mcp-name" in headers:
            headers["mcp-name"] = self._to_server(headers["mcp-name"])
        upstream = self._http.build_request(
            scope["method"], self._url, headers=headers, content=self._rename_request(body)
        )
        response = await self._http.send(upstream, stream=True)
        kept = {name: value for name, value in response.headers.items() if name.lower() not in DROPPED}
        if "text/event-stream" in response.headers.get("content-type", ""):
            reply: Response = StreamingResponse(
                self._rename_events(response), response.status_code, headers=kept
            )
        else:
            reply = Response(self._rename_reply(await response.aread()), response.status_code, headers=kept)
        try:
            await reply(scope, receive, send)
        finally:
            await response.aclose()

    async def _serve_lifespan(self, receive: Receive, send: Send) -> None:
        for event in ("startup", "shutdown"):
            await receive()
            if event == "shutdown":
                await self._http.aclose()
            await send({"type": f"lifespan.{event}.complete"})

    def _translate_host(self, value: str, scope: Scope) -> str:
        """This relay's own address becomes the server's; any other stays, for the server to refuse."""
        host, port = scope["server"]
        target = urlsplit(self._url).netloc
        for own in (f"{host}:{port}", f"localhost:{port}", f"127.0.0.1:{port}"):
            value = value.replace(own, target)
        return value

    def _rename_request(self, body: bytes) -> bytes:
        message = _parse(body)
        params: Json = message.get("params") or {}
        ref: Json = params.get("ref") or {}
        if message.get("method") in NAMED and isinstance(params.get("name"), str):
            params["name"] = self._to_server(params["name"])
        elif message.get("method") == "completion/complete" and "name" in ref:
            ref["name"] = self._to_server(ref["name"])
        else:
            return body
        return json.dumps(message).encode()

    def _rename_reply(self, body: bytes) -> bytes:
        message = _parse(body)
        result: Json = message.get("result") or {}
        entries: list[Json] = [*(result.get("tools") or ()), *(result.get("prompts") or ())]
        if not entries:
            return body
        for entry in entries:
            entry["name"] = self._to_suite(entry["name"])
        return json.dumps(message).encode()

    async def _rename_events(self, response: httpx2.Response) -> AsyncGenerator[bytes]:
        async for line in response.aiter_lines():
            data = line.removeprefix("data:")
            renamed = line.encode() if data is line else b"data: " + self._rename_reply(data.strip().encode())
            yield renamed + b"\n"


def _parse(body: bytes) -> Json:
    try:
        message: Any = json.loads(body)
    except ValueError:
        return {}
    return cast("Json", message) if isinstance(message, dict) else {}
