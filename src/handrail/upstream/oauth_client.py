"""The OAuth 2.1 client of MCP servers over HTTP: discovery, registration, and requests for tokens.

Discovery follows RFC 9728 (protected resource metadata) and RFC 8414 or OpenID Connect (authorization server metadata).
Requests name the server as their `resource` (RFC 8707). No redirect is followed. It keeps nothing.
"""

import base64
import hashlib
import json
import re
import secrets
from collections.abc import Iterator, Mapping
from urllib.parse import urlencode, urlsplit, urlunsplit

import anyio
import httpx2
from pydantic import JsonValue

from handrail.config import LOOPBACK_HOSTS
from handrail.lazy_dataclass import dataclass
from handrail.store.values import Json
from handrail.upstream._http_errors import describe_http_error

ANSWER_MAX = 1 << 20
"""Bytes of an answer."""
ANSWER_SECONDS = 15.0
LIFETIME_MAX = 1e10
"""Seconds for which a token may be issued. More, or what is no number, counts as not said."""
_RESOURCE_METADATA = re.compile(r'resource_metadata="([^"\s]{1,2000})"')
_SCOPE = re.compile(r'\bscope="([^"]{1,2000})"')


class OAuthError(Exception):
    """A step failed; the sentence says which and why."""


class InvalidGrant(OAuthError):
    """The authorization server does not take the refresh token any more: a person has to sign in again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationServer:
    """What the metadata of an authorization server says."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    registration_endpoint: str
    names_issuer: bool
    """It names itself in its redirects (RFC 9207)."""
    resource: str
    scope: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientId:
    """Who we are for an authorization server."""

    id: str
    secret: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """What an authorization server issued."""

    access: str
    refresh: str
    lifetime: float | None
    """Seconds; None if it did not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationRequest:
    """A request to sign in, as a link for a person's browser."""

    url: str
    state: str
    verifier: str
    redirect_uri: str


class OAuthClient:
    """Speaks to the authorization server of one MCP server."""

    def __init__(self, name: str, url: str, http: httpx2.AsyncClient) -> None:
        self._name, self._url, self._http = name, url, http
        self._is_local = urlsplit(url).hostname in LOOPBACK_HOSTS

    async def discover(self, challenge: str) -> AuthorizationServer:
        """Find the authorization server, from the challenge of a refused request if there is one. Raises OAuthError."""
        resource, issuer, scopes = await self._find_issuer(challenge)
        for place in _metadata_places(issuer):
            metadata = await self._get(place)
            if metadata is not None:
                break
        else:
            raise OAuthError(f"The authorization server {issuer} of {self._name} publishes no metadata.")
        named = str(metadata.get("issuer", ""))
        if named.rstrip("/") != issuer.rstrip("/"):
            raise OAuthError(f"The metadata of {issuer} is of another issuer: {named[:200]}.")
        if "S256" not in _strings(metadata.get("code_challenge_methods_supported")):
            raise OAuthError(
                f"The authorization server {issuer} does not support PKCE with S256, which MCP requires."
            )
        found = _SCOPE.search(challenge)
        return AuthorizationServer(
            issuer=named,
            authorization_endpoint=self._endpoint(metadata, "authorization_endpoint"),
            token_endpoint=self._endpoint(metadata, "token_endpoint"),
            registration_endpoint=self._endpoint(metadata, "registration_endpoint", optional=True),
            names_issuer=metadata.get("authorization_response_iss_parameter_supported") is True,
            resource=resource,
            scope=found[1] if found else " ".join(scopes),
        )

    async def _find_issuer(self, challenge: str) -> tuple[str, str, list[str]]:
        """The resource, its authorization server, and the scopes it names. Raises OAuthError."""
        named = _RESOURCE_METADATA.search(challenge)
        origin, path = _origin_and_path(self._url)
        places = [named[1]] if named else [f"{origin}/.well-known/oauth-protected-resource{path}"]
        for place in dict.fromkeys([*places, f"{origin}/.well-known/oauth-protected-resource"]):
            metadata = await self._get(place)
            servers = _strings((metadata or {}).get("authorization_servers"))
            if metadata is None or not servers:
                continue
            resource = str(metadata.get("resource", ""))
            if not _covers(resource, self._url):
                raise OAuthError(
                    f"The metadata of {self._name} is of another resource: {resource[:200]}. So nobody signs in."
                )
            return resource, servers[0], _strings(metadata.get("scopes_supported"))
        return self._url, origin, []  # servers of MCP 2025-03-26 are their own authorization server

    async def register(self, server: AuthorizationServer, redirect_uri: str) -> ClientId:
        """Register Handrail as a client. Raises OAuthError."""
        if not server.registration_endpoint:
            raise OAuthError(
                f"{server.issuer} registers no clients by itself. Register Handrail there, and set "
                f"`oauth.client_id` for {self._name} in config.toml."
            )
        body: Json = {
            "client_name": "Handrail",
            "redirect_uris": [redirect_uri],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            "application_type": "native",
        }
        if server.scope:
            body["scope"] = server.scope
        reply = await self._post(server.registration_endpoint, "register Handrail", payload=body)
        client, secret = reply.get("client_id"), reply.get("client_secret")
        if not isinstance(client, str) or not client:
            raise OAuthError(f"{server.issuer} registered Handrail, but gave no client id.")
        return ClientId(id=client, secret=secret if isinstance(secret, str) else "")

    def build_request(
        self, server: AuthorizationServer, client: ClientId, redirect_uri: str, scope: str
    ) -> AuthorizationRequest:
        """The link that a person opens."""
        verifier, state = secrets.token_urlsafe(48), secrets.token_urlsafe(32)
        digest = hashlib.sha256(verifier.encode()).digest()
        query = {
            "response_type": "code",
            "client_id": client.id,
            "redirect_uri": redirect_uri,
            "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
            "code_challenge_method": "S256",
            "state": state,
            "resource": server.resource,
            **({"scope": scope} if scope else {}),
        }
        mark = "&" if urlsplit(server.authorization_endpoint).query else "?"
        url = f"{server.authorization_endpoint}{mark}{urlencode(query)}"
        return AuthorizationRequest(url=url, state=state, verifier=verifier, redirect_uri=redirect_uri)

    async def redeem(
        self, server: AuthorizationServer, client: ClientId, request: AuthorizationRequest, code: str
    ) -> Tokens:
        """Exchange a code for tokens. Raises OAuthError."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": request.redirect_uri,
            "code_verifier": request.verifier,
            "resource": server.resource,
        }
        return await self._request_tokens(server.token_endpoint, client, form)

    async def refresh(self, endpoint: str, client: ClientId, resource: str, token: str) -> Tokens:
        """New tokens for a refresh token. Raises OAuthError, or InvalidGrant."""
        if not token:
            raise InvalidGrant(f"{self._name} gave no refresh token.")
        form = {"grant_type": "refresh_token", "refresh_token": token, "resource": resource}
        tokens = await self._request_tokens(endpoint, client, form)
        return (
            tokens
            if tokens.refresh
            else Tokens(access=tokens.access, refresh=token, lifetime=tokens.lifetime)
        )

    async def _request_tokens(self, endpoint: str, client: ClientId, form: Mapping[str, str]) -> Tokens:
        known = {"client_id": client.id, **({"client_secret": client.secret} if client.secret else {})}
        reply = await self._post(endpoint, "get a token", {**form, **known})
        access, refresh, seconds = (
            reply.get(name) for name in ("access_token", "refresh_token", "expires_in")
        )
        kind = str(reply.get("token_type", "")).lower()
        if (
            not isinstance(access, str)
            or not re.fullmatch(r"[\x21-\x7e]{1,16000}", access)
            or kind != "bearer"
        ):
            raise OAuthError(f"The authorization server of {self._name} issued no bearer token.")
        return Tokens(
            access=access,
            refresh=refresh if isinstance(refresh, str) else "",
            lifetime=float(seconds)
            if isinstance(seconds, int | float) and 0 <= seconds < LIFETIME_MAX
            else None,
        )

    def _endpoint(self, metadata: Json, name: str, *, optional: bool = False) -> str:
        value = metadata.get(name)
        if value is None and optional:
            return ""
        if not isinstance(value, str):
            raise OAuthError(f"The authorization server of {self._name} names no {name}.")
        self._check(value)
        return value

    def _check(self, url: str) -> None:
        """Refuse an address to which no code or token may go, and one of this machine that a remote server names."""
        parts = urlsplit(url)
        is_local = parts.scheme == "http" and parts.hostname in LOOPBACK_HOSTS and self._is_local
        is_remote = parts.scheme == "https" and (self._is_local or parts.hostname not in LOOPBACK_HOSTS)
        if not (is_local or is_remote) or parts.username is not None or not url.isprintable():
            raise OAuthError(
                f"{self._name} names an address for signing in that is not https: {url[:200]!r}."
            )

    async def _get(self, url: str) -> Json | None:
        """The JSON object at an address; None if there is none. Raises OAuthError."""
        self._check(url)
        status, reply = await self._send("GET", url, "read the metadata")
        return reply if status == 200 else None

    async def _post(
        self, url: str, purpose: str, form: Mapping[str, str] | None = None, payload: Json | None = None
    ) -> Json:
        status, reply = await self._send("POST", url, purpose, form, payload)
        if 200 <= status < 300 and reply is not None:
            return reply
        error = str((reply or {}).get("error", ""))[:100]
        about = str((reply or {}).get("error_description", ""))[:300]
        why = ": ".join(filter(None, (error, about))) or f"HTTP {status}"
        kind = (
            InvalidGrant
            if error in ("invalid_grant", "invalid_client", "unauthorized_client")
            else OAuthError
        )
        raise kind(f"The authorization server of {self._name} refused to {purpose}: {_printable(why)}.")

    async def _send(
        self,
        method: str,
        url: str,
        purpose: str,
        form: Mapping[str, str] | None = None,
        payload: Json | None = None,
    ) -> tuple[int, Json | None]:
        headers = {"accept": "application/json", "accept-encoding": "identity"}
        body = bytearray()
        try:
            with anyio.fail_after(ANSWER_SECONDS):
                async with self._http.stream(
                    method, url, headers=headers, data=form, json=payload
                ) as response:
                    async for chunk in response.aiter_raw():
                        body += chunk
                        if len(body) > ANSWER_MAX:
                            raise OAuthError(f"The answer of {url[:200]} is too long.")
                    return response.status_code, _read_object(bytes(body))
        except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError) as problem:
            why = describe_http_error(problem) if isinstance(problem, httpx2.HTTPError) else "no answer"
            raise OAuthError(f"Handrail could not {purpose} at {url[:200]}: {why}.") from None


def _metadata_places(issuer: str) -> Iterator[str]:
    """Where the metadata of an authorization server may be, in the order of the MCP specification."""
    origin, path = _origin_and_path(issuer)
    yield f"{origin}/.well-known/oauth-authorization-server{path}"
    yield f"{origin}/.well-known/openid-configuration{path}"
    if path:
        yield f"{origin}{path}/.well-known/openid-configuration"


def _origin_and_path(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc, "", "", "")), parts.path.rstrip("/")


def _covers(resource: str, url: str) -> bool:
    """Whether the server's address lies in the resource, as its metadata names it."""
    origin, path = _origin_and_path(resource)
    own_origin, own_path = _origin_and_path(url)
    return origin.lower() == own_origin.lower() and (own_path == path or own_path.startswith(f"{path}/"))


def _strings(value: JsonValue) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _read_object(body: bytes) -> Json | None:
    try:
        value: JsonValue = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)
