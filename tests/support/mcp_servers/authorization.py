"""A scripted OAuth authorization server on loopback, and an MCP server that takes its tokens only.

It checks what the specification wants checked (PKCE, redirect address, resource), and does wrong on request.
"""

import base64
import hashlib
import secrets
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

Json = dict[str, Any]


@dataclass
class Authorization:
    """The server, and what it saw."""

    origin: str = ""
    resource: str = ""
    lies: set[str] = field(default_factory=set[str])
    """What it does wrong: `issuer`, `resource`, `pkce`, `iss`, `endpoint`, `registration`."""
    seconds: float = 3600
    """The lifetime of a token."""
    clients: dict[str, Json] = field(default_factory=dict[str, Json])
    codes: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    access: set[str] = field(default_factory=set[str])
    refresh: set[str] = field(default_factory=set[str])
    grants: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    asked: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    challenges: int = 0
    """Requests to the MCP server without a valid token."""

    @property
    def issuer(self) -> str:
        return f"{self.origin}/as"

    def app(self) -> ASGIApp:
        return Starlette(
            routes=[
                Route("/.well-known/oauth-protected-resource/private/mcp", self.describe_resource),
                Route("/.well-known/oauth-authorization-server/as", self.describe),
                Route("/as/register", self.register, methods=["POST"]),
                Route("/as/authorize", self.authorize),
                Route("/as/token", self.issue, methods=["POST"]),
            ]
        )

    async def describe_resource(self, _request: Request) -> Response:
        resource = "https://other.example/mcp" if "resource" in self.lies else self.resource
        return JSONResponse(
            {"resource": resource, "authorization_servers": [self.issuer], "scopes_supported": ["tools"]}
        )

    async def describe(self, _request: Request) -> Response:
        issuer = "https://other.example" if "issuer" in self.lies else self.issuer
        token = "http://203.0.113.1/token" if "endpoint" in self.lies else f"{self.issuer}/token"
        about: Json = {
            "issuer": issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": token,
            "code_challenge_methods_supported": ["plain"] if "pkce" in self.lies else ["S256"],
            "authorization_response_iss_parameter_supported": True,
        }
        if "registration" not in self.lies:
            about["registration_endpoint"] = f"{self.issuer}/register"
        return JSONResponse(about)

    async def register(self, request: Request) -> Response:
        body: Json = await request.json()
        client = f"client-{len(self.clients)}"
        self.clients[client] = body
        return JSONResponse({**body, "client_id": client}, 201)

    async def authorize(self, request: Request) -> Response:
        """As if a person had agreed at once."""
        query = dict(request.query_params)
        self.asked.append(query)
        known = self.clients.get(query["client_id"])
        if known is None or query["redirect_uri"] not in known["redirect_uris"]:
            return Response("unknown client", 400)
        code = secrets.token_urlsafe(16)
        self.codes[code] = query
        issuer = "https://other.example" if "iss" in self.lies else self.issuer
        back = urlencode({"code": code, "state": query["state"], "iss": issuer})
        return RedirectResponse(f"{query['redirect_uri']}?{back}", 302)

    async def issue(self, request: Request) -> Response:
        form = {name: str(value) for name, value in (await request.form()).items()}
        self.grants.append(form)
        if form.get("resource") != self.resource or not self._is_granted(form):
            return JSONResponse({"error": "invalid_grant", "error_description": "not you"}, 400)
        access, refresh = (f"{kind}-{secrets.token_urlsafe(16)}" for kind in ("access", "refresh"))
        self.access.add(access)
        self.refresh.add(refresh)
        token = {"access_token": access, "refresh_token": refresh, "token_type": "Bearer"}
        return JSONResponse({**token, "expires_in": self.seconds})

    def _is_granted(self, form: dict[str, str]) -> bool:
        if form["grant_type"] == "refresh_token":
            known = form["refresh_token"] in self.refresh
            self.refresh.discard(form["refresh_token"])  # each is good once
            return known
        asked = self.codes.pop(form["code"], None)
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        return (
            asked is not None
            and asked["code_challenge"] == challenge
            and asked["redirect_uri"] == form["redirect_uri"]
            and asked["client_id"] == form["client_id"]
        )


class Protected:
    """An MCP server that takes the tokens of an authorization server."""

    def __init__(self, app: ASGIApp, authorization: Authorization) -> None:
        self.app, self._authorization = app, authorization

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        bearer = dict(scope["headers"]).get(b"authorization", b"").decode().removeprefix("Bearer ")
        if bearer in self._authorization.access:
            await self.app(scope, receive, send)
            return
        self._authorization.challenges += 1
        place = f"{self._authorization.origin}/.well-known/oauth-protected-resource/private/mcp"
        headers = {"www-authenticate": f'Bearer resource_metadata="{place}", scope="tools"'}
        await JSONResponse({"error": "invalid_token"}, 401, headers)(scope, receive, send)
