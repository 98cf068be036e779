"""Routes of the pause: hold the calls of all agents, and let the rules decide again."""

from fastapi import APIRouter, Request

from handrail.gate.rules.pause import Pause
from handrail.server.api.call_models import PauseView
from handrail.server.context import ServerContext, actor_of


def routes(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.put("/pause")
    async def pause_agents(request: Request) -> PauseView:
        """Hold what rules would allow, until a person resumes the agents."""
        pause = context.gate.rules.pause
        won = await pause.begin(actor_of(request))
        return pause_view(pause, won)

    @router.delete("/pause")
    async def resume_agents(request: Request) -> PauseView:
        """Let the rules decide again, also about the calls that the pause held."""
        pause = context.gate.rules.pause
        won = await pause.end(actor_of(request))
        return pause_view(pause, won)

    return router


def pause_view(pause: Pause, won: bool = True) -> PauseView:
    now = pause.current
    return PauseView(since=now and now.at, by=now.by if now else "", won=won)
