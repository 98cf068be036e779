"""Routes of agents: list them, log in to one."""

from fastapi import APIRouter, Request, Response

from handrail.server.api import threads
from handrail.server.api.thread_models import AgentView, LoginBody, agent_view
from handrail.server.context import ServerContext, person_of


def routes(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.get("/agents")
    async def agents(request: Request) -> list[AgentView]:
        listed, running = await context.registry.listing(), context.agents.running
        return [agent_view(agent, running.get(agent.name), person_of(request)) for agent in listed]

    @router.post("/agents/{name}/login", status_code=204)
    async def login(name: str, body: LoginBody) -> Response:
        threads.require_agent(context, name, status=404)
        # A program keeps its login in memory: log in where it was asked for, in the one used last.
        agent = context.agents.running.get(name) or await context.agents.get(name)
        await agent.login(body.method)
        return Response(status_code=204)

    return router
