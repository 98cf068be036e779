"""Routes of the page's sign-in (create a link, exchange its code) and of call credentials (list, issue, revoke)."""

from fastapi import APIRouter, HTTPException, Request, Response

from handrail.server.api.call_models import Credential, CredentialBody, CredentialView, SignedIn, SignInBody
from handrail.server.api.calls import credential_view
from handrail.server.api.models import now_ms
from handrail.server.context import ServerContext, actor_of
from handrail.store.events import CredentialRevoked


def routes(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.post("/sign-in")
    async def sign_in(body: SignInBody) -> SignedIn:
        match context.access.redeem(body.code):
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
        if context.access.sealed is not None:
            raise HTTPException(403, context.access.sealed)
        return {"url": f"{context.url}/#code={context.access.issue_code()}"}

    return router


def credential_routes(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.get("/credentials")
    async def credentials() -> list[CredentialView]:
        records = await context.records.credentials.all()
        return [credential_view(record) for record in records if record.revoked_at is None]

    @router.post("/credentials")
    async def issue(body: CredentialBody) -> Credential:
        client, bearer, seq = context.access.issue_client(body.name, body.workspace)
        await context.journal.committed(seq)
        view = CredentialView(
            id=client.credential, name=client.name, workspace=body.workspace, issued_at=now_ms()
        )
        return Credential(**view.__dict__, bearer=bearer, url=f"{context.url}/mcp")

    @router.delete("/credentials/{id}", status_code=204)
    async def revoke(id: str, request: Request) -> Response:
        context.access.forget_client(id)
        await context.journal.committed(
            context.journal.append(CredentialRevoked(credential=id, by=str(actor_of(request))))
        )
        return Response(status_code=204)

    return router
