"""Routes by which a page becomes a person's: a fresh link, and a code for a bearer."""

from fastapi import APIRouter, HTTPException

from handrail.server.rooms import Rooms
from handrail.server.wire import SignedIn, SignInBody


def routes(rooms: Rooms) -> APIRouter:
    router = APIRouter()

    @router.post("/sign-in")
    async def sign_in(body: SignInBody) -> SignedIn:
        match rooms.access.redeem(body.code):
            case "unknown":
                raise HTTPException(401, "This link is not valid. Run `handrail open` for a fresh one.")
            case "expired":
                raise HTTPException(
                    401, "This link is older than a minute. Run `handrail open` for a fresh one."
                )
            case "used":
                raise HTTPException(
                    401,
                    "This link was used before, so the sign-in it made is revoked: somebody else may have seen it. "
                    "Run `handrail open` for a fresh one.",
                )
            case bearer:
                return SignedIn(bearer=bearer)

    @router.post("/code")
    async def code() -> dict[str, str]:
        if rooms.access.sealed is not None:
            raise HTTPException(403, rooms.access.sealed)
        return {"url": f"{rooms.url}/#code={rooms.access.issue_code()}"}

    return router
