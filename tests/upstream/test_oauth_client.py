"""Discovery of authorization servers: what cannot be trusted ends the sign-in."""

import ssl
from collections.abc import Iterator

import pytest
from tests.support.mcp_servers.over_http import Web, http_servers

from handrail.upstream.http_transport import build_client
from handrail.upstream.oauth_client import OAuthClient, OAuthError


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with http_servers() as web:
        yield web


@pytest.fixture(scope="module")
def tls() -> ssl.SSLContext:
    return ssl.create_default_context()


@pytest.mark.parametrize(
    ("lie", "words"),
    [
        ("resource", "is of another resource"),
        ("issuer", "is of another issuer"),
        ("pkce", "does not support PKCE"),
        ("endpoint", "that is not https"),
        ("registration", "set `oauth.client_id` for private"),
    ],
)
async def test_metadata_that_cannot_be_trusted_ends_the_sign_in(
    web: Web, tls: ssl.SSLContext, lie: str, words: str
) -> None:
    web.authorization.lies = {lie}
    async with build_client(tls, is_local=True) as http:
        client = OAuthClient("private", web.url("private"), http)
        with pytest.raises(OAuthError, match=words):
            await client.register(await client.discover(""), "http://127.0.0.1:1/callback")


async def test_a_remote_server_names_no_address_of_this_machine(web: Web, tls: ssl.SSLContext) -> None:
    """Its metadata could otherwise make Handrail send requests to local services."""
    web.authorization.lies = set()
    challenge = f'Bearer resource_metadata="{web.authorization.origin}/.well-known/oauth-protected-resource"'
    async with build_client(tls, is_local=True) as http:
        client = OAuthClient("remote", "https://mcp.example.org/mcp", http)
        with pytest.raises(OAuthError, match="that is not https"):
            await client.discover(challenge)
