"""Routes of sign-ins to MCP servers with OAuth: which servers need one, begin one, forget one."""

from typing import Literal

from fastapi import APIRouter, HTTPException, Response

from handrail.server.api.models import Wire
from handrail.server.context import ServerContext


class ServerLoginView(Wire):
    """The sign-in to a server over HTTP."""

    server: str
    state: Literal["none", "needed", "pending", "done"]
    """`none`: the server has not asked for one. `pending`: a person is at it."""
    problem: str
    """Why the last attempt failed; empty if it did not."""


class ServerLoginLink(Wire):
    """Where a person signs in."""

    url: str
    """A page of the server's authorization server, for the browser on this machine."""
    seconds: float
    """How long Handrail waits for the browser to come back."""


def routes(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.get("/logins")
    async def logins() -> list[ServerLoginView]:
        """The servers over HTTP, and whether somebody is signed in."""
        states = await context.servers.sign_ins.states()
        return [
            ServerLoginView(server=name, state=state, problem=problem)
            for name, (state, problem) in states.items()
        ]

    @router.post("/logins/{server}")
    async def begin(server: str) -> ServerLoginLink:
        """Begin a sign-in. It ends when the browser has come back, or after some minutes."""
        # Not at the top: the HTTP client that this needs takes 5 MB.
        from handrail.upstream.oauth_sign_ins import SIGN_IN_SECONDS, OAuthError  # noqa: PLC0415

        if server not in context.servers.sign_ins:
            raise HTTPException(404, f"There is no MCP server over HTTP called {server[:100]}.")
        try:
            url = await context.servers.sign_ins.begin(server)
        except OAuthError as problem:
            raise HTTPException(502, str(problem)) from None
        return ServerLoginLink(url=url, seconds=SIGN_IN_SECONDS)

    @router.delete("/logins/{server}", status_code=204)
    async def forget(server: str) -> Response:
        """Delete the tokens of a server. Its sessions that run end."""
        sign_ins = context.servers.sign_ins
        if server not in sign_ins or not await sign_ins.forget(server):
            raise HTTPException(404, f"Nobody is signed in to {server[:100]}.")
        await context.servers.restart(server)
        return Response(status_code=204)

    return router
