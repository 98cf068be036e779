"""Routes about agents: which there are, and logging in to one."""

from fastapi import APIRouter, Request, Response

from handrail.server.rooms import Rooms
from handrail.server.routes import conversations
from handrail.server.routes.person import person_of
from handrail.server.thread_views import agent_view
from handrail.server.thread_wire import AgentView, LoginBody


def routes(rooms: Rooms) -> APIRouter:
    router = APIRouter()

    @router.get("/agents")
    async def agents(request: Request) -> list[AgentView]:
        listed, running = await rooms.registry.listing(), rooms.agents.running
        return [agent_view(found, running.get(found.name), person_of(request)) for found in listed]

    @router.post("/agents/{name}/login", status_code=204)
    async def login(name: str, body: LoginBody) -> Response:
        conversations.known_agent(rooms, name, status=404)
        await (await rooms.agents.get(name)).login(body.method)
        return Response(status_code=204)

    return router
