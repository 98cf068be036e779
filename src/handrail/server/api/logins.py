"""Routes of sign-ins to MCP servers with OAuth: which servers need one, begin one, forget one."""

from functools import partial
from typing import Literal

from fastapi import APIRouter, HTTPException, Response

from handrail.server.api.models import Wire
from handrail.server.context import ServerContext
from handrail.terminal.loopback_peer import IS_SUPPORTED, find_refusal
from handrail.terminal.person_check import NO_PERSON

STARTED_OR_GONE = (
    "Handrail started the program that opened this page, for an agent or in `handrail shell`, or that program has ended, so it "
    "cannot sign in to a server. Use a browser that was started outside of these."
)
NO_PROCESS = "The program that opened this page could not be recognised. Run `handrail servers login --print`, and open that link."

NOT_ACCEPTED = (
    "config.toml changed without Handrail, and with it perhaps the address of this server, which gets the client's secret. "
    "Accept the changes first: `handrail rules accept` shows them."
)


class ServerLoginView(Wire):
    """The sign-in to a server over HTTP."""

    server: str
    state: Literal["none", "needed", "pending", "done"]
    """`none`: the server has not asked for one. `pending`: a person is at it."""
    problem: str
    """Why the last attempt failed; empty if it did not."""


class ServerLoginBody(Wire):
    """Who the link is for."""

    local: bool = False
    """A program on this machine is started with the link, where other programs can read it: only a process that is
    visible to Handrail may use it."""


class ServerLoginLink(Wire):
    """Where a person signs in."""

    url: str
    """Leads the browser on this machine to the server's authorization server. The link itself ends no sign-in."""
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
    async def begin(server: str, body: ServerLoginBody | None = None) -> ServerLoginLink:
        """Begin a sign-in. It ends when the browser has come back, or after some minutes."""
        # Not at the top: the HTTP client that this needs takes 5 MB.
        from handrail.upstream.oauth_sign_ins import SIGN_IN_SECONDS, OAuthError  # noqa: PLC0415

        if server not in context.servers.sign_ins:
            raise HTTPException(404, f"There is no MCP server over HTTP called {server[:100]}.")
        if context.servers.is_held:
            raise HTTPException(409, NOT_ACCEPTED)
        is_strict = IS_SUPPORTED and body is not None and body.local
        try:
            url = await context.servers.sign_ins.begin(server, partial(_find_refusal, context, is_strict))
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


def _find_refusal(
    context: ServerContext, is_strict: bool, client: tuple[str, int], server: tuple[str, int]
) -> str | None:
    """Refuse what Handrail started: a command could sign a server in to another account. Agents may start browsers."""
    unknown = NO_PROCESS if is_strict else None
    refusal = find_refusal(context.launchers, client, server, unknown, agents=False)
    return STARTED_OR_GONE if refusal == NO_PERSON else refusal
