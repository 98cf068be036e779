"""Routes of the secrets of MCP servers: their names, store one, delete one.

A value goes from the request to the secret store. No answer, event or log contains it.
"""

from collections.abc import Callable
from typing import Annotated, Literal, TypeVar

from anyio import to_thread
from fastapi import APIRouter, HTTPException, Path, Response
from pydantic import SecretStr

from handrail.provider_keys import NoKeyring
from handrail.server.api.models import Wire
from handrail.server.context import ServerContext
from handrail.upstream.secret_store import NAME, BadSecret

T = TypeVar("T")
Kept = Literal["keyring", "file", "nowhere"]
SecretName = Annotated[str, Path(pattern=f"^{NAME.pattern}$")]


class SecretBody(Wire):
    value: SecretStr


class SecretView(Wire):
    """A secret, without its value."""

    name: str
    kept: Kept
    """The system's keyring, or a file of Handrail's where there is none. `nowhere`: a server needs it, and it is not stored."""
    servers: list[str]
    """The servers whose configuration names it."""


def routes(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.get("/secrets")
    async def secrets() -> list[SecretView]:
        """The names of all secrets that are stored or that a server needs."""
        kept: dict[str, Kept] = {each.name: each.kept for each in await _use(context.servers.secrets.list)}
        needed = context.servers.needed_secrets
        return [
            SecretView(
                name=name,
                kept=kept.get(name, "nowhere"),
                servers=[server for server, names in needed.items() if name in names],
            )
            for name in sorted({*kept, *(name for names in needed.values() for name in names)})
        ]

    @router.put("/secrets/{name}", status_code=204)
    async def store_secret(name: SecretName, body: SecretBody) -> Response:
        """Store a value. Servers get it when they are started next."""
        value = body.value.get_secret_value()
        await _use(lambda: context.servers.secrets.set(name, value))
        context.servers.forgive()
        return Response(status_code=204)

    @router.delete("/secrets/{name}", status_code=204)
    async def delete_secret(name: SecretName) -> Response:
        if not await _use(lambda: context.servers.secrets.delete(name)):
            raise HTTPException(404, f"There is no secret {name}.")
        return Response(status_code=204)

    return router


async def _use(access: Callable[[], T]) -> T:
    try:
        return await to_thread.run_sync(access, abandon_on_cancel=True)
    except NoKeyring as problem:
        raise HTTPException(409, f"{problem} Nothing was changed.") from None
    except BadSecret as problem:
        raise HTTPException(422, str(problem)) from None
