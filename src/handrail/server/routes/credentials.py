"""Routes about call credentials: list, issue, revoke."""

from fastapi import APIRouter, Request, Response

from handrail.server import views
from handrail.server.rooms import Rooms
from handrail.server.routes.person import by
from handrail.server.wire import Credential, CredentialBody, CredentialView
from handrail.store.event import CredentialRevoked


def routes(rooms: Rooms) -> APIRouter:
    router = APIRouter()

    @router.get("/credentials")
    async def credentials() -> list[CredentialView]:
        found = await rooms.records.credentials()
        return [views.credential_view(record) for record in found if record.revoked_at is None]

    @router.post("/credentials")
    async def issue(body: CredentialBody) -> Credential:
        client, bearer, seq = rooms.access.issue_client(body.name, body.workspace)
        await rooms.journal.committed(seq)
        view = CredentialView(
            id=client.credential, name=client.name, workspace=body.workspace, issued_at=views.now_ms()
        )
        return Credential(**view.__dict__, bearer=bearer, url=f"{rooms.url}/mcp")

    @router.delete("/credentials/{id}", status_code=204)
    async def revoke(id: str, request: Request) -> Response:
        rooms.access.forget_client(id)
        await rooms.journal.committed(
            rooms.journal.append(CredentialRevoked(credential=id, by=str(by(request))))
        )
        return Response(status_code=204)

    return router
