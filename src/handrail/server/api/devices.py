"""Routes of paired devices: start the listener and issue a pairing code, stop it, show it."""

from typing import Annotated

from fastapi import APIRouter, HTTPException, Response
from pydantic import Field

from handrail.server.api.models import Wire
from handrail.server.context import ServerContext
from handrail.server.device_listener import DeviceAddress, ListenError
from handrail.server.sign_ins import PAIR_SECONDS

NOT_ACCEPTED = (
    "config.toml changed without Handrail, and with it perhaps where devices connect. Accept the changes first: `handrail "
    "rules accept` shows them."
)


class ListenBody(Wire):
    """Where devices connect. What is left out comes from `[devices]` of the configuration."""

    address: Annotated[str | None, Field(min_length=1, max_length=60)] = None
    port: Annotated[int | None, Field(ge=1, le=65_535)] = None
    name: Annotated[str | None, Field(pattern=r"^[A-Za-z0-9.:-]{1,253}$")] = None
    behind_proxy: bool | None = None


class DevicesView(Wire):
    """The listener for devices."""

    url: str | None
    """Where devices open the page; None if nothing listens for them."""
    address: str
    port: int
    behind_proxy: bool
    limited: bool
    """Devices leave high risk to the desk."""
    ca_file: str
    """The CA's certificate, which a phone installs; empty behind a proxy."""
    ca_fingerprint: str


class PairCode(Wire):
    """A one-time code that pairs a device."""

    url: str
    """With the code in its fragment, for a QR code."""
    code: str
    seconds: float
    """How long the code is valid."""
    devices: DevicesView


def routes(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.get("/devices")
    async def devices() -> DevicesView:
        return await _view(context)

    @router.post("/devices/listener")
    async def pair(body: ListenBody) -> PairCode:
        """Listen for devices, if nothing does yet, and issue a code. An earlier code is no longer valid."""
        if context.access.sealed is not None:
            raise HTTPException(403, context.access.sealed)
        if context.policy.holds_config:
            raise HTTPException(409, NOT_ACCEPTED)
        try:
            address = await context.devices.start(body.address, body.port, body.name, body.behind_proxy)
        except ListenError as problem:
            raise HTTPException(409, str(problem)) from None
        code = context.access.sign_ins.issue_pair_code()
        url = f"{address.url}/#code={code}"
        return PairCode(url=url, code=code, seconds=PAIR_SECONDS, devices=await _view(context))

    @router.delete("/devices/listener", status_code=204)
    async def stop() -> Response:
        """Stop listening. Devices stay paired for the next time."""
        context.access.sign_ins.drop_pair_codes()
        if not await context.devices.stop():
            raise HTTPException(404, "Nothing listens for devices. `handrail pair` starts it.")
        return Response(status_code=204)

    return router


_NOWHERE = DeviceAddress(address="", port=0, name="")


async def _view(context: ServerContext) -> DevicesView:
    listener = context.devices
    current = listener.current or _NOWHERE
    fingerprint = await listener.get_fingerprint()
    return DevicesView(
        url=listener.current and current.url,
        address=current.address,
        port=current.port,
        behind_proxy=current.behind_proxy,
        limited=listener.limited(),
        ca_file=str(listener.ca_file) if fingerprint else "",
        ca_fingerprint=fingerprint,
    )
