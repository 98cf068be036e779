"""Routes of API keys for Handrail's own agent: which there are, store one, remove one.

A key goes from the request to the system's keyring. No answer, event or log contains it.
"""

from collections.abc import Callable
from typing import Literal, TypeVar

from anyio import to_thread
from fastapi import APIRouter, HTTPException, Response
from pydantic import SecretStr

from handrail.config import PROVIDER_SECRETS
from handrail.provider_keys import NoKeyring, delete_key, read_keys, store_key
from handrail.server.api.models import Wire
from handrail.server.context import ServerContext

Provider = Literal["anthropic", "openai", "google"]
VARIABLES: dict[Provider, str] = {
    "anthropic": "ANTHROPIC_API_KEY",
    "openai": "OPENAI_API_KEY",
    "google": "GOOGLE_API_KEY",
}
KEY_MAX = 4096
"""Characters of a key. Rejects a file that was pasted by mistake."""
T = TypeVar("T")


class KeyBody(Wire):
    key: SecretStr


class KeyView(Wire):
    """Whether the keyring holds a key."""

    provider: Provider
    name: str
    """Its environment variable."""
    stored: bool


class KeysView(Wire):
    """The keys of our own agent."""

    other: bool
    """Its environment or the configuration has a key or the address of a model server, or the keyring has another key."""
    keys: list[KeyView]


def routes(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.get("/keys")
    async def keys() -> KeysView:
        found = await to_thread.run_sync(read_keys, *PROVIDER_SECRETS, abandon_on_cancel=True)
        rows = [KeyView(provider=each, name=name, stored=name in found) for each, name in VARIABLES.items()]
        return KeysView(other=context.registry.keyed or bool({*found} - {*VARIABLES.values()}), keys=rows)

    @router.put("/keys/{provider}", status_code=204)
    async def store(provider: Provider, body: KeyBody) -> Response:
        """Store a key in the system's keyring. Our own agent finds it there when it is started next."""
        value = body.key.get_secret_value().strip()
        if (
            not value
            or len(value) > KEY_MAX
            or not value.isascii()
            or not value.isprintable()
            or " " in value
        ):
            raise HTTPException(422, "That is no key: a key is one word on one line. Nothing was stored.")
        await _use_keyring(lambda: store_key(VARIABLES[provider], value))
        return Response(status_code=204)

    @router.delete("/keys/{provider}", status_code=204)
    async def remove(provider: Provider) -> Response:
        if not await _use_keyring(lambda: delete_key(VARIABLES[provider])):
            raise HTTPException(404, f"There is no {VARIABLES[provider]} in the system's keyring.")
        return Response(status_code=204)

    return router


async def _use_keyring(access: Callable[[], T]) -> T:
    try:
        return await to_thread.run_sync(access, abandon_on_cancel=True)
    except NoKeyring as problem:
        raise HTTPException(409, f"{problem} Nothing was changed.") from None
