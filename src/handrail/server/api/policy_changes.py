"""Routes of the accepted policy: what changed without Handrail, accept it, and expect settings with the next start."""

from fastapi import APIRouter, Request, Response

from handrail.gate.rules.policy_snapshot import PolicyChange
from handrail.server.api.call_models import AcceptBody, ExpectBody, PolicyChangeView, PolicyView
from handrail.server.context import ServerContext, actor_of


def routes(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.get("/policy")
    async def policy() -> PolicyView:
        return policy_view(context)

    @router.post("/policy/accept")
    async def accept(body: AcceptBody, request: Request) -> PolicyView:
        """Accept rules, trusted folders and settings that changed without Handrail, and take them up."""
        await context.policy.accept(body.digest, actor_of(request))
        return policy_view(context)

    @router.post("/policy/expect", status_code=204)
    async def expect(body: ExpectBody, request: Request) -> Response:
        """Let the next start take up settings with this digest, as `handrail restart` does."""
        await context.policy.expect_config(body.config, actor_of(request))
        return Response(status_code=204)

    return router


def policy_view(context: ServerContext) -> PolicyView:
    policy, link = context.policy, context.journal.link
    return PolicyView(
        suspended=context.gate.rules.suspended,
        known=policy.known,
        changes=[_change_view(change) for change in policy.changes],
        digest=policy.digest if policy.changes else "",
        taken=[_change_view(change) for change in policy.taken],
        head_seq=link.seq,
        head_chain=link.chain.hex(),
        kept_seq=policy.kept_seq,
    )


def _change_view(change: PolicyChange) -> PolicyChangeView:
    return PolicyChangeView(part=change.part, change=change.change, what=change.what)
