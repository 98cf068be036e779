"""Routes of push messages: the key to subscribe with, and the subscription of the browser that asks."""

from typing import Annotated
from urllib.parse import urlsplit

from anyio import to_thread
from fastapi import APIRouter, HTTPException, Request, Response
from pydantic import Field

from handrail.server.api.models import Wire
from handrail.server.context import ServerContext, person_of
from handrail.store.values import PushSubscription

LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""Where a push service of this machine may be used without TLS: the messages are encrypted."""


class PushKey(Wire):
    """Values a browser needs to subscribe."""

    key: str
    """The server's public key, `applicationServerKey`, in URL-safe base64."""
    subscribed: bool
    """Whether this browser gets messages."""


class PushBody(Wire):
    """A browser's subscription, as `PushSubscription.toJSON()` has it."""

    endpoint: Annotated[str, Field(max_length=600)]
    p256dh: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{87}=?$")]
    auth: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{22}(==)?$")]


def routes(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.get("/push")
    async def push_key(request: Request) -> PushKey:
        sender = await to_thread.run_sync(context.devices.build_push_sender)
        signed = context.access.sign_ins.get(person_of(request).sign_in or "")
        return PushKey(key=sender.public_key, subscribed=signed is not None and signed.push is not None)

    @router.put("/push", status_code=204)
    async def subscribe(body: PushBody, request: Request) -> Response:
        """Send this browser a message when a call needs a person and no page is being looked at."""
        address = urlsplit(body.endpoint)
        if address.scheme != "https" and not (address.scheme == "http" and address.hostname in LOOPBACK):
            raise HTTPException(422, "The address of a push service begins with https://.")
        subscription = PushSubscription(endpoint=body.endpoint, p256dh=body.p256dh, auth=body.auth)
        if not context.access.sign_ins.set_push(person_of(request).sign_in or "", subscription):
            raise HTTPException(409, "Only a browser that is signed in on the page can subscribe.")
        return Response(status_code=204)

    @router.delete("/push", status_code=204)
    async def unsubscribe(request: Request) -> Response:
        context.access.sign_ins.set_push(person_of(request).sign_in or "", None)
        return Response(status_code=204)

    return router
